"""Everything that knows IREE's compiler: the only part of Tilewright that does."""

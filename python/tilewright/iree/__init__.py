"""The interface to IREE's compiler; no other part of Tilewright knows IREE's compiler."""

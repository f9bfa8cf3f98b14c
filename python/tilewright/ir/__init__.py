"""MLIR modules of the compiler, and the passes that run on them."""

"""Compares programs with IREE alone and ONNX Runtime in time, and with float64 in accuracy, down to the op at fault."""

"""Reference results of ONNX models: in float64, and with every op rounded, with accepted errors."""

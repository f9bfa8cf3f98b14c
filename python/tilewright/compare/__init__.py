"""Programs beside IREE alone and ONNX Runtime, and numbers beside float64."""

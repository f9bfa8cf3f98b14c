"""An encoder from ONNX: compile, run, compare, explain, save and load.

Usage: python examples/encoder.py [MODEL.onnx]   without a model: a BERT encoder of two layers with random weights
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tilewright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> None:
    if len(sys.argv) > 1:
        model = onnx.load(sys.argv[1])
    else:
        from benchmarks.workloads import build

        model = build("bert-small")
    program = tilewright.compile(model)

    # The signature has the names, types and shapes of inputs and outputs.
    generator = np.random.default_rng(0)
    inputs = {}
    for spec in program.signature.inputs:
        shape = [size for size in spec.shape if isinstance(size, int)]
        drawn = generator.standard_normal(shape) if spec.dtype.startswith("f") else np.ones(shape)
        inputs[spec.name] = drawn.astype(spec.numpy_dtype)
    outputs = program(*inputs.values())

    session = onnxruntime.InferenceSession(model.SerializeToString())
    for ours, theirs in zip(outputs, session.run(None, inputs), strict=True):
        print(
            "relative difference from ONNX Runtime:", np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)

    for kernel in program.kernels:
        print(f"{kernel.name}: {kernel.predicted_seconds * 1e6:.0f} us predicted")
    print(program.explain().splitlines()[0])

    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder) / "encoder.vmfb")
        again = tilewright.load(Path(folder) / "encoder.vmfb")
        np.testing.assert_array_equal(again(*inputs.values())[0], outputs[0])


if __name__ == "__main__":
    main()

"""Compiles a Transformer encoder of PyTorch to a program, saves it, and runs what was saved."""

from __future__ import annotations

import tempfile
from pathlib import Path

import tilewright
import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, norm_first=True)
encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
tokens = torch.randn(1, 32, 64)

program = tilewright.compile(encoder, example_inputs=(tokens,))
print(program)

with tempfile.TemporaryDirectory() as folder:
    loaded = tilewright.load(program.save(Path(folder) / "encoder.vmfb"))
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens), encoder(tokens), rtol=1e-4, atol=1e-4)
print("the saved program gives PyTorch's numbers")

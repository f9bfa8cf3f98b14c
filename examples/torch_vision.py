"""Runs a small convolutional network through torch.compile, and says what ran where."""

from __future__ import annotations

import torch
from tilewright.torch.backend import explain, tilewright

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 10),
).eval()
images = torch.randn(2, 3, 32, 32)

# Where the package is installed, backend="tilewright" means the same.
compiled = torch.compile(network, backend=tilewright)
with torch.no_grad():
    torch.testing.assert_close(compiled(images), network(images), rtol=1e-4, atol=1e-4)
print(explain())

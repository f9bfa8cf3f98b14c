"""Trains a small model through torch.compile: the forward and the backward graph are both compiled."""

from __future__ import annotations

import torch
from tilewright.torch.backend import explain, tilewright

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Linear(64, 4)
)
# Where the package is installed, backend="tilewright" means the same.
compiled = torch.compile(model, backend=tilewright)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs, labels = torch.randn(64, 32), torch.randint(0, 4, (64,))

losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(compiled(inputs), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

print(explain())
print(f"the loss went from {losses[0]:.3f} to {losses[-1]:.3f}")
assert losses[-1] < losses[0]

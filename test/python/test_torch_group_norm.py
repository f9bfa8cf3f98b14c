"""GroupNorm of PyTorch: groups are normalised in f32, each as a tile, forward and backward."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from torch_cases import register_by_name

torch = pytest.importorskip("torch")
tilewright = pytest.importorskip("tilewright")

# Dtype, shape, groups, whether there are weights.
CASES = [
    ("float32", (4, 64, 8, 8), 8, True),
    ("float32", (2, 6, 7, 5), 3, False),
    ("float32", (3, 10, 11), 5, True),
    ("float32", (2, 12, 3, 4, 5), 4, True),
    ("float32", (2, 12), 4, True),
    ("float64", (2, 6, 7), 2, True),
    ("bfloat16", (2, 8, 9, 9), 2, True),
    ("float16", (2, 8, 9), 4, True),
]
# One rounding of the result, and in f32 sums of up to 512 terms in another order.
TOLERANCES = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


def _module(dtype: str, shape: tuple[int, ...], groups: int, *, affine: bool) -> Any:
    module = torch.nn.GroupNorm(groups, shape[1], affine=affine)
    if affine:
        torch.nn.init.uniform_(module.weight, -1, 1)
        torch.nn.init.uniform_(module.bias, -1, 1)
    return module.to(getattr(torch, dtype)).eval()


@pytest.mark.parametrize(("dtype", "shape", "groups", "affine"), CASES, ids=str)
def test_groups_are_normalised(dtype: str, shape: tuple[int, ...], groups: int, *, affine: bool) -> None:
    module = _module(dtype, shape, groups, affine=affine)
    x = (3 * torch.randn(shape, dtype=torch.float64) + 5).to(getattr(torch, dtype))
    y = tilewright.compile(module, example_inputs=(x,), threads=1)(x)
    with torch.no_grad():
        y64 = copy.deepcopy(module).double()(x.double())
    assert y.dtype == x.dtype
    assert float((y.double() - y64).abs().max() / y64.abs().max()) < TOLERANCES[dtype]


def test_a_group_is_a_tile() -> None:
    module = _module("float32", (4, 64, 16, 16), 8, affine=True)
    program = tilewright.compile(module, example_inputs=(torch.randn(4, 64, 16, 16),), threads=[2])
    assert program.plan is not None
    [kernel] = program.plan.kernels
    [group] = kernel.groups
    assert math.prod(-(-group.extents[dim] // group.tiles[dim]) for dim in group.grid) == 4 * 8


def test_gradients_are_those_of_pytorch() -> None:
    module = _module("float32", (2, 8, 5), 4, affine=True)
    other = copy.deepcopy(module)
    x = torch.randn(2, 8, 5, requires_grad=True)
    x_other = x.detach().clone().requires_grad_()
    register_by_name()
    torch._dynamo.reset()
    torch.compile(module, backend="tilewright")(x).square().sum().backward()
    other(x_other).square().sum().backward()
    for ours, theirs in [
        (x.grad, x_other.grad),
        (module.weight.grad, other.weight.grad),
        (module.bias.grad, other.bias.grad),
    ]:
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)

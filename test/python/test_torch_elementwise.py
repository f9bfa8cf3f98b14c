"""Elementwise ops of PyTorch on special numbers and at the edges of integers: PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright
from torch_cases import module_of

torch = pytest.importorskip("torch")
functional = torch.nn.functional

_SPECIAL = map(float, ("inf", "-inf", "nan"))
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.5, -2.5, 1e-6, -1e-6, 1e-3, 7.3, 20.0, -20.0, 1e30, *_SPECIAL)
_INTEGERS = (
    0,
    1,
    -1,
    2,
    -3,
    7,
    -100,
    2**24 + 1,
    -(2**24) - 1,
    2**31 - 1,
    -(2**31),
    2**53 + 1,
    2**62,
    -(2**63) + 1,
)

_OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "isfinite": lambda x, y: torch.isfinite(x),
    "equal to itself": lambda x, y: x == x.clone(),
    "argmax of some NaN": lambda x, y: x.argmax(),
    "argmin of rows": lambda x, y: torch.minimum(x, y).reshape(17, 17).argmin(1),
    "max of rows": lambda x, y: x.reshape(17, 17).flip(1).max(0)[1],
    "searchsorted of NaN": lambda x, y: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x),
    "elu": lambda x, y: functional.elu(x, 0.7),
    "selu": lambda x, y: functional.selu(x),
    "signbit": lambda x, y: torch.signbit(x),
    "copysign": torch.copysign,
    "angle": lambda x, y: torch.angle(x),
    "fmod": torch.fmod,
    "floor_divide": torch.floor_divide,
    "floor_divide by a number": lambda x, y: x // -0.7,
    "erfc": lambda x, y: torch.erfc(x),
    "erfinv": lambda x, y: torch.erfinv(x),
    "power of f64": torch.float_power,
    "square of f64": lambda x, y: x.double() ** 2,
    "power of a number": lambda x, y: (-2.0) ** x.double(),
    "zeros compared with a whole number": lambda x, y: (torch.zeros(3) == 0).all() & (x > 0),
    "a constant less a whole number": lambda x, y: torch.ones(1) - 3 + x,
    "a whole number less a constant": lambda x, y: torch.rsub(torch.full([1], -2.0), -3) * x,
}
_OF_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda x, y: -x,
    "square": lambda x, y: torch.square(x),
    "cube": lambda x, y: x**3,
    "power": lambda x, y: x ** (y % 70),
    "floor_divide": lambda x, y: x // (y.abs() + 2),
    "floor_divide by a number": lambda x, y: x // -3,
    "fmod": lambda x, y: torch.fmod(x, y.abs() + 2),
}


def _check(function: Callable[[Any, Any], Any], x: Any, y: Any) -> None:
    module = module_of(function)
    program = tilewright.compile(torch.export.export(module, (x, y)), threads=1, deploy=False)
    expected = module(x, y).numpy()
    result = program(x.numpy(), y.numpy())
    # erfc and erfinv are exact to a few units of f32, powers of f64 to those of their logarithm.
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-37)
    assert result.dtype == expected.dtype


def _pairs(values: Any) -> tuple[Any, Any]:
    return values.repeat_interleave(len(values)), values.repeat(len(values))


@pytest.mark.parametrize("name", _OF_FLOATS)
def test_special_numbers_are_those_of_pytorch(name: str) -> None:
    _check(_OF_FLOATS[name], *_pairs(torch.tensor(_FLOATS)))


@pytest.mark.parametrize("name", _OF_INTEGERS)
def test_large_integers_are_exact(name: str) -> None:
    _check(_OF_INTEGERS[name], *_pairs(torch.tensor(_INTEGERS)))

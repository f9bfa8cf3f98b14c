"""Comparison of results with PyTorch in float64."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

_UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Largest relative error of one rounding, by type."""

_ROUNDINGS = 64
"""Roundings that the error of an element may amount to: sums here have at most some hundred terms, whose errors mostly
cancel, and a model rounds after each of up to ten layers."""


def register_by_name() -> None:
    """Makes torch.compile find the back end by its name where the package is not installed; skips without PyTorch."""
    dynamo = pytest.importorskip("torch._dynamo")
    if "tilewright" not in dynamo.list_backends():
        backend = importlib.import_module("tilewright.torch.backend")
        dynamo.register_backend(compiler_fn=backend.tilewright, name="tilewright")


def module_of(function: Callable[..., Any]) -> Any:
    """Returns a module that computes a function of its inputs."""
    import torch

    class Module(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    return Module()


def assert_close(
    result: Any, function: Any, arguments: Sequence[Any], named: Mapping[str, Any] | None = None
) -> None:
    """Checks a result against a function of PyTorch in float64: structure, types, shapes and numbers.

    `function` may be a module; a copy of it in float64 is called.
    """
    import torch
    from torch.utils import _pytree

    reference = copy.deepcopy(function).double() if isinstance(function, torch.nn.Module) else function
    wide = _pytree.tree_map(_widen, (tuple(arguments), dict(named or {})))
    with torch.no_grad():
        expected = reference(*wide[0], **wide[1])
    found, structure = _pytree.tree_flatten(result)
    wanted, wanted_structure = _pytree.tree_flatten(expected)
    assert structure == wanted_structure
    for got, want in zip(found, wanted, strict=True):
        if not isinstance(want, torch.Tensor):
            assert got == want
            continue
        assert isinstance(got, torch.Tensor)
        assert got.shape == want.shape
        compare(got, want)


def compare(got: Any, want: Any, *, scale: float = 0.0) -> None:
    """Checks the numbers of a tensor against float64; those of integers must be equal.

    Digits may cancel in a sum, so the error is measured against the largest element, or `scale` if that is larger.
    """
    name = str(got.dtype).removeprefix("torch.")
    found, wanted = got.detach().double().numpy(), want.detach().double().numpy()
    if name not in _UNITS:
        np.testing.assert_array_equal(found, wanted)
        return
    tolerance = _ROUNDINGS * _UNITS[name]
    scale = max(float(np.abs(wanted).max(initial=0.0)), scale)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)


def _widen(value: Any) -> Any:
    import torch

    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

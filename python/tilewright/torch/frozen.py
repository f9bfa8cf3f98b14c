"""Frozen graphs: weights are constants of the programs, packed for the kernels, as long as nobody changes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

Build = Callable[[GraphModule, Collection[int], Mapping[int, torch.Tensor]], Callable[..., Any]]
"""Compiles a graph, given the positions of weights among its inputs, and the weights that are to be constants."""


class Frozen:
    """Calls a graph whose weights are constants of its programs.

    It is compiled at the first call, whose arguments the weights are. Once a call has other weights, or one was changed
    in place, the graph is compiled again with weights that are read at each call, and that serves all further calls.
    PyTorch counts changes in place, except for those through `tensor.data` and of memory that other libraries share.
    """

    def __init__(
        self, module: GraphModule, build: Build, *, fixed: Collection[int], note: Callable[[str], None]
    ) -> None:
        """`fixed` are the positions of arguments that are weights. `note` is told why constants were given up."""
        self._module, self._build, self._note = module, build, note
        self._fixed = fixed
        self._weights: list[_Weight] | None = None
        """The weights that are constants, once the graph is compiled."""
        self._run: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        run, weights = self._run, self._weights
        if run is None or weights is None or any(weight.is_changed(arguments) for weight in weights):
            run = self._compile(arguments)
        return run(*arguments)

    def _compile(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        """Returns the graph compiled for these arguments: with constants the first time, without them afterwards."""
        with self._lock:
            if self._run is None or self._weights is None:
                weights = [_Weight(at, arguments[at]) for at in self._fixed if _can_watch(arguments[at])]
                constants = {weight.position: weight.tensor for weight in weights}
                self._run = self._build(self._module, self._fixed, constants)
                self._weights = weights
            elif any(weight.is_changed(arguments) for weight in self._weights):
                self._note(
                    "weights were changed after they had been frozen, so they are read at each call now"
                )
                self._run = self._build(self._module, self._fixed, {})
                self._weights = []
            return self._run


class _Weight:
    """A weight that is a constant of a program, in the state in which it was then."""

    __slots__ = ("_version", "position", "tensor")

    def __init__(self, position: int, tensor: torch.Tensor) -> None:
        self.position, self.tensor = position, tensor
        self._version = tensor._version

    def is_changed(self, arguments: Sequence[Any]) -> bool:
        """Returns True unless the argument in its position is this tensor with the content that it had."""
        given = arguments[self.position]
        if given is not self.tensor and not _is_same_memory(given, self.tensor):
            return True
        return bool(given._version != self._version)


def _is_same_memory(given: torch.Tensor, tensor: torch.Tensor) -> bool:
    return (
        not given.is_inference()
        and given.data_ptr() == tensor.data_ptr()
        and given.shape == tensor.shape
        and given.stride() == tensor.stride()
        and given.dtype == tensor.dtype
    )


def _can_watch(value: Any) -> bool:
    """Returns True for a tensor of which PyTorch counts the changes."""
    return isinstance(value, torch.Tensor) and not value.is_inference() and value.device.type == "cpu"

"""Graphs with dynamic shapes: one is compiled for each concrete shape, at the first call with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx


def is_dynamic(module: GraphModule) -> bool:
    """True if a graph has a value whose size is known only at run time."""
    return any(_is_symbolic(node.meta.get("val")) for node in module.graph.nodes)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_symbolic, value))
    if isinstance(value, torch.Tensor):
        return not all(isinstance(size, int) for size in (*value.shape, *value.stride()))
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def specialise(module: GraphModule, arguments: Sequence[Any]) -> GraphModule:
    """Returns the graph for tensors of these shapes and strides, and for these numbers. It takes the tensors alone."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    fakes = [mode.from_tensor(tensor.detach(), static_shapes=True) for tensor in tensors]

    def run(*given: Any) -> Any:
        rest = iter(given)
        return module(*[next(rest) if isinstance(a, torch.Tensor) else a for a in arguments])

    with mode:
        return make_fx(run)(*fakes)


class PerShape:
    """Calls the graph that was compiled for the shapes of the arguments.

    At most `most` shapes are compiled; further ones run in eager mode. `fixed` are the positions of arguments that are
    weights or buffers of a module.
    """

    def __init__(
        self,
        module: GraphModule,
        build: Callable[[GraphModule, Collection[int]], Callable[..., Any]],
        *,
        fixed: Collection[int],
        most: int,
        note: Callable[[str], None],
    ) -> None:
        self._module, self._build, self._most, self._note = module, build, most, note
        self._fixed = fixed
        self._built: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        key = tuple(
            (tuple(a.shape), a.stride(), a.dtype) if isinstance(a, torch.Tensor) else a for a in arguments
        )
        run = self._built.get(key) or self._add(key, arguments)
        return run(*arguments)

    def _add(self, key: tuple[Any, ...], arguments: Sequence[Any]) -> Callable[..., Any]:
        with self._lock:
            if key not in self._built:
                if len(self._built) >= self._most:
                    self._note(f"more than {self._most} shapes: eager mode runs further ones")
                    return self._module
                self._built[key] = self._build_for(arguments)
            return self._built[key]

    def _build_for(self, arguments: Sequence[Any]) -> Callable[..., Any]:
        try:
            graph = specialise(self._module, arguments)
        except Exception as error:  # for instance, a shape depends on data
            self._note(f"it has no static shapes ({type(error).__name__}), so eager mode runs it")
            return self._module
        kept = [index for index, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        run = self._build(graph, [place for place, index in enumerate(kept) if index in self._fixed])
        return lambda *given: run(*[given[index] for index in kept])

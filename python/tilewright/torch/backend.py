"""The back end itself: AOTAutograd makes functional graphs of ATen ops, which are compiled one by one."""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.frontends.pytorch_ops import decompositions
from tilewright.torch.frozen import Frozen
from tilewright.torch.graphs import CompiledGraph, compile_graph
from tilewright.torch.layouts import mark_constants, mark_fixed
from tilewright.torch.options import BackendOptions
from tilewright.torch.shapes import PerShape, is_dynamic

_log = logging.getLogger("tilewright.torch")

_MOST_REPORTS = 256


@dataclass(frozen=True)
class GraphReport:
    """What became of a graph that `torch.compile` gave to the back end."""

    kind: str
    """"inference", "forward" or "backward"."""
    taken: int
    """Number of ops in our programs."""
    left: tuple[str, ...]
    """Notes on ops that PyTorch runs, with the reason."""
    kernels: int
    """Number of kernels of ours."""
    runs_in: str
    """"tilewright", "inductor" if that compiled the graph instead, or "eager"."""

    def __str__(self) -> str:
        notes = "".join(f"\n  {note}" for note in self.left)
        return f"{self.kind} graph: {self.taken} ops in {self.kernels} kernels, {len(self.left)} notes{notes}"


reports: deque[GraphReport] = deque(maxlen=_MOST_REPORTS)
"""Reports on the last graphs that were compiled, the newest last."""


def tilewright(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo: `torch.compile(model, backend="tilewright", options={...})`.

    `options` are those of `BackendOptions`; `mode` is for Inductor and has no effect. Raises `CompileError` for unknown
    options. Ops that the compiler does not take, or fails on, run in PyTorch; `explain()` says which.
    """
    chosen = BackendOptions.read(options)

    def compiler(kind: str) -> Callable[..., Any]:
        return lambda graph, inputs: _compile(graph, inputs, kind, chosen)

    compile_module = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    return compile_module(module, example_inputs)


def explain() -> str:
    """Returns what became of the last graphs, one after another: ops taken, kernels, and ops left with the reason."""
    return "\n".join(map(str, reports)) or "no graph was compiled"


def _compile(
    module: GraphModule, inputs: Sequence[Any], kind: str, options: BackendOptions
) -> Callable[..., Any]:
    note = functools.partial(_note, kind)

    def compile_with(
        graph: GraphModule, fixed: Collection[int], constants: Mapping[int, torch.Tensor]
    ) -> Callable[..., Any]:
        mark_fixed(graph, fixed)
        mark_constants(graph, constants)
        compiled = compile_graph(graph, options)
        inductor = None
        if compiled.left and options.fallback == "inductor":
            inductor = _compile_by_inductor(graph)
        _report(kind, compiled, "inductor" if inductor else "tilewright")
        return inductor or compiled.run

    def build(graph: GraphModule, fixed: Collection[int]) -> Callable[..., Any]:
        if freezes and fixed:
            return Frozen(
                graph, compile_with, fixed=fixed, note=functools.partial(note, runs_in="tilewright")
            )
        return compile_with(graph, fixed, {})

    fixed, freezes = _fixed_inputs(kind), kind == "inference" and options.freezes
    if is_dynamic(module):
        return make_boxed_func(PerShape(module, build, fixed=fixed, most=options.most_shapes, note=note))
    with unset_fake_temporarily():
        return make_boxed_func(build(module, fixed))


def _fixed_inputs(kind: str) -> Collection[int]:
    """Returns the positions of the inputs that are parameters and buffers, as AOTAutograd knows them, except for those
    that the graph changes."""
    context = torch._guards.TracingContext.try_get()
    if kind == "backward" or context is None or context.fw_metadata is None:
        return ()
    about = context.fw_metadata
    changed = {position for position, info in enumerate(about.input_info) if info.mutates_data}
    return frozenset(about.static_input_indices) - changed


def _compile_by_inductor(graph: GraphModule) -> Callable[..., Any] | None:
    """Returns the graph as compiled by Inductor, or None if that fails."""
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table

    fakes = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    try:
        with torch._guards.detect_fake_mode(fakes) or FakeTensorMode():
            # Inductor wants the ops that it has no kernels for in its own spelling.
            spelled = make_fx(graph, decomposition_table=select_decomp_table())(*fakes)
            run = compile_fx_inner(spelled, fakes)
    except Exception as error:  # whatever Inductor raises, the graph still runs without it
        _log.warning("Inductor does not compile a graph: %s", error)
        return None
    return lambda *arguments: run(list(arguments))


def _report(kind: str, compiled: CompiledGraph, runs_in: str) -> None:
    kernels = sum(len(part.program.kernels) for part in compiled.parts)
    report = GraphReport(kind, compiled.taken, compiled.left, kernels, runs_in)
    reports.append(report)
    _log.info("%s", report)


def _note(kind: str, text: str, *, runs_in: str = "eager") -> None:
    reports.append(GraphReport(kind, 0, (text,), 0, runs_in))
    _log.info("%s graph: %s", kind, text)

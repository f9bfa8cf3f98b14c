"""A part of a graph as a compiled program, in the place of the part's own module."""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.fx import Graph, GraphModule, Node

import tilewright.api.compilation as api
from tilewright.errors import TilewrightError
from tilewright.frontends.pytorch import import_torch
from tilewright.iree.compiler import IreeCompiler
from tilewright.runtime.torch_tensors import tensor_caller
from tilewright.system.workfolder import WorkFolder
from tilewright.torch.layouts import Layouts, use_contiguous
from tilewright.torch.options import BackendOptions
from tilewright.torch.support import computes
from tilewright.worker.process import lend_worker


class CompiledPart(torch.nn.Module):
    """Calls a program with the arguments of the graph that it was compiled from."""

    def __init__(self, program: Any, layouts: Layouts) -> None:
        super().__init__()
        self.program = program
        fixed = [position for position, entry in enumerate(layouts.inputs) if entry.is_fixed]
        self._caller = tensor_caller(program.runner(), program.signature, fixed=fixed)
        self._inputs, self._outputs, self._is_single = layouts.inputs, layouts.outputs, layouts.is_single

    def forward(self, *arguments: Any) -> Any:
        """Runs the program; every result has the strides that the graph gives it, if these are dense."""
        tensors = [
            arguments[entry.argument]
            if entry.order is None
            else arguments[entry.argument].permute(entry.order)
            for entry in self._inputs
        ]
        computed = self._caller(tensors) if self._outputs else []
        results = []
        for output in self._outputs:
            if output.result is not None:
                tensor = computed[output.result]
                results.append(tensor if output.order is None else tensor.permute(output.order))
            else:
                results.append(output.value if output.argument is None else arguments[output.argument])
        return results[0] if self._is_single else results


def compile_part(module: GraphModule, options: BackendOptions) -> CompiledPart:
    """Compiles a graph of ops that `support.refusal` accepts. Raises `TilewrightError` if that fails."""
    layouts = use_contiguous(module)
    program = api.compile(
        cast(Any, layouts.graph),
        threads=options.threads or torch.get_num_threads(),
        numerics=options.numerics,
        deploy=False,
    )
    return CompiledPart(program, layouts)


def failing_nodes(module: GraphModule) -> list[tuple[Node, str]]:
    """Returns the nodes of a graph that the front end refuses alone, with the reason. It tries each op once."""
    failing = []
    tried = set()
    for node in module.graph.nodes:
        if computes(node) and node.target not in tried:
            tried.add(node.target)
            reason = _front_end_error(_alone(node))
            if reason is not None:
                failing.append((node, reason))
    return failing


def _alone(node: Node) -> GraphModule:
    """Returns a graph of one op, and of the first of its results if it has several."""
    graph = Graph()
    values: dict[Node, Node] = {}
    for operand in node.all_input_nodes:
        values[operand] = graph.placeholder(operand.name)
        values[operand].meta = {"val": operand.meta["val"]}
    result = graph.node_copy(node, lambda operand: values[operand])
    value = node.meta["val"]
    if isinstance(value, list | tuple):
        first = graph.call_function(operator.getitem, (result, 0))
        first.meta = {"val": value[0]}
        result = first
    graph.output((result,))
    return GraphModule(torch.nn.Module(), graph)


def _front_end_error(module: GraphModule) -> str | None:
    """Returns why a graph cannot be imported and lowered to linalg, or None if it can."""
    folder = WorkFolder("compile")
    try:
        with lend_worker(folder.path) as worker:
            compiler = IreeCompiler(worker)
            imported = import_torch(
                use_contiguous(module).graph,
                examples=None,
                name="op",
                compiler=compiler,
                directory=folder.path,
            )
            compiler.compile_to(imported.source, "preprocessing", flags=[], name="op")
    except TilewrightError as error:
        return error.message
    finally:
        folder.cleanup()
    return None

"""Graphs in bf16 and f16, and their results with every op rounded once.

The reference evaluates op by op in NumPy and rounds each result to nearest even; for functions it uses our own kernels
of one op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cpu_levels
import ml_dtypes
import numpy as np
import tilewright

Array = np.ndarray[Any, np.dtype[Any]]


SHAPE = (23, 70)  # rows are not a multiple of a vector


DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}


ID, ROW = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}


UNARY: dict[str, Callable[[Array], Array]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.exp": np.exp,
    "math.tanh": np.tanh,
    "math.sqrt": np.sqrt,
}


FUNCTIONS = ("math.exp", "math.tanh", "math.sqrt")


STARTS = {"arith.addf": "0.0", "arith.maximumf": {"bf16": "0xFF80", "f16": "0xFC00"}}


@dataclass
class Graph:
    """A function of linalg ops, and its meaning: each of the `steps` computes a named value from earlier ones."""

    kind: str
    inputs: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    steps: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    rows: set[str] = field(default_factory=set)

    def input(self) -> str:
        self.inputs.append(f"x{len(self.inputs)}")
        return self.inputs[-1]

    def constant(self, value: float) -> str:
        return self._step("constant", (str(value),), f"%{{}} = arith.constant {value} : {self.kind}")

    def op(self, op: str, *operands: str) -> str:
        """Adds an elementwise op; operands may be tensors, values per row, or constants."""
        tensors = [name for name in operands if not name.startswith("c")]
        is_row = all(name in self.rows for name in tensors)
        maps = [ROW if name in self.rows and not is_row else ID for name in tensors]
        space = ROW.replace("(i, j)", "(i)") if is_row else ID
        if is_row:
            maps = [space] * len(tensors)
        letters = {name: f"%a{index}" for index, name in enumerate(tensors)}
        arguments = ", ".join(f"%a{index}: {self.kind}" for index in range(len(tensors)))
        types = ", ".join(self._type(name) for name in tensors)
        values = ", ".join(letters.get(name, f"%{name}") for name in operands)
        out = "r" if is_row else "t"
        iterators = ", ".join(['"parallel"'] * (1 if is_row else 2))
        result = self._step(
            op,
            operands,
            f"%{{}} = linalg.generic {{{{indexing_maps = [{', '.join([*maps, space])}], "
            f"iterator_types = [{iterators}]}}}} "
            f"ins({', '.join('%' + name for name in tensors)} : {types}) "
            f"outs(%empty_{out} : {self._tensor(is_row=is_row)}) {{{{\n"
            f"    ^bb0({arguments}, %o: {self.kind}):\n"
            f"      %v = {op} {values} : {self.kind}\n"
            f"      linalg.yield %v : {self.kind}\n"
            f"    }}}} -> {self._tensor(is_row=is_row)}",
        )
        if is_row:
            self.rows.add(result)
        return result

    def reduce(self, op: str, operand: str) -> str:
        """Adds a reduction of each row, accumulated in the type of the graph."""
        start = STARTS[op]
        literal = start if isinstance(start, str) else start[self.kind]
        name = f"start{len(self.steps)}"
        result = self._step(
            f"reduce {op}",
            (operand,),
            f"%{name} = arith.constant dense<{literal}> : {self._tensor(is_row=True)}\n"
            f"  %{{}} = linalg.reduce {{{{ {op} }}}} ins(%{operand} : {self._tensor(is_row=False)}) "
            f"outs(%{name} : {self._tensor(is_row=True)}) dimensions = [1]",
        )
        self.rows.add(result)
        return result

    def text(self, result: str) -> str:
        arguments = ", ".join(f"%{name}: {self._tensor(is_row=False)}" for name in self.inputs)
        body = "\n  ".join(self.lines)
        return (
            f"func.func @graph({arguments}) -> {self._type(result)} {{\n"
            f"  %empty_t = tensor.empty() : {self._tensor(is_row=False)}\n"
            f"  %empty_r = tensor.empty() : {self._tensor(is_row=True)}\n"
            f"  {body}\n  return %{result} : {self._type(result)}\n}}\n"
        )

    def evaluate(self, arrays: list[Array], dtype: np.dtype[Any]) -> Array:
        """Evaluates op by op, with each result in `dtype`."""
        values = dict(zip(self.inputs, arrays, strict=True))
        result = arrays[0]
        for name, op, operands in self.steps:
            if op == "constant":
                values[name] = np.asarray(float(operands[0])).astype(DTYPES[self.kind]).astype(dtype)
                continue
            of_rows = name in self.rows
            given = [values[o][:, None] if o in self.rows and not of_rows else values[o] for o in operands]
            result = values[name] = self._apply(op, given, dtype)
            assert result.dtype == dtype
        return result

    def _apply(self, op: str, given: list[Array], dtype: np.dtype[Any]) -> Array:
        if op.startswith("reduce "):
            combine = BINARY[op.removeprefix("reduce ")]
            total = given[0][:, 0]
            for column in range(1, given[0].shape[1]):
                total = combine(total, given[0][:, column]).astype(dtype)
            return total
        if op in FUNCTIONS and dtype != np.float64 and given[0].shape == SHAPE:
            return np.asarray(function(op, self.kind)(given[0])[0])
        apply: Callable[..., Array] = {**BINARY, **UNARY}[op]
        return apply(*given).astype(dtype)

    def _step(self, op: str, operands: tuple[str, ...], line: str) -> str:
        name = f"{'c' if op == 'constant' else 'v'}{len(self.steps)}"
        self.steps.append((name, op, operands))
        self.lines.append(line.format(name))
        return name

    def _tensor(self, *, is_row: bool) -> str:
        return f"tensor<{SHAPE[0]}x{self.kind}>" if is_row else f"tensor<{SHAPE[0]}x{SHAPE[1]}x{self.kind}>"

    def _type(self, name: str) -> str:
        return self._tensor(is_row=name in self.rows)


@cpu_levels.cached
def function(op: str, kind: str) -> tilewright.Program:
    """Compiles a kernel of this op alone."""
    graph = Graph(kind)
    return tilewright.compile(graph.text(graph.op(op, graph.input())), threads=1, numerics="strict")


def softmax(kind: str) -> Graph:
    graph = Graph(kind)
    x = graph.input()
    shifted = graph.op("arith.subf", x, graph.reduce("arith.maximumf", x))
    powers = graph.op("math.exp", shifted)
    graph.op("arith.divf", powers, graph.reduce("arith.addf", powers))
    return graph

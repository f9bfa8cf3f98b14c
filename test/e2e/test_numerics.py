"""Tests of the promises in docs/guide/numerics.md for bf16 and f16: in strict mode, each op rounds as it would alone;
by default, no result is further from float64 than that.

The reference evaluates op by op in NumPy and rounds each result to nearest even; for functions it uses our own kernels
of one op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cpu_levels
import ml_dtypes
import numpy as np
import pytest
import tilewright
from click.testing import CliRunner
from tilewright.cli.main import cli
from tilewright.errors import CompileError, PlanError

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

Array = np.ndarray[Any, np.dtype[Any]]

_SHAPE = (23, 70)  # rows are not a multiple of a vector
_DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}
_ID, _ROW = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
}
_UNARY: dict[str, Callable[[Array], Array]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.exp": np.exp,
    "math.tanh": np.tanh,
    "math.sqrt": np.sqrt,
}
_FUNCTIONS = ("math.exp", "math.tanh", "math.sqrt")
_STARTS = {"arith.addf": "0.0", "arith.maximumf": {"bf16": "0xFF80", "f16": "0xFC00"}}


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
        maps = [_ROW if name in self.rows and not is_row else _ID for name in tensors]
        space = _ROW.replace("(i, j)", "(i)") if is_row else _ID
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
        start = _STARTS[op]
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
                values[name] = np.asarray(float(operands[0])).astype(_DTYPES[self.kind]).astype(dtype)
                continue
            of_rows = name in self.rows
            given = [values[o][:, None] if o in self.rows and not of_rows else values[o] for o in operands]
            result = values[name] = self._apply(op, given, dtype)
            assert result.dtype == dtype
        return result

    def _apply(self, op: str, given: list[Array], dtype: np.dtype[Any]) -> Array:
        if op.startswith("reduce "):
            combine = _BINARY[op.removeprefix("reduce ")]
            total = given[0][:, 0]
            for column in range(1, given[0].shape[1]):
                total = combine(total, given[0][:, column]).astype(dtype)
            return total
        if op in _FUNCTIONS and dtype != np.float64 and given[0].shape == _SHAPE:
            return np.asarray(_function(op, self.kind)(given[0])[0])
        apply: Callable[..., Array] = {**_BINARY, **_UNARY}[op]
        return apply(*given).astype(dtype)

    def _step(self, op: str, operands: tuple[str, ...], line: str) -> str:
        name = f"{'c' if op == 'constant' else 'v'}{len(self.steps)}"
        self.steps.append((name, op, operands))
        self.lines.append(line.format(name))
        return name

    def _tensor(self, *, is_row: bool) -> str:
        return (
            f"tensor<{_SHAPE[0]}x{self.kind}>" if is_row else f"tensor<{_SHAPE[0]}x{_SHAPE[1]}x{self.kind}>"
        )

    def _type(self, name: str) -> str:
        return self._tensor(is_row=name in self.rows)


@cpu_levels.cached
def _function(op: str, kind: str) -> tilewright.Program:
    """Compiles a kernel of this op alone."""
    graph = Graph(kind)
    return tilewright.compile(graph.text(graph.op(op, graph.input())), threads=1, numerics="strict")


def chain(kind: str, seed: int) -> Graph:
    """Builds random arithmetic in which every step reads the result of the last one."""
    random = np.random.default_rng(seed)
    graph = Graph(kind)
    known = [graph.input(), graph.input(), graph.constant(1.375)]
    last = graph.op("arith.addf", known[0], known[1])
    for _ in range(10):
        if random.random() < 0.7:
            other = str(random.choice(known))
            pair = (last, other) if random.random() < 0.5 else (other, last)
            op = str(random.choice(list(_BINARY)))
            # Inputs and constants are away from 0, and serve as divisors.
            last = graph.op(op, *((last, other) if op == "arith.divf" else pair))
        else:
            op = str(random.choice(["arith.negf", "math.absf", "math.tanh", "sqrt", "exp"]))
            if op == "sqrt":
                last = graph.op("math.sqrt", graph.op("math.absf", last))
            elif op == "exp":
                last = graph.op("math.exp", graph.op("math.tanh", last))
            else:
                last = graph.op(op, last)
    return graph


def softmax(kind: str) -> Graph:
    graph = Graph(kind)
    x = graph.input()
    shifted = graph.op("arith.subf", x, graph.reduce("arith.maximumf", x))
    powers = graph.op("math.exp", shifted)
    graph.op("arith.divf", powers, graph.reduce("arith.addf", powers))
    return graph


def layer_norm(kind: str) -> Graph:
    graph = Graph(kind)
    x, scale = graph.input(), graph.input()
    count, epsilon = graph.constant(float(_SHAPE[1])), graph.constant(0.0009765625)
    mean = graph.op("arith.divf", graph.reduce("arith.addf", x), count)
    centred = graph.op("arith.subf", x, mean)
    squares = graph.op("arith.mulf", centred, centred)
    variance = graph.op("arith.divf", graph.reduce("arith.addf", squares), count)
    deviation = graph.op("math.sqrt", graph.op("arith.addf", variance, epsilon))
    graph.op("arith.mulf", graph.op("arith.divf", centred, deviation), scale)
    return graph


_CHAINS = 6
_GRAPHS: dict[str, Callable[[str], Graph]] = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    **{f"chain-{seed}": lambda kind, seed=seed: chain(kind, seed) for seed in range(_CHAINS)},
}


@dataclass(frozen=True)
class Case:
    """A graph, compiled in both modes and evaluated."""

    graph: Graph
    inputs: list[Array]
    strict: tilewright.Program
    default: tilewright.Program


@cpu_levels.cached
def _case(name: str, kind: str) -> Case:
    graph = _GRAPHS[name](kind)
    random = np.random.default_rng(1)
    signs = random.choice([-1.0, 1.0], (len(graph.inputs), *_SHAPE))
    inputs = [(sign * random.uniform(0.5, 2.0, _SHAPE)).astype(_DTYPES[kind]) for sign in signs]
    text = graph.text(graph.steps[-1][0])
    strict = tilewright.compile(text, threads=1, numerics="strict", strict=True)
    default = tilewright.compile(text, threads=1, strict=True)
    for program in (strict, default):
        assert len(program.kernels) == 1, "nothing is fused"
    return Case(graph, inputs, strict, default)


@pytest.mark.parametrize("kind", _DTYPES)
@pytest.mark.parametrize("name", _GRAPHS)
def test_strict_rounds_as_op_by_op(name: str, kind: str) -> None:
    case = _case(name, kind)
    (ours,) = case.strict(*case.inputs)
    expected = case.graph.evaluate(case.inputs, _DTYPES[kind])
    np.testing.assert_array_equal(ours.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("kind", _DTYPES)
@pytest.mark.parametrize("name", _GRAPHS)
def test_default_is_as_close_to_float64(name: str, kind: str) -> None:
    """The tolerance is 5%, because the remaining rounding of a value near a midpoint may go either way."""
    case = _case(name, kind)
    exact = case.graph.evaluate([x.astype(np.float64) for x in case.inputs], np.dtype(np.float64))

    def error(program: tilewright.Program) -> float:
        (ours,) = program(*case.inputs)
        return float(np.sqrt(np.mean((ours.astype(np.float64) - exact) ** 2)))

    assert error(case.default) <= 1.05 * error(case.strict)


@pytest.mark.parametrize("kind", _DTYPES)
def test_explain_declares_what_was_left_out(kind: str) -> None:
    case = _case("softmax", kind)
    default, strict = case.default.explain(), case.strict.explain()
    assert "default numerics" in default
    assert f"to {kind} left out between ops, where values stay in f32" in default
    assert f"accumulated in f32, rounded once to {kind}, reassociated over lanes" in default
    assert "by a reciprocal where lanes share the divisor" in default
    assert "strict numerics" in strict
    assert f"accumulated in {kind}" in strict
    assert "f32" not in strict
    assert "left out" not in strict
    assert "reciprocal" not in strict


def test_strict_divides_in_f32_as_well() -> None:
    """By default a row is multiplied by the reciprocal of its divisor, which does not always give the nearest
    quotient."""
    text = f"""
    func.func @divide(%x: tensor<64x256xf32>, %d: tensor<64xf32>) -> tensor<64x256xf32> {{
      %e = tensor.empty() : tensor<64x256xf32>
      %y = linalg.generic {{indexing_maps = [{_ID}, {_ROW}, {_ID}], iterator_types = ["parallel", "parallel"]}}
          ins(%x, %d : tensor<64x256xf32>, tensor<64xf32>) outs(%e : tensor<64x256xf32>) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        %v = arith.divf %a, %b : f32
        linalg.yield %v : f32
      }} -> tensor<64x256xf32>
      return %y : tensor<64x256xf32>
    }}"""
    random = np.random.default_rng(2)
    x, d = random.uniform(1, 2, (64, 256)).astype(np.float32), random.uniform(1, 2, 64).astype(np.float32)
    quotient = x / d[:, None]
    (strict,) = tilewright.compile(text, threads=1, numerics="strict", strict=True)(x, d)
    (default,) = tilewright.compile(text, threads=1, strict=True)(x, d)
    np.testing.assert_array_equal(strict, quotient)
    exact = x.astype(np.float64) / d.astype(np.float64)[:, None]
    assert np.max(np.abs(default - exact) / np.spacing(quotient)) <= 1.5


def test_a_plan_is_carried_out_in_its_own_mode() -> None:
    case = _case("softmax", "bf16")
    text = case.graph.text(case.graph.steps[-1][0])
    with pytest.raises(PlanError, match="made with numerics 'strict', carried out with 'default'"):
        tilewright.compile(text, threads=1, plan=case.strict.plan)
    again = tilewright.compile(text, threads=1, plan=case.strict.plan, numerics="strict")
    assert again.plan == case.strict.plan


@pytest.mark.cpu_levels("cpu")
def test_unknown_numerics_are_refused() -> None:
    with pytest.raises(CompileError, match="numerics='exact' is unknown"):
        tilewright.compile("", numerics="exact")  # type: ignore[arg-type]


@pytest.mark.cpu_levels("cpu")
def test_the_command_line_has_it_too(tmp_path: Path) -> None:
    graph = softmax("f16")
    (tmp_path / "softmax.mlir").write_text(graph.text(graph.steps[-1][0]))
    ran = CliRunner().invoke(cli, ["explain", str(tmp_path / "softmax.mlir"), "--numerics", "strict"])
    assert ran.exit_code == 0, ran.output
    assert "strict numerics" in ran.output

"""Tests of IREE alone, with our default flags, against float64, because ops that stay with IREE are compiled with
them.

Operators are compiled as they are, and with symbols for their sizes. A program with symbols runs with sizes on both
sides of 64, because IREE's data tiling miscomputes larger ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from compiled import THREADS, ahead
from onnx import ModelProto
from tilewright.errors import IreeError
from tilewright.frontends import import_model
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING, without_data_tiling
from tilewright.iree.flags import iree_flags
from tilewright.records.signature import Signature
from tilewright.records.targets import resolve_targets
from tilewright.reference.oracle import Array, float64_reference, model_tolerance, relative_error
from tilewright.runtime.session import Session
from tilewright.worker.process import lend_worker

from fuzz.contraction_table import contraction_table
from fuzz.merge import merge
from fuzz.op_table import OpCase, op_table
from fuzz.symbols import changeable_sizes, resized, with_symbols

_CASES_PER_MODEL = 8
"""Cases that share a model. If IREE refuses one of them, the others are compiled again, so these are few."""
_BEYOND = 61
"""Number that is added to sizes. It is odd, so even sizes become odd and odd ones even. The largest changeable size of
every case is at least 5, so it becomes one above 64."""
_MOST_ELEMENTS = (
    600  # most elements of an input with an enlarged size, because sums of more would overflow their type
)


@dataclass(frozen=True)
class _Batch:
    """Cases that are compiled as one model."""

    cases: tuple[OpCase, ...]
    is_dynamic: bool


_MakeBatches = Callable[[Sequence[OpCase], str], dict[str, _Batch]]


def _may_be_dynamic(case: OpCase) -> bool:
    # IREE does not import a ReduceProd of a dynamic shape.
    return bool(changeable_sizes(case)) and not case.id.startswith("reduceprod")


def _batches(static: Sequence[OpCase], dynamic: Sequence[OpCase], name: str) -> dict[str, _Batch]:
    return {
        f"{name}-{kind}-{start // _CASES_PER_MODEL}": _Batch(
            tuple(chosen[start : start + _CASES_PER_MODEL]), is_dynamic=kind == "dynamic"
        )
        for kind, chosen in (("static", static), ("dynamic", dynamic))
        for start in range(0, len(chosen), _CASES_PER_MODEL)
    }


def _every(cases: Sequence[OpCase], name: str) -> dict[str, _Batch]:
    """Returns batches with all cases, as they are and with symbols."""
    return _batches(cases, [case for case in cases if _may_be_dynamic(case)], name)


def _in_turns(cases: Sequence[OpCase], name: str) -> dict[str, _Batch]:
    """Returns batches with each case once: as it is and with symbols by turns.

    Argmax and argmin are taken as they are, because IREE refuses them with symbols, and with them their batches.
    """
    dynamic = [case for case in cases if _may_be_dynamic(case) and not case.id.startswith("arg")][::2]
    return _batches([case for case in cases if case not in dynamic], dynamic, name)


def _sample_of_ops() -> list[OpCase]:
    """Returns, for each operator, the last case in f32 or, if there is none, in any type; it has the highest rank."""
    last: dict[str, OpCase] = {}
    for case in op_table():
        op, _, rest = case.id.partition("-")
        if rest.startswith("f32") or op not in last:
            last[op] = case
    return list(last.values())


def _sample_of_contractions() -> list[OpCase]:
    """Returns the first case of each kind in one type; the kinds take the types by turns."""
    first: dict[str, dict[str, OpCase]] = {}
    for case in contraction_table():
        kind, dtype = case.id.split("-")[:2]
        first.setdefault(kind, {}).setdefault(dtype, case)
    return [list(of_kind.values())[place % len(of_kind)] for place, of_kind in enumerate(first.values())]


def _by_type(cases: Sequence[OpCase], name: str, batches: _MakeBatches) -> dict[str, _Batch]:
    """Returns batches with one type each: with data tiling, IREE fails on bf16 batches if the processor has bf16
    products."""
    made: dict[str, _Batch] = {}
    for dtype in ("f32", "f16", "bf16", "f64"):
        made |= batches([case for case in cases if case.id.split("-")[1] == dtype], f"{name}-{dtype}")
    return made


_SAMPLE = _in_turns(_sample_of_ops(), "ops") | _by_type(_sample_of_contractions(), "contractions", _every)
_ALL = _every(op_table(), "all-ops") | _by_type(contraction_table(), "all-contractions", _every)


def _mistakes(name: str) -> list[str]:
    batch = {**_SAMPLE, **_ALL}[name]
    return _mistakes_of(batch.cases, is_dynamic=batch.is_dynamic)


def _mistakes_of(cases: Sequence[OpCase], *, is_dynamic: bool) -> list[str]:
    """Returns the wrong results. If IREE does not compile a batch, each case is compiled alone; a refusal is not a
    wrong number."""
    models = {case.id: _model(case, is_dynamic=is_dynamic) for case in cases}
    with tempfile.TemporaryDirectory(prefix="tilewright-flags-") as folder:
        try:
            run = _compile(merge(models), Path(folder))
        except IreeError:
            half = len(cases) // 2
            parts = (cases[:half], cases[half:]) if half else ()
            return [wrong for part in parts for wrong in _mistakes_of(part, is_dynamic=is_dynamic)]
        found = _wrong(run, models, {case.id: case.inputs for case in cases})
        if is_dynamic:
            found += _wrong(run, models, {case.id: _beyond(case) for case in cases})
    return found


def _model(case: OpCase, *, is_dynamic: bool) -> ModelProto:
    model = with_symbols(case) if is_dynamic else case.model
    assert model is not None
    return model


def _beyond(case: OpCase) -> tuple[Array, ...]:
    """Returns inputs with the largest changeable size above 64, or with all of these sizes if the inputs stay
    small."""
    rng = np.random.default_rng(list(case.id.encode()))
    sizes = sorted(changeable_sizes(case))
    assert sizes[-1] + _BEYOND > 64, f"all sizes of {case.id} are too small"
    every = resized(case, [(size, size + _BEYOND) for size in sizes], rng)
    is_op = all(array.ndim < 2 or array.size <= _MOST_ELEMENTS for array in every)
    is_contraction = any(
        node.op_type in ("MatMul", "Conv", "ConvTranspose", "Gemm") for node in case.model.graph.node
    )
    return every if is_op or is_contraction else resized(case, [(sizes[-1], sizes[-1] + _BEYOND)], rng)


_Run = Callable[[Sequence[Array]], list[Array]]


def _compile(model: ModelProto, folder: Path) -> _Run:
    """Compiles with stock IREE and the flags of our own modules."""
    flags = iree_flags(resolve_targets("cpu", threads=THREADS)[-1], host=True)
    with lend_worker(folder) as worker:
        iree = IreeCompiler(worker)
        imported = import_model(model, compiler=iree, directory=folder)
        front = iree.compile_to(imported.source, "preprocessing", flags=flags, name=imported.name)
        untiled = [flag for flag in flags if flag != DATA_TILING]
        if without_data_tiling(front) is not None:
            flags = untiled
        path = folder / "alone.vmfb"
        try:
            module = iree.compile(imported.source, flags=flags, name=imported.name)
        except IreeError:
            if flags == untiled:
                raise
            module = iree.compile(imported.source, flags=untiled, name=imported.name)
        path.write_bytes(module)
    signature = imported.signature
    assert isinstance(signature, Signature)
    session = Session(path, imported.parameters, entry=imported.entry, threads=THREADS)

    def run(inputs: Sequence[Array]) -> list[Array]:
        call = session.bind(signature.check_inputs(inputs), signature)
        call()
        return call.outputs()

    return run


def _wrong(run: _Run, models: Mapping[str, ModelProto], inputs: Mapping[str, Sequence[Array]]) -> list[str]:
    outputs = run([array for name in models for array in inputs[name]])
    found = []
    for (name, model), y in zip(models.items(), outputs, strict=True):
        expected = float64_reference(model, inputs[name])[0]
        error, limit = relative_error(y, expected), model_tolerance(model)
        if error > limit:
            found.append(
                f"{name} {[array.shape for array in inputs[name]]}: {error:.1e}, at most {limit:.1e}"
            )
    return found


@pytest.fixture(scope="module")
def mistakes_of(request: pytest.FixtureRequest) -> Iterator[Callable[[str], list[str]]]:
    yield from ahead(request, "batch", _mistakes)


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("batch", _SAMPLE)
def test_default_flags_are_right(batch: str, mistakes_of: Callable[[str], list[str]]) -> None:
    assert mistakes_of(batch) == []


@pytest.mark.full
@pytest.mark.parametrize("batch", _ALL)
def test_default_flags_are_right_for_every_operator(
    batch: str, mistakes_of: Callable[[str], list[str]]
) -> None:
    assert mistakes_of(batch) == []

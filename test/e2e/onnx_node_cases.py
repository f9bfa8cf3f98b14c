"""The process that judges ONNX's own node tests: `python -m onnx_node_cases`. A test may kill it.

The onnx package makes the tests when the file of an operator is imported: a model of one node, its inputs and outputs.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import tilewright
from onnx import ModelProto, numpy_helper
from onnx.backend.test.case import node as node_tests
from onnx.backend.test.case.test_case import TestCase
from tilewright.worker import serving as worker

Array = np.ndarray[Any, Any]

# Two runs of these operators draw different numbers.
_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_THREADS = 1


def operators() -> list[str]:
    """Returns the names of the files with tests, which are named after operators. Those of another domain are in a
    package."""
    modules = pkgutil.iter_modules(node_tests.__path__)
    return sorted(m.name for m in modules if not m.ispkg and not m.name.startswith("_"))


def cases_of(operator: str) -> dict[str, TestCase]:
    """Returns the tests of a file by name."""
    made = node_tests._NodeTestCases
    before = len(made)
    np.random.seed(0)  # onnx draws inputs with it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"{node_tests.__name__}.{operator}")
    return {case.name: case for case in made[before:]}


def judge(case: TestCase) -> tuple[str, str]:
    """Returns a verdict and its reason: "right", "refused", "wrong", or "not judged" for a test without expected
    numbers."""
    model = case.model
    assert model is not None and case.data_sets
    if reason := _why_not_judged(model):
        return "not judged", reason
    given, expected = ([_array(value) for value in values] for values in case.data_sets[0])
    verdict = _judge_model(model, given, expected, case)
    if verdict[0] == "refused" and (fixed := _with_constants(model, given)):
        # The reason for the unchanged model says more.
        again = _judge_model(*fixed, expected, case)
        verdict = again if again[0] != "refused" else verdict
    return verdict


def _with_constants(model: ModelProto, given: Sequence[Array]) -> tuple[ModelProto, list[Array]] | None:
    """Returns the model with axes, shapes, pads and the like as initializers, as in most models; None if it has none
    of them."""
    fixed = ModelProto()
    fixed.CopyFrom(model)
    is_resize = any(node.op_type == "Resize" for node in model.graph.node)
    left: list[Array] = []
    del fixed.graph.input[:]
    for place, (value, array) in enumerate(zip(model.graph.input, given, strict=True)):
        if place > 0 and (array.dtype in (np.int32, np.int64) or (is_resize and array.ndim == 1)):
            fixed.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            fixed.graph.input.append(value)
            left.append(array)
    return (fixed, left) if len(left) < len(given) else None


def _judge_model(
    model: ModelProto, given: Sequence[Array], expected: Sequence[Array], case: TestCase
) -> tuple[str, str]:
    try:
        outputs = tilewright.compile(model, threads=_THREADS, tuning=False)(*given)
    except tilewright.TilewrightError as error:
        if " died by " in str(error):
            return "wrong", str(error)
        return "refused", f"{type(error).__name__}: {error}"
    if len(outputs) != len(expected):
        return "wrong", f"{len(outputs)} outputs instead of {len(expected)}"
    for index, (ours, theirs) in enumerate(zip(outputs, expected, strict=True)):
        if message := _difference(ours, theirs, case):
            return "wrong", f"output {index}: {message}"
    return "right", ""


def _why_not_judged(model: ModelProto) -> str:
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    drawing = _RANDOM & {node.op_type for node in nodes}
    if drawing:
        return f"{', '.join(sorted(drawing))} draws random numbers"
    for value in (*model.graph.input, *model.graph.output):
        if not value.type.HasField("tensor_type"):
            return f"'{value.name}' is no tensor"
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return f"'{value.name}' holds strings"
    return ""


def _array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _difference(ours: Array, theirs: Array, case: TestCase) -> str:
    """Describes the differences that exceed the test's tolerance; "" if there are none.

    The test allows a relative error. In addition, two units in the last place are allowed for coarse types, also of
    the largest element, because a sum of such elements rounds by as much.
    """
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"{ours.dtype} instead of {theirs.dtype}"
    if not _is_float(theirs):
        differing = int(np.count_nonzero(ours != theirs))
        return f"{differing} of {theirs.size} differ" if differing else ""
    unit = float(ml_dtypes.finfo(theirs.dtype).eps)
    wide, exact = ours.astype(np.float64), theirs.astype(np.float64)
    largest = np.abs(exact[np.isfinite(exact)]).max(initial=0)
    near = np.isclose(
        wide, exact, rtol=max(case.rtol, 2 * unit), atol=max(case.atol, 2 * unit * largest), equal_nan=True
    )
    if near.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~near)[0])
    return f"{int((~near).sum())} of {near.size} differ, at {list(place)} {wide[place]} instead of {exact[place]}"


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name.startswith(("bfloat", "float"))


_known: dict[str, dict[str, TestCase]] = {}


def answer_names(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    operator = header["operator"]
    if operator not in _known:
        _known[operator] = cases_of(operator)
    return {"names": list(_known[operator])}, b""


def answer_judge(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    answer_names(header, blob)
    verdict, reason = judge(_known[header["operator"]][header["case"]])
    return {"verdict": verdict, "reason": reason}, b""


if __name__ == "__main__":
    with tilewright.keep_compilers():
        worker.main("onnx_node_cases")

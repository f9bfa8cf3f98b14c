"""Rules for ONNX Runtime's own ops: their rewritten models give what ONNX Runtime computes.

The rewritten model runs in ONNX's evaluator, so that a case takes milliseconds; test_contrib_compiled.py compiles it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from contrib_cases import CASES, Case, compare
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tilewright.frontends.onnx_importer import rewrite_model

_TOLERANCE = 32 * 2.0**-24
"""Roundings of f32 in both evaluators; 4 are the most that any case needs."""


@pytest.mark.parametrize("name", CASES)
def test_the_rewritten_model_computes_the_same(name: str) -> None:
    case = CASES[name]
    expected = case.expected()
    model = case.typed_model(expected)
    rewrite_model(model)
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx"}
    with np.errstate(all="ignore"):
        actual = ReferenceEvaluator(model).run(None, dict(case.inputs))
    compare(case, list(actual), expected, tolerance=_TOLERANCE)


def test_an_unknown_op_is_named() -> None:
    case = Case("MurmurHash3", {"x": np.array([1], np.int32)})
    model = case.typed_model([np.zeros(1, np.uint32)])
    with pytest.raises(tilewright.ModelError, match=r"'node'.*com\.microsoft\.MurmurHash3 is not supported"):
        tilewright.compile(model)


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("Attention", {"do_rotary": 1}, "do_rotary"),
        ("GroupQueryAttention", {"kv_cache_bit_width": 8}, "kv_cache"),
    ],
)
def test_forms_that_are_not_supported_are_named(op: str, attributes: dict[str, Any], message: str) -> None:
    case = CASES["attention" if op == "Attention" else "grouped_token"]
    model = case.typed_model([np.zeros(1, np.float32)] * len(case.outputs))
    for name, value in attributes.items():
        model.graph.node[0].attribute.append(helper.make_attribute(name, value))
    with pytest.raises(tilewright.ModelError, match=rf"'node'.*{op}: the attribute {message}"):
        tilewright.compile(model)

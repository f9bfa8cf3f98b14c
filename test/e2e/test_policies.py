"""Plans of every policy compute what the model says, on the CPU and on a simulated GPU."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.records.options import Policy
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=4)

POLICIES = [policy for policy in get_args(Policy) if policy != "exhaustive"]


def attention_and_norm() -> onnx.ModelProto:
    """A head of an attention with its projection, a residual sum and a norm of whole rows: contractions, reductions,
    broadcasts and a transpose."""
    g = GraphBuilder("attention_and_norm")
    rows, width = 24, 40
    q, k, v = (g.input(name, (rows, width)) for name in "qkv")
    scores = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[1, 0])), axis=-1)
    weight = g.constant((g.rng.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32))
    projected = g.op("Add", g.op("MatMul", g.op("MatMul", scores, v), weight), q)
    norm = g.op("LayerNormalization", projected, g.vector(width, mean=1.0), g.vector(width), axis=-1)
    g.output(norm, (rows, width))
    return g.build()


def branches() -> onnx.ModelProto:
    """Two branches that read one tensor, with a slice, a concatenation and a sum, beside an independent result."""
    g = GraphBuilder("branches")
    x, y = g.input("x", (18, 32)), g.input("y", (7, 5))
    left = g.op("Sigmoid", g.op("Slice", x, g.ints([0]), g.ints([16]), g.ints([1])))
    right = g.op("Exp", g.op("Slice", x, g.ints([16]), g.ints([32]), g.ints([1])))
    joined = g.op("Concat", right, left, axis=1)
    g.output(g.op("Sub", joined, g.op("ReduceMean", joined, axes=[1], keepdims=1)), (18, 32))
    g.output(g.op("Tanh", y), (7, 5))
    return g.build()


MODELS = {"attention_and_norm": attention_and_norm, "branches": branches}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", MODELS)
def test_plans_of_a_policy_compute_the_model(name: str, policy: Policy) -> None:
    model = MODELS[name]()
    inputs = random_inputs(model, 3)
    program = tilewright.compile(model, policy=policy, threads=2, strict=True, tuning=False, cache=False)
    assert program.plan is not None
    assert program.plan.policy == policy
    for output, expected in zip(program(*inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= model_tolerance(model)


@pytest.mark.parametrize("policy", POLICIES)
def test_plans_of_a_policy_compute_the_model_on_a_simulated_gpu(policy: Policy, tmp_path: Path) -> None:
    model = attention_and_norm()
    inputs = random_inputs(model, 3)
    program = tilewright.compile(model, "cuda:h200", policy=policy, dump_dir=tmp_path, tuning=False)
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    for output, expected in zip(ran.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= model_tolerance(model)

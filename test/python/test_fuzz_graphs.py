"""The fuzzer's models: each seed is one valid graph, and together they hold every operator in every type."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from tilewright.reference.oracle import INEXACT_IN_ORT, float64_reference, ort_reference, random_inputs

from fuzz.builder import FLOATS, INTEGERS, ModelBuilder
from fuzz.graphs import pairs, random_graph
from fuzz.hostile_mlir import hostile_text, samples
from fuzz.judge import Expected as Expectation
from fuzz.judge import operators
from fuzz.kinds import KINDS
from fuzz.merge import merge, part_of
from fuzz.symbols import with_known_sizes
from fuzz.wide import NEW


def test_a_seed_is_one_graph() -> None:
    assert random_graph(7).SerializeToString() == random_graph(7).SerializeToString()
    assert random_graph(7).SerializeToString() != random_graph(8).SerializeToString()


def test_graphs_are_valid_and_hold_every_operator_in_every_type() -> None:
    counts = {f"{op} {dtype}": 0 for op, dtype in pairs()}
    for seed in range(1200):
        model = random_graph(seed)
        if seed < 100:
            onnx.checker.check_model(model, full_check=True)
        for name, count in operators(model).items():
            counts[name] += count
    assert [name for name, count in counts.items() if count < 2] == []


def test_window_graphs_are_valid_and_hold_what_reads_at_edges() -> None:
    counts: Counter[str] = Counter()
    for seed in range(200):
        model = KINDS["windows"].graph(seed)
        if seed < 50:
            onnx.checker.check_model(model, full_check=True)
        counts += operators(model)
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("Pad", "Slice", "Concat", "Where"), (*FLOATS, *INTEGERS)
    )
    wanted |= dict.fromkeys(("Conv", "MaxPool", "AveragePool", "ReduceMean"), ("f32", "f16"))
    assert [
        f"{op} {dtype}" for op, types in wanted.items() for dtype in types if not counts[f"{op} {dtype}"]
    ] == []


def test_wide_graphs_are_valid_and_hold_every_operator() -> None:
    counts: Counter[str] = Counter()
    for seed in range(300):
        model = KINDS["wide"].graph(seed)
        if seed < 50:
            onnx.checker.check_model(model, full_check=True)
        counts += Counter(node.op_type for node in model.graph.node)
    assert [op for family in NEW for op in family.ops if counts[op] < 2] == []


def test_references_of_wide_graphs_are_those_of_onnx_runtime() -> None:
    """ONNX Runtime computes in the graph's own types, and lacks some operators in some of them."""
    compared = 0
    for seed in range(60):
        expected = Expectation.of(KINDS["wide"].graph(seed), seed, "wide")
        if any(node.op_type in INEXACT_IN_ORT for node in expected.model.graph.node):
            continue
        try:
            outputs = ort_reference(expected.model, expected.inputs)
        except Exception:  # of many kinds, for what it lacks
            continue
        worst, limit = expected.judged(outputs)
        assert worst <= limit, seed
        compared += 1
    assert compared > 20


def test_special_inputs_hold_special_values() -> None:
    m = ModelBuilder("special")
    m.output(m.op("Neg", m.input((400,), "f32")), (400,), "f32")
    m.output(m.op("Neg", m.input((400,), "i64")), (400,), "i64")
    floats, integers = KINDS["special"].inputs(m.build(), 3)
    assert np.isnan(floats).any() and np.isinf(floats).any() and np.signbit(floats[floats == 0]).any()
    assert {np.iinfo(np.int64).min, np.iinfo(np.int64).max} <= set(integers.tolist())


def test_open_dims_are_named_after_their_sizes() -> None:
    opened = [KINDS["dynamic"].graph(seed) for seed in range(20)]
    dims = [
        dim for model in opened for value in model.graph.input for dim in value.type.tensor_type.shape.dim
    ]
    assert any(dim.dim_param for dim in dims)
    for seed, model in enumerate(opened):
        known = with_known_sizes(model).graph.input
        for value, closed in zip(KINDS["wide"].graph(seed).graph.input, known, strict=True):
            assert value.type.tensor_type.shape == closed.type.tensor_type.shape


def test_twins_are_equal_in_float64() -> None:
    for seed in range(40):
        model = KINDS["twins"].graph(seed)
        onnx.checker.check_model(model, full_check=True)
        Expectation.of(model, seed, "twins")  # raises an error if they differ


def test_merged_models_compute_what_they_compute_alone() -> None:
    models = {"a": random_graph(1), "b": random_graph(2)}
    inputs = {name: random_inputs(model, 5) for name, model in models.items()}
    alone = [y for name, model in models.items() for y in float64_reference(model, inputs[name])]
    together = float64_reference(merge(models), [x for name in models for x in inputs[name]])
    for y, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(y, expected)
    assert {part_of(node.name or node.output[0]) for node in merge(models).graph.node} == {"a", "b"}


def test_lit_inputs_are_broken_the_same_way_every_time() -> None:
    folder = Path(__file__).resolve().parents[1]
    assert len(samples(folder)) > 150
    assert hostile_text(5, folder) == hostile_text(5, folder)
    assert len({hostile_text(seed, folder)[2] for seed in range(40)}) > 30

"""Unrolled cells of recurrent models become loops, if they are equal and may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from tilewright.frontends.rewrites.graph import graphs_in
from tilewright.frontends.rewrites.rolled import roll_cells
from tilewright.reference.drawing import random_inputs

from benchmarks.workloads.builder import GraphBuilder

HIDDEN, STEPS = 128, 6


class Cells:
    """Builds recurrent models as exporters write them out; `taken` says how they take the inputs of the steps."""

    def __init__(
        self, *, steps: int = STEPS, hidden: int = HIDDEN, batch: int = 2, taken: str = "Gather"
    ) -> None:
        self.graph = GraphBuilder("cells")
        self.hidden, self.batch = hidden, batch
        self.sequence = self.graph.input("x", (batch, steps, hidden))
        self.inputs = [self._element(step, taken) for step in range(steps)]
        if taken == "Split":
            parts = self.graph.ops(
                "Split", self.sequence, self.graph.ints([1] * steps), results=steps, axis=1
            )
            self.inputs = [self.graph.op("Squeeze", part, self.graph.ints([1])) for part in parts]

    def _element(self, step: int, taken: str) -> str:
        g = self.graph
        if taken == "Slice":
            part = g.op("Slice", self.sequence, g.ints([step]), g.ints([step + 1]), g.ints([1]))
            return g.op("Squeeze", part, g.ints([1]))
        return g.op("Gather", self.sequence, g.constant(np.array(step)), axis=1)

    def zeros(self) -> str:
        return self.graph.constant(np.zeros((self.batch, self.hidden), np.float32))

    def weights(self, gates: int = 1) -> str:
        return self.graph.weight((self.hidden, gates * self.hidden), fan_in=self.hidden)

    def lstm(self, inputs: Sequence[str]) -> list[str]:
        g = self.graph
        w, u, bias = self.weights(4), self.weights(4), g.vector(4 * self.hidden)
        h, c, results = self.zeros(), self.zeros(), []
        for x in inputs:
            gates = g.op("Add", g.op("Add", g.op("MatMul", x, w), g.op("MatMul", h, u)), bias)
            i, f, o, n = g.ops("Split", gates, g.ints([self.hidden] * 4), results=4, axis=1)
            kept = g.op("Mul", g.op("Sigmoid", f), c)
            c = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", n)))
            h = g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c))
            results.append(h)
        return results

    def plain(self, inputs: Sequence[str], *, joined: bool = False, first: str | None = None) -> list[str]:
        """Cells of one product; `joined`: of the input and the state side by side."""
        g = self.graph
        if joined:
            w = g.weight((2 * self.hidden, self.hidden), fan_in=2 * self.hidden)
        else:
            w, u = self.weights(), self.weights()
        h, results = first or self.zeros(), []
        for x in inputs:
            if joined:
                h = g.op("Tanh", g.op("MatMul", g.op("Concat", x, h, axis=1), w))
            else:
                h = g.op("Tanh", g.op("Add", g.op("MatMul", x, w), g.op("MatMul", h, u)))
            results.append(h)
        return results

    def model(self, *results: str) -> onnx.ModelProto:
        for result in results:
            self.graph.output(result, (self.batch, self.hidden))
        return onnx.shape_inference.infer_shapes(self.graph.build())


def check(model: onnx.ModelProto, *, scans: int) -> Counter[str]:
    """Rolls the cells; returns the ops behind that, if the model computes the same."""
    rolled = onnx.ModelProto()
    rolled.CopyFrom(model)
    assert roll_cells(rolled) == (scans > 0)
    onnx.checker.check_model(rolled, full_check=True)
    inputs = dict(zip((value.name for value in model.graph.input), random_inputs(model, 3), strict=True))
    for ours, theirs in zip(run(rolled, inputs), run(model, inputs), strict=True):
        # the projections of all steps are one product, whose sums may be in another order
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    ops = Counter(node.op_type for node in rolled.graph.node)
    assert ops["Scan"] == scans
    return ops


def run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    named = onnx.ModelProto()
    named.CopyFrom(model)
    for graph in graphs_in(named.graph):
        for node in graph.node:  # ONNX Runtime wants names that differ
            node.name = ""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return list(onnxruntime.InferenceSession(named.SerializeToString(), options).run(None, inputs))


def test_layers_become_loops_that_read_each_others_sequences() -> None:
    cells = Cells()
    ops = check(cells.model(cells.lstm(cells.lstm(cells.inputs))[-1]), scans=2)
    # of each layer, one projection of all steps, and nothing that takes sequences apart
    assert ops["MatMul"] == 2
    assert ops["Gather"] == ops["Concat"] == ops["Tanh"] == 0


def test_layers_may_be_written_step_by_step() -> None:
    cells = Cells()
    g, layers = cells.graph, 2
    weights = [(cells.weights(), cells.weights()) for _ in range(layers)]
    states = [cells.zeros() for _ in range(layers)]
    for x in cells.inputs:
        for layer, (w, u) in enumerate(weights):
            x = states[layer] = g.op(
                "Tanh", g.op("Add", g.op("MatMul", x, w), g.op("MatMul", states[layer], u))
            )
    check(cells.model(x), scans=layers)


def test_state_and_input_may_share_a_product() -> None:
    cells = Cells()
    ops = check(cells.model(cells.plain(cells.inputs, joined=True)[-1]), scans=1)
    assert ops["Concat"] == ops["MatMul"] == 0


@pytest.mark.parametrize("taken", ["Gather", "Slice", "Split"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sequences_are_neither_taken_apart_nor_joined(taken: str, axis: int) -> None:
    cells = Cells(taken=taken)
    g = cells.graph
    states = [g.op("Unsqueeze", state, g.ints([axis])) for state in cells.plain(cells.inputs)]
    g.output(g.op("Concat", *states, axis=axis), (STEPS, 2, HIDDEN) if axis == 0 else (2, STEPS, HIDDEN))
    ops = check(onnx.shape_inference.infer_shapes(g.build()), scans=1)
    assert ops["Transpose"] == 2
    assert ops["Gather"] == ops["Slice"] == ops["Split"] == ops["Concat"] == 0


def test_states_joined_in_another_order_are_joined() -> None:
    cells = Cells()
    g = cells.graph
    states = [g.op("Unsqueeze", state, g.ints([0])) for state in cells.plain(cells.inputs)[::-1]]
    g.output(g.op("Concat", *states, axis=0), (STEPS, 2, HIDDEN))
    assert check(onnx.shape_inference.infer_shapes(g.build()), scans=1)["Concat"] == 1


def test_gates_may_be_split_before_they_meet() -> None:
    cells = Cells()
    g, h = cells.graph, cells.zeros()
    w, u, bias = cells.weights(2), cells.weights(2), g.vector(2 * HIDDEN)
    for x in cells.inputs:
        ours = g.ops("Split", g.op("Gemm", x, w, bias), g.ints([HIDDEN] * 2), results=2, axis=1)
        states = g.ops("Split", g.op("MatMul", h, u), g.ints([HIDDEN] * 2), results=2, axis=-1)
        h = g.op("Mul", g.op("Sigmoid", g.op("Add", ours[0], states[1])), g.op("Add", ours[1], states[0]))
    ops = check(cells.model(h), scans=1)
    assert ops["Gemm"] == ops["Split"] == 1


def test_steps_may_run_backwards() -> None:
    cells = Cells()
    check(cells.model(cells.plain(cells.inputs[::-1])[-1]), scans=1)


def test_products_with_bias_are_projections_too() -> None:
    cells = Cells()
    g = cells.graph
    w, u, bias, h = cells.weights(), cells.weights(), g.vector(HIDDEN), cells.zeros()
    for x in cells.inputs:
        h = g.op("Tanh", g.op("Add", g.op("Gemm", x, w, bias, transB=1), g.op("Gemm", h, u, transB=1)))
    assert check(cells.model(h), scans=1)["Gemm"] == 1


def test_an_input_may_be_left_out_in_the_first_step() -> None:
    cells = Cells()
    g = cells.graph
    w, u, bias, h = cells.weights(), cells.weights(), g.vector(HIDDEN), cells.zeros()
    for step, x in enumerate(cells.inputs):
        own = [bias] if step else []
        h = g.op("Tanh", g.op("Add", g.op("MatMul", x, w), g.op("Gemm", h, u, *own)))
    check(cells.model(h), scans=1)


def test_results_of_any_step_may_be_read() -> None:
    cells = Cells()
    results = cells.plain(cells.inputs)
    check(cells.model(results[2], results[-1], results[4]), scans=1)


def test_first_state_may_be_an_input() -> None:
    cells = Cells()
    check(cells.model(cells.plain(cells.inputs, first=cells.graph.input("h", (2, HIDDEN)))[-1]), scans=1)


def test_a_cell_that_differs_ends_the_loop() -> None:
    cells = Cells(steps=11)
    before = cells.plain(cells.inputs[:5])
    g = cells.graph
    odd = g.op("Relu", g.op("Add", before[-1], cells.inputs[5]))
    check(cells.model(cells.plain(cells.inputs[6:], first=odd)[-1]), scans=2)


@pytest.mark.parametrize("kept", range(1, STEPS))
def test_one_op_that_differs_in_any_step_is_kept(kept: int) -> None:
    cells = Cells()
    g, w, u, h = cells.graph, cells.weights(), cells.weights(), cells.zeros()
    for step, x in enumerate(cells.inputs):
        op = "Sigmoid" if step == kept else "Tanh"
        h = g.op(op, g.op("Add", g.op("MatMul", x, w), g.op("MatMul", h, u)))
    model = cells.model(h)
    rolled = onnx.ModelProto()
    rolled.CopyFrom(model)
    check(model, scans=int(roll_cells(rolled)))


def test_inputs_that_depend_on_the_state_are_in_the_cell() -> None:
    cells = Cells()
    g, w, u, h = cells.graph, cells.weights(), cells.weights(), cells.zeros()
    for x in cells.inputs:
        mixed = g.op("MatMul", g.op("Sub", x, h), w)
        h = g.op("Tanh", g.op("Add", mixed, g.op("MatMul", h, u)))
    assert check(cells.model(h), scans=1)["MatMul"] == 0


def test_cells_may_have_many_paths() -> None:
    cells = Cells(batch=1)
    g, w, u, h = cells.graph, cells.weights(), cells.weights(), cells.zeros()
    for x in cells.inputs:
        h = g.op("Tanh", g.op("Add", g.op("MatMul", x, w), g.op("MatMul", h, u)))
        for _ in range(50):  # 2^50 paths
            h = g.op("Mul", h, h)
    check(cells.model(h), scans=1)


def test_gates_may_have_weights_of_their_own() -> None:
    cells = Cells()
    g, h = cells.graph, cells.zeros()
    w, u = [cells.weights() for _ in range(3)], [cells.weights() for _ in range(3)]
    one = g.constant(np.ones((), np.float32))
    for x in cells.inputs:  # a GRU
        update, reset = (
            g.op("Sigmoid", g.op("Add", g.op("MatMul", x, w[gate]), g.op("MatMul", h, u[gate])))
            for gate in range(2)
        )
        new = g.op("Tanh", g.op("Add", g.op("MatMul", x, w[2]), g.op("MatMul", g.op("Mul", reset, h), u[2])))
        h = g.op("Add", g.op("Mul", update, h), g.op("Mul", g.op("Sub", one, update), new))
    assert check(cells.model(h), scans=1)["MatMul"] == 3


def test_what_reads_two_steps_back_is_left_alone() -> None:
    cells = Cells()
    g, w, u = cells.graph, cells.weights(), cells.weights()
    older, h = cells.zeros(), cells.zeros()
    for x in cells.inputs:
        new = g.op("Tanh", g.op("Add", g.op("MatMul", g.op("Add", x, older), w), g.op("MatMul", h, u)))
        older, h = h, new
    check(cells.model(h), scans=0)


def test_layers_that_share_weights_are_left_alone() -> None:
    cells = Cells()
    g, w, h = cells.graph, cells.weights(), cells.inputs[0]
    for _ in range(STEPS):
        h = g.op("Relu", g.op("MatMul", h, w))
    check(cells.model(h), scans=0)


def test_layers_that_use_a_weight_side_by_side_are_left_alone() -> None:
    """So do decoders with the cosines of their rotary embeddings."""
    cells = Cells()
    g, w, h = cells.graph, cells.weights(), cells.inputs[0]
    for _ in range(3):
        h = g.op("Add", g.op("MatMul", h, w), g.op("MatMul", g.op("Relu", h), w))
    check(cells.model(h), scans=0)


def test_layers_with_weights_of_their_own_are_left_alone() -> None:
    cells = Cells()
    g, shared, h = cells.graph, cells.weights(), cells.inputs[0]
    for x in cells.inputs:
        mixed = g.op("Add", g.op("MatMul", h, shared), g.op("MatMul", h, cells.weights()))
        h = g.op("Relu", g.op("Add", mixed, x))
    check(cells.model(h), scans=0)


@pytest.mark.parametrize(
    ("hidden", "steps", "scans"), [(16, 8, 0), (16, 340, 1), (64, 12, 0), (128, 3, 0), (128, 4, 1)]
)
def test_small_cells_are_loops_only_if_there_are_many(hidden: int, steps: int, scans: int) -> None:
    cells = Cells(steps=steps, hidden=hidden, batch=1)
    check(cells.model(cells.plain(cells.inputs)[-1]), scans=scans)


def test_cells_of_unknown_shapes_are_left_alone() -> None:
    cells = Cells()
    model = cells.model(cells.plain(cells.inputs)[-1])
    del model.graph.value_info[:]
    assert not roll_cells(model)


def test_old_opsets_are_left_alone() -> None:
    cells = Cells()
    model = cells.model(cells.plain(cells.inputs)[-1])
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 12))
    assert not roll_cells(model)

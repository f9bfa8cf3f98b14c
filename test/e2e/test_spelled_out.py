"""Ops that IREE's importer lacks, spelled out and compared with ONNX's own evaluator: linear algebra and losses."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from one_graph import one_graph
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from spelled_out_cases import OPSET, normal, run_beside_onnx

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [(1,), (0, 2), None])
def test_a_logarithm_of_large_exponentials(axes: tuple[int, ...] | None, keepdims: int) -> None:
    """Exponentials from 89 on are infinite in f32. A row of -inf alone gives -inf."""
    x = normal(3, 5, 7) * 100
    x[1] = -np.inf
    given = {} if axes is None else {"axes": np.array(axes)}
    wide = x.astype(np.float64)
    largest = wide.max(axes, keepdims=True)
    shift = np.where(np.isinf(largest), 0, largest)
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.exp(wide - shift).sum(axes, keepdims=True))
    expected = logarithm + shift if keepdims else np.squeeze(logarithm + shift, axes)
    node = helper.make_node("ReduceLogSumExp", ["x", *given], ["y"], keepdims=keepdims)
    model = one_graph([node], {"x": x}, given, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(x)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_norms_over_channels_of_dynamic_shape(size: int) -> None:
    """IREE 3.13 ends the process, or reads other numbers. ONNX's evaluator counts channels by the batch."""
    x = 4 * normal(6, 6, 5, 7)
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.3, beta=0.6, bias=1.5)
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {"x": x})
    model = one_graph([node], {"x": x}, {}, (TensorProto.FLOAT, x.shape), opset=OPSET)
    for value in (*model.graph.input, *model.graph.output):
        for number in (0, 2):
            value.type.tensor_type.shape.dim[number].dim_param = f"side_{number}"
    np.testing.assert_allclose(tilewright.compile(model, threads=1)(x)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 5, 16])
def test_determinants_with_pivots(rows: int) -> None:
    """Matrices have small integers, with pivots that are zero; some are singular, and some have nothing but zeros."""
    x = np.random.default_rng(rows).integers(-1, 2, (6, rows, rows)).astype(np.float32)
    x[0] = 0
    x[1:, 0, 0] = 0
    run_beside_onnx(helper.make_node("Det", ["x"], ["y"]), {"x": x})


def test_a_determinant_of_one_matrix() -> None:
    x = np.array([[0, 1], [2, 3]], np.float32)
    run_beside_onnx(helper.make_node("Det", ["x"], ["y"]), {"x": x})


def test_a_determinant_of_many_rows_is_refused() -> None:
    node = helper.make_node("Det", ["x"], ["y"], name="volume")
    model = one_graph([node], {"x": normal(17, 17)}, {}, (TensorProto.FLOAT, ()), opset=OPSET)
    with pytest.raises(tilewright.ModelError, match="'volume': Det of matrices of 17 rows"):
        tilewright.compile(model)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("points", [(), (7,), (2, 3)], ids=["flat", "row", "image"])
def test_weighted_losses(points: tuple[int, ...], op: str, reduction: str) -> None:
    labels = np.random.default_rng(1).integers(0, 5, (4, *points))
    weights = np.array([0.9, 0.7, 0.8, 1.1, 0.3], np.float32)
    node = helper.make_node(op, ["x", "labels", "w"], ["y"], reduction=reduction, ignore_index=2)
    run_beside_onnx(node, {"x": normal(4, 5, *points), "labels": labels, "w": weights})


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, -1])
def test_norms_of_zeros(axis: int, p: int) -> None:
    x = normal(3, 5, 7)
    x[0, :, 0] = 0
    x[:, 2, 4] = 0
    x[1, 1] = 0
    node = helper.make_node("LpNormalization", ["x"], ["y"], axis=axis, p=p)
    model = one_graph([node], {"x": x}, {}, (TensorProto.FLOAT, x.shape), opset=OPSET)
    norm = np.linalg.norm(x.astype(np.float64), p, axis, keepdims=True)
    (y,) = tilewright.compile(model, threads=1)(x)
    np.testing.assert_allclose(y, x / np.where(norm == 0, 1, norm), rtol=1e-5)


def test_remainders_of_floats() -> None:
    """The function is IREE's own, which kernels must not call."""
    node = helper.make_node("Mod", ["x", "by"], ["y"], fmod=1)
    x = np.array([-4.3, 7.2, 5.0, 4.3, -7.2, 8.0], np.float32)
    run_beside_onnx(node, {"x": x, "by": np.array([2.1, -3.4, 8.0, -2.1, 3.4, 5.0], np.float32)})


def test_counts_inserted_into_zeros() -> None:
    """Loops insert numbers, one after the other, into a tensor that is a constant."""
    node = helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        mode="TF",
        min_gram_length=2,
        max_gram_length=2,
        max_skip_count=0,
        ngram_counts=[0, 4],
        ngram_indexes=[0, 1, 2, 3, 4, 5, 6],
        pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    )
    run_beside_onnx(node, {"x": np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32)})


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_a_single_constant_update_is_scattered(shape: tuple[int, ...], reduction: str) -> None:
    """IREE takes the update for the index, or the index for the update, if both are constants of one element."""
    x, axis = normal(*shape), len(shape) - 1
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis, reduction=reduction)
    at = np.ones([1] * len(shape), np.int64)
    run_beside_onnx(node, {"x": x}, {"i": at, "u": np.full(at.shape, 1.25, np.float32)})


@pytest.mark.parametrize("reduction", ["add", "mul", "max"])
@pytest.mark.parametrize("place", [[[2, 1, 4]], [[2, 1]], [2, 1, 4]])
def test_a_single_constant_slice_is_scattered(place: list[list[int]] | list[int], reduction: str) -> None:
    """A point, a row and a point without a dim of updates: IREE takes the update for the index, or fails."""
    index = np.array(place)
    update = np.full((*index.shape[:-1], *(5, 3, 7)[index.shape[-1] :]), 1.5, np.float32)
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    run_beside_onnx(node, {"x": normal(5, 3, 7)}, {"i": index, "u": update})

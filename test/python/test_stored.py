"""Weights are stored in the layout that kernels read and mapped when a program is loaded; others are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper
from parameter_files import archive, read_archive, two_products
from tilewright.runtime.stored import StoredWeights, join_archives

Array = np.ndarray[Any, Any]


def parameter(name: str, *shape: int) -> dict[str, Any]:
    return {"step": "parameter", "scope": "model", "name": name, "shape": shape}


def stored(recipe: dict[str, Any], *, unused: list[str] | None = None, name: str = "packed") -> StoredWeights:
    entry = {"scope": "model", "name": name, "type": "bf16", "element_bytes": 2, "recipe": recipe}
    dropped = [{"scope": "model", "name": name} for name in unused or []]
    return StoredWeights.from_json({"parameters": [entry], "unused": dropped})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    first = np.arange(15, dtype=np.uint16).reshape(3, 5)
    return archive(tmp_path / "model.irpa", {"a": first, "b": first + 100}, splats={"splat": (b"\1\2", 12)})


def test_every_step_moves_elements(source: Path, tmp_path: Path) -> None:
    a = np.arange(15, dtype=np.uint16).reshape(3, 5)
    recipe = parameter("a", 3, 5)
    recipe = {"step": "concat", "of": [recipe, parameter("b", 3, 5)], "axis": 1, "shape": [3, 10]}
    recipe = {"step": "pad", "of": [recipe], "low": [0, 1], "shape": [3, 12]}
    recipe = {"step": "reshape", "of": [recipe], "shape": [3, 2, 6]}
    recipe = {"step": "transpose", "of": [recipe], "order": [1, 0, 2], "shape": [2, 3, 6]}
    files = stored(recipe, unused=["a"]).write({"model": source, "other": Path("other.irpa")}, tmp_path)
    expected = np.pad(np.concatenate([a, a + 100], 1), [(0, 0), (1, 1)]).reshape(3, 2, 6).transpose(1, 0, 2)
    entries = read_archive(files["model"])
    assert sorted(entries) == ["b", "packed", "splat"]
    np.testing.assert_array_equal(np.frombuffer(entries["packed"].file_view, np.uint16), expected.reshape(-1))
    np.testing.assert_array_equal(np.frombuffer(entries["b"].file_view, np.uint16), a.reshape(-1) + 100)
    assert entries["splat"].is_splat and entries["splat"].length == 12
    assert all(entry.file_storage[1] % 64 == 0 for name, entry in entries.items() if name != "splat")
    assert files["other"] == Path("other.irpa")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.irpa", "model.packed.irpa"]


def test_a_product_multiplies_the_first_dim(tmp_path: Path) -> None:
    """Sums are exact before they are rounded to f32 once."""
    weights = np.random.default_rng(7).standard_normal((3, 5, 2)).astype(np.float32)
    matrix = np.random.default_rng(8).standard_normal((4, 3))
    source = archive(tmp_path / "model.irpa", {"w": weights})
    recipe = {
        "step": "product",
        "of": [parameter("w", 3, 5, 2)],
        "matrix": matrix.ravel().tolist(),
        "shape": [4, 5, 2],
    }
    entry = {"scope": "model", "name": "packed", "type": "f32", "element_bytes": 4, "recipe": recipe}
    files = StoredWeights.from_json({"parameters": [entry]}).write({"model": source}, tmp_path)
    made = np.frombuffer(read_archive(files["model"])["packed"].file_view, np.float32).reshape(4, 5, 2)
    np.testing.assert_array_equal(
        made, np.einsum("ik,kab->iab", matrix, weights.astype(float)).astype(np.float32)
    )


def test_a_splat_can_be_packed(source: Path, tmp_path: Path) -> None:
    recipe = {"step": "transpose", "of": [parameter("splat", 2, 3)], "order": [1, 0], "shape": [3, 2]}
    files = stored(recipe).write({"model": source}, tmp_path)
    assert bytes(read_archive(files["model"])["packed"].file_view) == b"\1\2" * 6


@pytest.mark.parametrize(
    ("recipe", "name", "message"),
    [
        (parameter("c", 3, 5), "packed", "parameter 'c': is not in the file"),
        (parameter("a", 3, 7), "packed", "parameter 'a': has 30 bytes instead of 42"),
        (parameter("a", 3, 5), "b", "parameter 'b': has the name of a packed weight"),
        (
            {"step": "shuffle", "of": [parameter("a", 3, 5)], "shape": [3, 5]},
            "packed",
            "unknown step 'shuffle'",
        ),
        (
            {"step": "transpose", "of": [parameter("a", 3, 5)], "order": [1, 0], "shape": [3, 5]},
            "packed",
            "step 'transpose'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    source: Path, tmp_path: Path, recipe: dict[str, Any], name: str, message: str
) -> None:
    with pytest.raises(tilewright.TilewrightError, match=re.escape(message)):
        stored(recipe, name=name).write({"model": source}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.irpa"]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.irpa").write_bytes(b"no archive")
    with pytest.raises(tilewright.ModelError, match="not a parameter file"):
        stored(parameter("a", 3, 5)).write({"model": tmp_path / "model.irpa"}, tmp_path)


def product(weights: dict[str, Array], *, shared: bool = False) -> onnx.ModelProto:
    """Returns x times every weight; if `shared`, the last weight is also added to z."""
    depth = next(iter(weights.values())).shape[0]
    nodes = [helper.make_node("MatMul", ["x", name], [f"y_{name}"]) for name in weights]
    outputs = [value(f"y_{name}", [6, array.shape[1]]) for name, array in weights.items()]
    if shared:
        name, array = next(reversed(weights.items()))
        nodes.append(helper.make_node("Add", [name, "z"], ["sum"]))
        outputs.append(value("sum", list(array.shape)))
        return make_model(
            nodes, [value("x", [6, depth]), value("z", list(array.shape))], outputs, dict(weights)
        )
    return make_model(nodes, [value("x", [6, depth])], outputs, dict(weights))


def random(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("target", ["cpu", "x86-64-avx2,x86-64-v2"])
def test_packed_weights_replace_plain_ones(target: str, tmp_path: Path) -> None:
    w = random(33, 71)
    program = tilewright.compile(product({"w": w}), target, threads=1)
    loaded = tilewright.load(program.save(tmp_path / "product.vmfb"))
    names = list(read_archive(tmp_path / "product.irpa"))
    assert len(names) == 1 and names[0].startswith("w/packed-")
    x = random(6, 33)
    np.testing.assert_allclose(loaded(x)[0], x @ w, rtol=1e-4, atol=1e-4)


def test_a_weight_that_is_read_as_it_is_stays_too(tmp_path: Path) -> None:
    w, x, z = random(33, 71), random(6, 33), random(33, 71)
    program = tilewright.compile(product({"w": w}, shared=True), threads=1)
    names = sorted(read_archive(program.parameter_paths["model"]))
    assert len(names) == 2 and names[0] == "w" and names[1].startswith("w/packed-")
    y, total = program(x, z)
    np.testing.assert_allclose(y, x @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total, w + z)


def test_weights_that_share_an_input_are_one_parameter(tmp_path: Path) -> None:
    weights = {name: random(33, 71) for name in ("v", "w")}
    path = tilewright.compile(product(weights), threads=1).save(tmp_path / "product.vmfb")
    (name,) = read_archive(tmp_path / "product.irpa")
    assert name.startswith("v/packed-2x")
    x = random(6, 33)
    for output, array in zip(tilewright.load(path)(x), weights.values(), strict=True):
        np.testing.assert_allclose(output, x @ array, rtol=1e-4, atol=1e-4)


def test_one_parameter_may_be_made_of_several_files(tmp_path: Path) -> None:
    mine, yours, x = random(33, 64), random(33, 64) + 1, random(6, 33)
    paths = {
        "mine": archive(tmp_path / "mine.irpa", {"w": mine}),
        "yours": archive(tmp_path / "yours.irpa", {"w": yours}),
    }
    program = tilewright.compile(two_products("mine", "yours"), threads=1, parameters=paths)
    (name,) = read_archive(program.parameter_paths["mine"])
    assert name.startswith("w/packed-2x")
    for output, array in zip(program(x), (mine, yours), strict=True):
        np.testing.assert_allclose(output, x @ array, rtol=1e-4, atol=1e-4)


def test_the_parameter_file_of_the_user_is_left_alone(tmp_path: Path) -> None:
    w, x = random(33, 71), random(6, 33)
    path = archive(tmp_path / "mine.irpa", {"w": w})
    before = path.read_bytes()
    program = tilewright.compile(MLIR, threads=1, parameters={"mine": path})
    assert path.read_bytes() == before
    assert sorted(read_archive(program.parameter_paths["mine"]))[-1].startswith("w/packed-")
    np.testing.assert_allclose(program(x)[0], x @ w, rtol=1e-4, atol=1e-4)


MLIR = """
util.global private @w = #stream.parameter.named<"mine"::"w"> : tensor<33x71xf32>
func.func @product(%x: tensor<6x33xf32>) -> tensor<6x71xf32> {
  %w = util.global.load @w : tensor<33x71xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x71xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x71xf32>) -> tensor<6x71xf32>
  %y = linalg.matmul ins(%x, %w : tensor<6x33xf32>, tensor<33x71xf32>)
      outs(%init : tensor<6x71xf32>) -> tensor<6x71xf32>
  return %y : tensor<6x71xf32>
}
"""


def test_loading_maps_and_does_not_copy(tmp_path: Path) -> None:
    weights = {name: random(1024, 2048) for name in ("a", "b")}
    path = tilewright.compile(product(weights), threads=1).save(tmp_path / "large.vmfb")
    held = sum(array.nbytes for array in weights.values())
    before = private_bytes()
    program = tilewright.load(path)
    x = random(6, 1024)
    outputs = program(x)
    assert private_bytes() - before < held / 2
    for output, array in zip(outputs, weights.values(), strict=True):
        np.testing.assert_allclose(output, x @ array, rtol=1e-3, atol=1e-3)


def private_bytes() -> int:
    """Returns the bytes of this process that no file backs."""
    match = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match
    return int(match[1]) << 10


@pytest.mark.parametrize("element", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_narrow_types_are_packed(element: int) -> None:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    w, x = random(33, 71).astype(dtype), random(6, 33).astype(dtype)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = make_model([node], [value("x", [6, 33], element)], [value("y", [6, 71], element)], {"w": w})
    for numerics in ("default", "strict"):
        program = tilewright.compile(model, threads=1, numerics=numerics)
        expected = x.astype(np.float64) @ w.astype(np.float64)
        np.testing.assert_allclose(program(x)[0].astype(np.float64), expected, rtol=2e-2, atol=0.1)


def test_weights_of_several_programs_are_stored_once(tmp_path: Path) -> None:
    """The same name with other bytes, as two shapes may pack a weight in two ways, gets another name."""
    shared, packed = np.arange(7, dtype=np.float32), np.arange(5, dtype=np.float32)
    first = archive(tmp_path / "first.irpa", {"w": shared, "packed": packed}, splats={"zero": (b"\0", 12)})
    second = archive(
        tmp_path / "second.irpa", {"w": shared, "packed": packed[::-1]}, splats={"zero": (b"\0", 12)}
    )
    joined, renamed = join_archives([{"model": first}, {"model": second}], tmp_path)
    assert renamed == [{}, {("model", "packed"): "packed/shape1"}]
    entries = read_archive(joined["model"])
    assert sorted(entries) == ["packed", "packed/shape1", "w", "zero"]
    np.testing.assert_array_equal(np.frombuffer(entries["packed"].file_view, np.float32), packed)
    np.testing.assert_array_equal(np.frombuffer(entries["packed/shape1"].file_view, np.float32), packed[::-1])


def test_a_file_that_all_programs_read_is_not_copied(tmp_path: Path) -> None:
    file = archive(tmp_path / "model.irpa", {"w": np.arange(7, dtype=np.float32)})
    joined, renamed = join_archives([{"model": file}, {"model": file}], tmp_path)
    assert (joined, renamed) == ({"model": file}, [{}, {}])

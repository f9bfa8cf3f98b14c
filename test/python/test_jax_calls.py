"""Functions of JAX as programs: arguments and results are nested, and arrays pass without a copy.

The first tests need no JAX: a program that was a function of JAX is called with numpy arrays where it is not installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.errors import InputError, ModelError
from tilewright.records.calling import Calling, Leaf
from tilewright.records.trees import TreeError, leaves_of, rebuilt, structure_of
from tilewright.runtime.jax_arrays import JaxCaller

_TEXT = """
func.func @main(%x: tensor<3x5xf32>, %y: tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %wide = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<5xf32>) -> tensor<3x5xf32>
  %sum = stablehlo.add %x, %wide : tensor<3x5xf32>
  %product = stablehlo.multiply %x, %wide : tensor<3x5xf32>
  return %sum, %product : tensor<3x5xf32>, tensor<3x5xf32>
}
"""

X, Y = np.arange(15, dtype=np.float32).reshape(3, 5), np.arange(5, dtype=np.float32)


def _caller() -> JaxCaller:
    """Returns a call like `f({"x": x, "unused": u}, [y])`, which returns `(sum, {"product": product})`."""
    program = tilewright.compile(_TEXT, threads=1)
    assert program.signature is not None
    arguments: Any = (({"x": 0, "unused": 0}, [0]), {})
    inputs = structure_of(arguments, is_leaf=lambda value: value == 0)
    outputs = structure_of((0, {"product": 0}), is_leaf=lambda value: value == 0)
    calling = Calling(
        json.dumps(inputs),
        json.dumps(outputs),
        (Leaf(None), Leaf(0), Leaf(1)),
        (Leaf(0), Leaf(1)),
        kind="jax",
    )
    return JaxCaller(program.runner(), program.signature, Calling.from_json(calling.to_json()))


def test_nested_arrays_need_no_jax() -> None:
    caller = _caller()
    total, others = caller.run(caller.flatten(({"x": X, "unused": "anything"}, [Y]), {}))
    np.testing.assert_array_equal(total, X + Y)
    np.testing.assert_array_equal(others["product"], X * Y)


@pytest.mark.parametrize(
    "arguments", [({"x": X}, [Y]), ({"x": X, "unused": 0}, (Y,)), ({"x": X, "unused": 0},)]
)
def test_other_nesting_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="not nested like the example inputs"):
        _caller().flatten(arguments, {})


def test_structures_survive_text() -> None:
    value = ({"b": 1, "a": [2, None]}, (), 3)
    tree = json.loads(json.dumps(structure_of(value, is_leaf=lambda each: isinstance(each, int))))
    assert list(leaves_of(value, tree)) == [2, 1, 3]
    assert rebuilt(tree, [2, 1, 3]) == value
    with pytest.raises(TreeError, match="nested in a set"):
        structure_of(({1},), is_leaf=lambda each: isinstance(each, int))


def _function() -> Any:
    jax = pytest.importorskip("jax")

    def layer(params: Any, x: Any, unused: Any = None) -> Any:
        hidden = jax.nn.gelu(x @ params["w"] + params["b"][0])
        return {"hidden": hidden, "rows": (jax.nn.softmax(hidden).sum(-1), None)}

    return jax.jit(layer)


def _arguments() -> tuple[Any, Any]:
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    w, b, x = (rng.standard_normal(shape).astype(np.float32) for shape in ((33, 40), (40,), (5, 33)))
    return {"w": jax.numpy.asarray(w), "b": [jax.numpy.asarray(b)]}, jax.numpy.asarray(x)


def test_a_function_of_jax_is_called_like_itself(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    function, arguments = _function(), _arguments()
    program = tilewright.compile(function, example_inputs=arguments, threads=1)
    assert program.kernels
    expected = function(*arguments)
    for each in (program, tilewright.load(program.save(tmp_path / "layer.vmfb"))):
        found = each(*arguments)
        assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(expected)
        for got, want in zip(
            jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True
        ):
            assert isinstance(got, jax.Array)
            # Sums of 33 products of size 1 in f32, in another order.
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    plain = program(*jax.tree_util.tree_map(np.asarray, arguments))
    assert isinstance(plain["hidden"], np.ndarray)


def test_arrays_of_jax_are_not_copied() -> None:
    jax = pytest.importorskip("jax")
    arrays = pytest.importorskip("tilewright.runtime.jax_arrays")
    x = jax.numpy.ones((64, 64))
    lent = arrays._as_array(x, "x")
    assert lent.ctypes.data == x.unsafe_buffer_pointer()


def test_wrong_calls_of_a_function_of_jax_are_refused() -> None:
    jax = pytest.importorskip("jax")
    params, x = _arguments()
    program = tilewright.compile(_function(), example_inputs=(params, x), threads=1)
    with pytest.raises(InputError, match="not nested like the example inputs"):
        program(params)
    with pytest.raises(InputError, match="float16 was given but float32"):
        program(params, x.astype("float16"))
    with pytest.raises(InputError, match="JAX traces it"):
        jax.jit(lambda x: program(params, x)["hidden"])(x)


def test_functions_that_cannot_be_exported_are_refused() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(ModelError, match="needs example inputs"):
        tilewright.compile(_function())
    with pytest.raises(ModelError, match=r"jax\.export cannot trace it"):
        tilewright.compile(
            jax.jit(lambda x: 1 if x.sum() > 0 else 2), example_inputs=(np.ones(3, np.float32),)
        )

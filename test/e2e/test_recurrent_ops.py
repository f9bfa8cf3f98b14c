"""Tests of RNN, GRU and LSTM in all forms, compared with float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import recurrent_oracle as oracle
import tilewright
from onnx import helper, numpy_helper
from recurrent_oracle import INPUTS, Form

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=12)]

Array = np.ndarray[Any, Any]

STEPS, BATCH, FEATURES, HIDDEN = 5, 3, 4, 7

# Relative to the largest element. A sum has up to 7 + 4 + 4 terms, whose roundings 5 steps hand on; narrow types are
# computed in f32 and rounded once. IREE's exponential of f64 is accurate to 1e-11.
TOLERANCES = {np.float64: 1e-10, np.float32: 1e-5, np.float16: 2**-10, ml_dtypes.bfloat16: 2**-7}
FIRST_OPSET = {np.float64: 7, np.float32: 7, np.float16: 7, ml_dtypes.bfloat16: 22}


def numbers_for(
    form: Form, optional: Sequence[str], dtype: Any, rng: np.random.Generator
) -> dict[str, Array]:
    """Draws inputs. Weights are small enough that a state cannot grow without bound under linear activations."""
    gates, directions = oracle.GATES[form.op], form.directions
    shapes = {
        "X": (STEPS, BATCH, FEATURES),
        "W": (directions, gates * HIDDEN, FEATURES),
        "R": (directions, gates * HIDDEN, HIDDEN),
        "B": (directions, 2 * gates * HIDDEN),
        "initial_h": (directions, BATCH, HIDDEN),
        "initial_c": (directions, BATCH, HIDDEN),
        "P": (directions, 3 * HIDDEN),
    }
    given = {}
    for name in INPUTS:
        if name not in ("X", "W", "R", *optional):
            continue
        if name == "sequence_lens":
            given[name] = np.array([STEPS - 2, STEPS, 1], np.int32)
            continue
        value = rng.standard_normal(shapes[name])
        if name in ("W", "R"):
            value /= np.sqrt(shapes[name][-1])
        if form.layout and name in ("X", "initial_h", "initial_c"):
            value = value.swapaxes(0, 1)
        given[name] = np.ascontiguousarray(value.astype(dtype))
    return given


def model_of(
    form: Form,
    given: Mapping[str, Array],
    *,
    constants: Sequence[str] = ("W", "R", "B", "P"),
    outputs: Sequence[bool] = (True, True, True),
    opset: int = 17,
    is_dynamic: bool = False,
) -> onnx.ModelProto:
    names = [name if name in given else "" for name in INPUTS[: 8 if form.op == "LSTM" else 6]]
    count = 3 if form.op == "LSTM" else 2
    results = [f"Y{n}" if is_wanted else "" for n, is_wanted in enumerate(outputs[:count])]
    node = helper.make_node(form.op, names, results, name="recurrent", **form.attributes(HIDDEN))
    kind = helper.np_dtype_to_tensor_dtype(given["X"].dtype)
    batch_dims = {"X": 1, "sequence_lens": 0, "initial_h": 1, "initial_c": 1}
    inputs = []
    for name in given:
        if name in constants:
            continue
        shape: list[int | str] = list(given[name].shape)
        if is_dynamic:
            shape[0 if form.layout else batch_dims[name]] = "batch"
            if name == "X":
                shape[1 if form.layout else 0] = "steps"
        inputs.append(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(given[name].dtype), shape)
        )
    graph = helper.make_graph(
        [node],
        "recurrent",
        inputs,
        [helper.make_tensor_value_info(name, kind, None) for name in results if name],
        [numpy_helper.from_array(given[name], name) for name in given if name in constants],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def check(
    form: Form,
    given: Mapping[str, Array],
    *,
    constants: Sequence[str] = ("W", "R", "B", "P"),
    outputs: Sequence[bool] = (True, True, True),
    **options: Any,
) -> tilewright.Program:
    """Compares the model that `model_of` builds, with these options of it, with float64."""
    model = model_of(form, given, constants=constants, outputs=outputs, **options)
    program = tilewright.compile(model, threads=1)
    results = program(*(value for name, value in given.items() if name not in constants))
    expected = [
        value for value, is_wanted in zip(oracle.run(form, given), outputs, strict=False) if is_wanted
    ]
    dtype = given["X"].dtype
    for ours, exact in zip(results, expected, strict=True):
        assert ours.dtype == dtype and ours.shape == exact.shape
        tolerance = TOLERANCES[dtype.type] * max(1.0, np.abs(exact).max())
        np.testing.assert_allclose(ours.astype(np.float64), exact, rtol=0, atol=tolerance)
    return program


def drawn_form(rng: np.random.Generator, op: str, opset: int) -> Form:
    """Draws a form of an op; half of the attributes have their default values."""

    def maybe(value: Any, default: Any) -> Any:
        return value if rng.integers(2) else default

    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    names: list[str] = maybe([str(n) for n in rng.choice(list(oracle.ACTIVATIONS), 3 * directions)], [])
    names = names[: len(oracle.FUNCTIONS[op]) * directions]
    return Form(
        op,
        direction=direction,
        layout=maybe(1, 0) if opset >= 14 else 0,
        activations=tuple(names),
        alphas=tuple(float(np.float32(rng.uniform(0.1, 0.9))) for name in names if name in oracle.HAS_ALPHA),
        betas=tuple(float(np.float32(rng.uniform(0.1, 0.9))) for name in names if name in oracle.HAS_BETA),
        clip=maybe(0.75, None),
        linear_before_reset=maybe(1, 0) if op == "GRU" else 0,
        input_forget=maybe(1, 0) if op == "LSTM" else 0,
    )


@pytest.mark.parametrize("seed", range(32))
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_drawn_forms(op: str, seed: int) -> None:
    """Every attribute, optional input and output, type and opset occurs in many combinations."""
    rng = np.random.default_rng([seed, oracle.GATES[op]])
    dtype = list(TOLERANCES)[rng.integers(len(TOLERANCES))]
    opset = int(rng.choice([o for o in (7, 11, 14, 17, 22) if o >= FIRST_OPSET[dtype]]))
    form = drawn_form(rng, op, opset)
    possible = ["B", "sequence_lens", "initial_h", *(["initial_c", "P"] if op == "LSTM" else [])]
    optional = [name for name in possible if rng.integers(2)]
    outputs = rng.integers(0, 2, 3).astype(bool)
    outputs[rng.integers(2)] = True
    given = numbers_for(form, optional, dtype, rng)
    largest = float(ml_dtypes.finfo(dtype).max)
    if any(np.abs(value).max(initial=0) > largest for value in oracle.run(form, given)):
        form = replace(form, clip=0.75)  # unbounded activations may grow beyond the type's numbers
    check(
        form,
        given,
        constants=("W", "R", "B", "P") if rng.integers(2) else ("W",),
        outputs=outputs.tolist(),
        opset=opset,
    )


@pytest.mark.parametrize("optional", [(), ("B", "sequence_lens"), ("initial_h",)])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_dynamic_batch_and_steps(op: str, direction: str, optional: tuple[str, ...]) -> None:
    """IREE 3.13 has several faults in loops with dynamic shapes, which depend on what else is computed."""
    form = Form(op, direction=direction, layout=int("B" in optional))
    given = numbers_for(form, optional, np.float32, np.random.default_rng(1))
    check(form, given, is_dynamic=True)


@pytest.mark.parametrize("name", sorted(oracle.ACTIVATIONS))
def test_each_activation(name: str) -> None:
    """Arguments reach far enough to both sides of zero to overflow a careless exponential."""
    form = Form(
        "RNN",
        activations=(name,),
        alphas=(0.3,) if name in oracle.HAS_ALPHA else (),
        betas=(0.6,) if name in oracle.HAS_BETA else (),
    )
    given = numbers_for(form, ["B"], np.float32, np.random.default_rng(2))
    given["R"] *= np.float32(0.1)
    given["X"][0] *= 100
    check(form, given)


def test_an_empty_sequence_has_zeros_as_its_last_state() -> None:
    form = Form("LSTM", direction="bidirectional")
    given = numbers_for(
        form, ["initial_h", "initial_c", "sequence_lens"], np.float32, np.random.default_rng(3)
    )
    given["sequence_lens"][:] = [0, STEPS, 2]
    check(form, given)


def test_a_long_sequence_is_a_loop(tmp_path: Path) -> None:
    """Its program is as small as that of a short one, since the steps are not unrolled."""
    form = Form("LSTM")
    given = numbers_for(form, ["B"], np.float32, np.random.default_rng(4))
    given["X"] = np.random.default_rng(5).standard_normal((500, BATCH, FEATURES)).astype(np.float32)
    short = {**given, "X": given["X"][:4]}
    sizes = [
        check(form, values).save(tmp_path / f"{name}.vmfb").stat().st_size
        for name, values in (("short", short), ("long", given))
    ]
    assert sizes[1] < 1.1 * sizes[0]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"activations": ["Tanh", "Tanh"]}, "2 activations instead of 1"),
        ({"activations": ["Cosine"]}, "'cosine' is not one of ONNX's"),
        ({"activations": ["ScaledTanh"]}, "no activation_alpha"),
        ({"clip": 0.0}, "clip of 0.0 is not positive"),
        ({"direction": "sideways"}, "'sideways' is not one"),
        ({"hidden_size": 6}, "instead of"),
    ],
)
def test_what_onnx_does_not_define_is_refused(attributes: dict[str, Any], reason: str) -> None:
    form = Form("RNN")
    model = model_of(form, numbers_for(form, [], np.float32, np.random.default_rng(6)))
    node = model.graph.node[0]
    kept = [a for a in node.attribute if a.name not in attributes]
    node.ClearField("attribute")
    node.attribute.extend([*kept, *(helper.make_attribute(*item) for item in attributes.items())])
    with pytest.raises(tilewright.ModelError, match=f"'recurrent': RNN: .*{reason}"):
        tilewright.compile(model)

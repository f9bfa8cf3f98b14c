"""Contractions in AMX's tile registers, which an emulator executes if the processor has none.

Programs are compiled for this machine with AMX added. The option `assume-tiles` omits the request for a permission;
it is an option of the pass that no caller of the compiler sets.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import tilewright
from amx_emulator import Emulated, emulated
from tilewright.runtime.processor import missing_features
from tilewright.runtime.session import Session

from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]


BF16_STEP = 2.0**-8  # half of a unit in the last place


AMX = ("amx-tile", "amx-bf16", "amx-int8")


HAS_AMX = not missing_features(",".join(f"+{feature}" for feature in AMX))


def plain_target() -> tilewright.Target:
    """Returns the widest known target that runs on this machine."""
    names = ("x86-64-avx512bf16", "x86-64-avx512", "x86-64-avx2", "x86-64-v2")
    targets = [tilewright.Target.lookup(name) for name in names]
    return next(target for target in targets if not missing_features(target.features))


def amx_target() -> tilewright.Target:
    plain = plain_target()
    features = ",".join([plain.features, *(f"+{feature}" for feature in AMX)])
    return dataclasses.replace(plain, name="amx-emulated", features=features)


def loaded_session(program: tilewright.Program) -> Session:
    """Loads a program although this machine lacks instructions that it was compiled for."""
    meta = program.metadata
    return Session(program.module_path, program.parameter_paths, entry=meta.entry, threads=meta.threads)


def run(program: tilewright.Program, *inputs: Array) -> tuple[list[Array], Emulated]:
    session = loaded_session(program)
    with emulated() as emulation:
        outputs = session(inputs, program.metadata.signature)
    assert not emulation.error
    return outputs, emulation


def compile(model: onnx.ModelProto, **options: Any) -> tilewright.Program:
    return tilewright.compile(model, amx_target(), threads=1, tuning=False, **options)


def bf16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


def onnx_type(array: Array) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


def matmul(left: Array, right: Array, *, weight: bool) -> onnx.ModelProto:
    g = GraphBuilder("product")
    a = g.input("a", left.shape, onnx_type(left))
    b = g.constant(right) if weight else g.input("b", right.shape, onnx_type(right))
    shape = np.matmul(left.astype(np.float32), right.astype(np.float32)).shape
    g.output(g.op("MatMul", a, b), shape, onnx_type(left))
    return g.build()


def assert_rounded_once(got: Array, left: Array, right: Array) -> None:
    exact = left.astype(np.float64) @ right.astype(np.float64)
    terms = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64))
    error = np.abs(got.astype(np.float64) - exact)
    # The result has one rounding, and each of its terms one of f32.
    assert (error <= np.abs(exact) * BF16_STEP + terms * left.shape[-1] * 2.0**-23 + 1e-37).all()


# --------------------------------------------------------------------------------------------------- bytes


def bytes(rng: np.random.Generator, dtype: type, *shape: int) -> Array:
    info = np.iinfo(dtype)
    value = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    value.flat[0], value.flat[-1] = info.min, info.max
    return value

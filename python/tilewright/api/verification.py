"""Runs a compiled program once on random inputs and compares it with the model in float64."""

from __future__ import annotations

from tilewright.errors import InputError, ModelError, ProgramError, VerificationError
from tilewright.frontends import Model
from tilewright.runtime.inputs import random_inputs
from tilewright.runtime.processor import missing_features
from tilewright.runtime.program import Program

_FIND_OUT = "`tilewright check` finds the op and writes a reproducer"


def verify(program: Program, model: Model) -> None:
    """Raises `VerificationError` if a program computes other numbers than its model, an ONNX model, or if that cannot
    be found out."""
    try:
        from tilewright.reference.judging import Judge, onnx_model, refuse_random
    except ImportError as error:
        raise VerificationError(f"a package for the reference is missing ({error})") from None
    proto = onnx_model(model)
    if proto is None or program.signature is None:
        raise VerificationError(
            "only ONNX models have a reference to be verified with", hint="leave out verify"
        )
    if reason := refuse_random(proto):
        raise VerificationError(f"its results cannot be compared: {reason}")
    if not program.metadata.kind.in_process or missing_features(program.metadata.features):
        raise VerificationError(
            f"this machine does not run programs for {program.metadata.target}",
            hint="verify it for target 'cpu'",
        )
    judge = Judge(proto, random_inputs(program.signature))
    try:
        outputs = program(*judge.inputs)
    except (InputError, ProgramError, ModelError) as error:
        raise VerificationError(
            f"it does not run on random inputs: {error}",
            hint="check it on inputs of yours: `tilewright check --input`",
        ) from error
    try:
        differences = judge.differences(outputs)
    except Exception as error:  # of many kinds, from two evaluators
        reason = " ".join(str(error).split())[:200]
        raise VerificationError(f"no evaluator computes the model in float64: {reason}") from error
    if differences:
        raise VerificationError(str(differences[0]), hint=_FIND_OUT)

"""First steps of a newcomer work, or say what to do instead."""

from __future__ import annotations

import pickle
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright

from benchmarks.workloads import build, stitch

_LONGEST_REPR = 1000
"""Characters that still read as one line or a few in a notebook."""


@pytest.fixture(scope="module")
def program() -> tilewright.Program:
    return tilewright.compile(build("bert-small"), "x86-64-avx2", threads=1)


# Modules that documents speak of are there after `import tilewright` alone.


@pytest.mark.parametrize("name", ["passes", "pipelines", "ir", "dialects", "errors", "__version__"])
def test_modules_need_no_import_of_their_own(name: str) -> None:
    code = f"import tilewright; assert {name!r} in dir(tilewright) or {name!r} == '__version__'; tilewright.{name}"
    subprocess.run([sys.executable, "-c", code], check=True)


# The repr of an object is short, however large the model is.


def test_reprs_are_short(program: tilewright.Program) -> None:
    plan = program.plan
    assert plan is not None
    kernel, metadata = plan.kernels[0], program.metadata
    call = program.bind(np.zeros((1, 32, 128), np.float32), np.ones((1, 32), np.int64))
    shown = [program, metadata, metadata.report, program.kernels, plan, plan.kernels, kernel, kernel.groups]
    shown += [program.signature, call, tilewright.Target.lookup("cuda:h200")]
    assert max(len(repr(one)) for one in shown) < _LONGEST_REPR
    assert repr(plan).startswith("<Plan for x86-64-avx2 by greedy, default numerics: ")
    assert repr(program.kernels[0]).startswith("<Kernel contract_reduce_maximumf_addf_0: ")


# A target that is no name, path or Target is refused by its value, with what to give instead.


@pytest.mark.parametrize("target", [5, ["cpu", None], 1.5], ids=repr)
def test_wrong_targets_are_refused_in_our_words(target: Any) -> None:
    with pytest.raises(tilewright.TargetError, match="is no target; give a name such as 'cpu'"):
        tilewright.compile(stitch.softmax((7, 129)), target)


def test_inputs_in_place_of_a_target_are_not_printed() -> None:
    wrong: Any = [[0.0] * 50]
    with pytest.raises(tilewright.TargetError, match=r"a list is no target; .* are example_inputs=") as error:
        tilewright.compile(stitch.softmax((7, 129)), wrong)
    assert len(str(error.value)) < 300


# `load` of a model says that it is no compiled module, rather than that it is truncated.


@pytest.mark.parametrize("name", ["model.onnx", "model.mlir"])
def test_load_of_a_model_says_to_compile_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    onnx.save(stitch.softmax((7, 129)), path)
    with pytest.raises(
        tilewright.ProgramError, match=r"no compiled module; .*tilewright\.compile takes a model"
    ):
        tilewright.load(path)


# Files that are often taken for models are refused, and the error names what to give instead.


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("model.vmfb", "compiled already; tilewright.load takes it"),
        ("model.twp", "compiled already; applications in C run it"),
        ("model.pt", "no model; give the module"),
        ("model.safetensors", "no model; give the model that reads them"),
    ],
)
def test_files_that_are_no_models_say_what_they_are(tmp_path: Path, name: str, hint: str) -> None:
    (tmp_path / name).write_bytes(b"PK\3\4")
    with pytest.raises(tilewright.ModelError, match=hint):
        tilewright.compile(tmp_path / name)


# Inputs may be given by the model's names, in any order; a name that is not there is refused with those that are.


def test_inputs_may_be_given_by_name(program: tilewright.Program) -> None:
    rng = np.random.default_rng(1)
    states, mask = rng.standard_normal((1, 32, 128)).astype(np.float32), np.ones((1, 32), np.int64)
    (expected,) = program(states, mask)
    for given in (program(attention_mask=mask, hidden_states=states), program(states, attention_mask=mask)):
        np.testing.assert_array_equal(given[0], expected)
    with pytest.raises(tilewright.InputError, match=r"'mask' .*the inputs that are left: attention_mask"):
        program(states, mask=mask)


# Programs travel to other processes by pickle, with their weights and all that is known of them.


def _run(program: tilewright.Program, arrays: list[Any]) -> list[Any]:
    return list(program(*arrays))


def test_programs_can_be_pickled(program: tilewright.Program) -> None:
    signature = program.signature
    assert signature is not None
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, 32, 128)).astype(np.float32), np.ones((1, 32), np.int64)]
    again = pickle.loads(pickle.dumps(program))
    assert (again.signature, again.metadata) == (signature, program.metadata)
    np.testing.assert_array_equal(again(*arrays)[0], program(*arrays)[0])
    with get_context("spawn").Pool(1) as pool:
        (elsewhere,) = pool.apply(_run, (program, arrays))
    np.testing.assert_array_equal(elsewhere, program(*arrays)[0])

"""The interpreter ends silently while programs are alive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper

_BEGIN = """
import atexit, ctypes, functools, sys, threading
import numpy as np

def keep(kept):
    # As PyTorch does with modules, and with what is reachable from them: it is never taken apart.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return kept

{before}
import tilewright

x = np.full([3, 5], 2, np.float32)
program = tilewright.load(sys.argv[1], threads=int(sys.argv[2]))
{code}
"""

_WAYS = {
    "global": "keep(sys.modules['__main__'])\nprogram(x, x)",
    "cycle": "cycle = keep([program])\ncycle.append(cycle)\nprogram(x, x)",
    "cached": "@functools.lru_cache\ndef cached():\n    return program\nkeep(cached)\ncached()(x, x)",
    "thread": "local = threading.local()\n"
    "def work():\n    local.call = program\n    keep(local.call)(x, x)\n    ready.set()\n    threading.Event().wait()\n"
    "ready = threading.Event()\nthreading.Thread(target=work, daemon=True).start()\nready.wait()",
    "call": "call = keep(program.bind(x, x))\ncall()\nkeep(call.outputs())",
    "steps": "steps = keep(program.steps())\nkeep(steps(x))",
    "several": "others = keep([tilewright.load(sys.argv[1], threads=n) for n in (1, 2, 2)])\n[p(x, x) for p in others]",
    "module": "keep(tilewright.Module.parse('module {}'))",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Saves a program with state."""
    kind = TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, kind, [3, 5]) for name in ("x", "old", "y", "new")]
    rows = onnx.numpy_helper.from_array(np.array([[1]], np.int64), "rows")
    nodes = [
        helper.make_node("Slice", ["x", "begin", "end"], ["row"]),
        helper.make_node("ScatterND", ["old", "rows", "row"], ["new"]),
        helper.make_node("Add", ["x", "new"], ["y"]),
    ]
    bounds = [onnx.numpy_helper.from_array(np.array([n], np.int64), m) for n, m in ((0, "begin"), (1, "end"))]
    graph = helper.make_graph(nodes, "step", values[:2], values[2:], [rows, *bounds])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    program = tilewright.compile(model, state={"new": "old"}, threads=1)
    yield program.save(tmp_path_factory.mktemp("saved") / "step")


def _run(saved: Path, code: str, *, before: str = "", threads: int = 1) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = _BEGIN.format(before=before, code=code)
    command = [sys.executable, "-c", script, str(saved), str(threads)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("way", _WAYS)
def test_the_interpreter_ends_in_silence_with_native_objects_alive(saved: Path, way: str) -> None:
    done = _run(saved, _WAYS[way], threads=2 if way == "global" else 1)
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    "use",
    [
        "program(x, x)",
        "call()",
        "call.outputs()",
        "steps(x)",
        "steps.state('old')",
        "tilewright.load(sys.argv[1])(x, x)",
    ],
)
def test_a_program_that_is_used_after_the_end_says_so(saved: Path, use: str) -> None:
    # Hooks run in reverse order: one that is registered before the package is imported runs after the package's own.
    before = (
        "def late():\n"
        "    try:\n"
        f"        {use}\n"
        "    except tilewright.ProgramError as error:\n"
        "        print(error)\n"
        "atexit.register(late)"
    )
    code = "call = program.bind(x, x)\ncall()\nsteps = program.steps()\nsteps(x)"
    done = _run(saved, code, before=before)
    assert "the interpreter is ending" in done.stdout
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_program_can_be_used_in_a_hook_of_the_user(saved: Path) -> None:
    done = _run(saved, "atexit.register(lambda: print(program(x, x)[0].sum()))")
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("60.0", "", 0)

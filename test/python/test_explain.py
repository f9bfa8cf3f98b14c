"""`explain` opens with a summary: the kernels, the boundaries between them, and what stays with IREE."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
import tilewright
from click.testing import CliRunner
from conftest import running_sums_of_softmax
from tilewright.cli.main import cli
from tilewright.records.report import Report
from tilewright.runtime.summary import summarize

from benchmarks.workloads import build

_SCREEN = 40
"""Lines of a terminal."""


@cache
def _program(workload: str) -> tilewright.Program:
    return tilewright.compile(build(workload), "x86-64-avx2", threads=1, deploy=False)


# Every boundary between two kernels stands in the first screen, with the reason, the bytes and what would change it.


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("workload", ["bert-small", "gpt2-block", "cnn"])
def test_first_screen_says_why_there_are_several_kernels(workload: str) -> None:
    program = _program(workload)
    screen = program.explain().splitlines()[:_SCREEN]
    text = "\n".join(screen)
    assert f"{len(program.kernels)} fused kernels" in text
    boundaries = summarize(program.metadata.report).boundaries
    assert boundaries and len(program.kernels) > 1
    for boundary in boundaries:
        assert f"{boundary.reason}; would change: {boundary.would_change}" in text
    assert re.search(r"1 -> 2.* (kB|MB)  \w+ -> \w+", text)


# A kernel is named by the model's ops, in one line with its predicted time.


def test_kernels_have_the_names_of_the_model() -> None:
    [line] = [line for line in _program("gpt2-block").explain().splitlines() if line.startswith("   2 ")]
    assert re.fullmatch(r"   2 +[\d.]+ (us|ms)  gemm_9: gemm; 1 at block", line)


# Ops of one module of the model are named by the module, unless it is the whole model.


def test_kernel_that_is_a_module_has_its_name() -> None:
    def kernel(name: str, *locations: str) -> dict[str, Any]:
        ops = [
            {"id": i, "op": "linalg.generic", "loc": f'"{location}"', "bytes": 4, "root": True}
            for i, location in enumerate(locations)
        ]
        return {"name": name, "ops": ops, "edges": [], "groups": [], "predicted": []}

    first = kernel("a", "net/layer.0/matmul", "net/layer.0/add_3", "net/layer.0/add_7")
    report = Report.from_json({"kernels": [first, kernel("b", "net/layer.1/matmul", "net/head/matmul")]})
    one, two = summarize(report).kernels
    assert (one.title, one.kinds) == ("net/layer.0", {"matmul": 1, "add": 2})
    assert two.title == "net/layer.1/matmul … net/head/matmul"


# A result passes through a view that IREE makes of it; the reason is that of the kernels, not of the view.


def test_boundary_looks_through_views() -> None:
    boundaries = summarize(_program("gpt2-block").metadata.report).boundaries
    first = boundaries[0]
    assert (first.producer, first.consumer) == (1, 2)
    assert first.tensors == (("layernormalization_4", "gemm_9"),)
    assert first.bytes == 2 * 4 * 128 * 768  # written and read
    assert "stays with IREE" not in first.reason


# Between two kernels that a prediction keeps apart, an edge through a view alone has no other reason to be one.


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_views_have_the_reason_of_their_kernels(is_known: bool) -> None:  # noqa: FBT001
    def edge(start: int, end: int, reason: str) -> dict[str, Any]:
        names = {f"{side}_{kind}": "x" for side in ("from", "to") for kind in ("op", "loc")}
        return {"from": start, "to": end, "bytes": 8, "reason": reason, "would_change": "much", **names}

    def kernel(name: str, *ids: int) -> dict[str, Any]:
        ops = [{"id": i, "op": "linalg.generic", "loc": "", "bytes": 4, "root": True} for i in ids]
        return {"name": name, "ops": ops, "edges": [], "groups": [], "predicted": []}

    through_a_view = [edge(0, 2, "op 2 stays with IREE: a view"), edge(2, 3, "op 2 stays with IREE: a view")]
    edges = [*through_a_view, *([edge(1, 4, "it is slower")] if is_known else [])]
    report = Report.from_json({"kernels": [kernel("a", 0, 1), kernel("b", 3, 4)], "edges_at_launch": edges})
    [boundary] = summarize(report).boundaries
    assert boundary.bytes == (16 if is_known else 8)
    assert ("it is slower" if is_known else "a reshape lies between") in boundary.reason


# A contraction that reads a padded image does not ask for a larger target, which would not help.


def test_what_would_change_a_boundary_fits_its_reason() -> None:
    boundaries = summarize(_program("cnn").metadata.report).boundaries
    changes = {boundary.reason: boundary.would_change for boundary in boundaries}
    assert changes["its contraction would read an operand under a guard"] == "a pad that is stored"


# Coverage counts the predicted time of IREE's kernels, too.


def test_coverage_counts_what_iree_computes() -> None:
    program = tilewright.compile(running_sums_of_softmax(), threads=1)
    coverage = summarize(program.metadata.report, iree_seconds=program.metadata.iree_seconds).coverage
    assert coverage.iree_seconds > 0
    share = re.search(r"and (\d+)% of the predicted", program.explain())
    assert share and 0 < int(share[1]) < 100
    assert "left to IREE, and why (at least" in program.explain()


# Reshapes and layouts of weights are noise, which only `verbose` shows.


def test_layouts_are_shown_by_verbose_alone() -> None:
    program = _program("gpt2-block")
    assert "tensor.expand_shape" not in program.explain()
    assert "lays a weight out for its kernel" not in program.explain()
    verbose = program.explain(verbose=True)
    assert "tensor.expand_shape#20 (reshape_11)" in verbose
    assert "lays a weight out for its kernel" in verbose


# JSON has one spelling of members, as plans and targets have.


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def test_json_spells_members_in_camel_case(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    onnx.save(build("softmax-2048x2048"), model)
    result = CliRunner().invoke(cli, ["explain", "--json", str(model)])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    named_by_users = {"variants", "state", "resources", "kinds"}
    for name in named_by_users & set(data):
        data[name] = {}
    for kernel in data["summary"]["kernels"]:
        kernel["kinds"] = {}
    keys = set(_keys(data))
    assert {"wouldChange", "predictedSeconds", "leftToIree"} <= keys
    assert {key for key in keys if "_" in key} == set()

"""Tests that every function keeps its stated error on a sample of f32, and that all special values are right.

`measure.py` does the same for all of f32; docs/reference/math.md has its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cpu_levels
import pytest
from functions import FUNCTIONS
from judge import Judge, judge

_STRIDE = 4099  # a prime, so that the sample has all exponents, all signs and varied low bits


@pytest.fixture(scope="module")
def bench(cpu_target: str) -> Iterator[Judge]:
    with judge(target=cpu_target) as made:
        yield made


@pytest.fixture(scope="module")
def flushing() -> Iterator[Judge]:
    with judge(flush=True) as made:
        yield made


@pytest.mark.cpu_levels
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_as_stated(bench: Judge, name: str, cpu_target: str) -> None:
    function = FUNCTIONS[name]
    if reason := cpu_levels.why_not_run(cpu_target):
        bench.kernel(function)
        pytest.skip(reason)
    for verdict in (bench.every(function, stride=_STRIDE, threads=1), bench.points(function)):
        assert verdict.wrong == 0, f"{name}{verdict.wrong_at} = {verdict.wrong_got}"
        assert verdict.worst <= function.bound, f"{name}{verdict.at} = {verdict.got}: {verdict.worst} ulp"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_flushed_denormals_do_no_harm(flushing: Judge, name: str) -> None:
    """The runtime treats denormals as zeros; all other results must be as accurate as without that."""
    verdict = flushing.points(FUNCTIONS[name])
    assert verdict.wrong == 0, f"{name}{verdict.wrong_at} = {verdict.wrong_got}"
    assert verdict.worst <= FUNCTIONS[name].bound, f"{name}{verdict.at}: {verdict.worst} ulp"


def test_reference_agrees_with_more_digits(bench: Judge) -> None:
    """The reference has double precision; at its worst arguments, mpmath must give the same error."""
    for name in ("exp", "log1p", "sin", "pow"):
        verdict = bench.every(FUNCTIONS[name], stride=_STRIDE * 16, threads=1)
        assert verdict.confirmed(FUNCTIONS[name]) == pytest.approx(verdict.worst, abs=1e-3)


@pytest.mark.parametrize(("name", "other"), [("exp", "exp2"), ("log", "sqrt")])
def test_judge_finds_a_wrong_function(name: str, other: str) -> None:
    """A function that is judged as another one must fail clearly, also at special values that differ."""
    with judge() as bench:
        verdict = bench.points(replace(FUNCTIONS[name], body=f"%r = math.{other} %a : f32"))
    assert verdict.worst > 1000
    assert bool(verdict.wrong) == (name == "log")


def test_document_states_the_bounds_that_are_asserted() -> None:
    """The documented bounds are the asserted ones, and the documented largest errors over all f32 are within them."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "math.md").read_text()
    rows = re.findall(r"^\| (\w+)[^|]*\| ([\d.]+) ulp( of the argument)? \| ([\d.]+) \|", text, re.MULTILINE)
    stated = {name: (float(bound), bool(argument)) for name, bound, argument, _ in rows}
    assert stated == {f.name: (f.bound, f.of_argument) for f in FUNCTIONS.values()}
    assert all(float(error) <= float(bound) for _, bound, _, error in rows)

"""Calibration: what measurements become fields of a target, and which are refused. Measurements are made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tilewright.calibration.gpu import Check, calibrate_gpu, pair_error
from tilewright.calibration.machine import read_caches
from tilewright.calibration.processor import Cache, calibrate_processor
from tilewright.calibration.quantity import Quantity
from tilewright.cli.main import cli
from tilewright.errors import CalibrationError
from tilewright.records.targets import Target

DATE = "2026-11-27"
RESULTS = Path(__file__).parents[2] / "benchmarks/results"


class FakeMachine:
    """A processor of four cores with AVX2, whose measurements vary as `noise` says, in turn."""

    processor = "a fake"
    cores = 4
    caches = (Cache(1, 32 << 10, False), Cache(2, 1 << 20, False), Cache(3, 8 << 20, True))

    def __init__(self, noise: tuple[float, ...] = (1.0,)) -> None:
        self.noise: Iterator[float] = cycle(noise)
        self.copied: list[int] = []

    def multiply_adds(self, vector_bytes: int) -> float:
        return 10e9 * vector_bytes * next(self.noise)

    def copies(self, bytes_of_core: int) -> float:
        self.copied.append(bytes_of_core)
        return 1e15 / bytes_of_core

    def launch(self, *, workgroups: bool) -> float:
        return 5e-6 if workgroups else 2e-6


def calibrated(machine: FakeMachine, base: str = "x86-64-avx2") -> dict[str, Any]:
    return calibrate_processor(machine, Target.lookup(base), date=DATE).fields


def test_measurements_become_fields() -> None:
    fields = calibrated(FakeMachine())
    target = Target.from_json(fields)
    assert target.cores == 4
    assert target.flops_per_second == 10e9 * 32
    assert target.launch_seconds == 2e-6
    assert [level.name for level in target.levels] == ["L1", "L2", "L3", "DRAM"]
    assert [level.capacity_bytes for level in target.levels[:3]] == [32 << 10, 1 << 20, 8 << 20]
    assert [level.units for level in target.levels] == [4, 4, 1, 1]
    assert target.levels[0].bandwidth == 1e15 / (16 << 10)


def test_a_cache_is_measured_with_half_of_it_in_all_cores_together() -> None:
    machine = FakeMachine()
    calibrated(machine)
    assert machine.copied[:3] == [16 << 10, 512 << 10, 1 << 20]


def test_special_functions_follow_multiply_adds() -> None:
    base = Target.lookup("x86-64-avx2").with_cores(4)
    target = Target.from_json(calibrated(FakeMachine()))
    ratio = target.flops_per_second / base.flops_per_second
    assert target.special_per_second == pytest.approx(base.special_per_second * ratio)


def test_handing_work_over_is_what_a_launch_of_all_threads_takes_longer() -> None:
    target = Target.from_json(calibrated(FakeMachine()))
    handed = next(cost for cost in target.costs if cost.name == "cpu.workgroupSeconds")
    assert handed.value == pytest.approx(3e-6)
    assert (handed.source, handed.date) == ("tilewright calibrate on a fake", DATE)


def test_it_says_how_sure_it_is() -> None:
    machine = FakeMachine(noise=(1.0, 1.0, 1.0, 1.05, 1.0))  # SSE and AVX2 registers in turn
    calibration = calibrate_processor(machine, Target.lookup("x86-64-avx2"), date=DATE)
    assert any("within 5.0%" in line for line in calibration.describe())
    assert "agree within 5%" in calibration.fields["source"]


def test_repetitions_that_disagree_are_refused() -> None:
    with pytest.raises(CalibrationError, match=r"disagree by 2[1-9]%.*end other programs"):
        calibrated(FakeMachine(noise=(1.0, 1.0, 1.0, 1.25, 1.0)))


def test_repetitions_at_the_limit_are_taken() -> None:
    assert Quantity("a", "s", (0.9, 1.0, 1.1)).disagreement == pytest.approx(0.2)
    calibrated(FakeMachine(noise=(1.0, 1.0, 1.0, 1.19, 1.0)))


def test_registers_that_the_processor_lacks_are_left_out() -> None:
    class Narrow(FakeMachine):
        def multiply_adds(self, vector_bytes: int) -> float:
            return 0.0 if vector_bytes == 16 else super().multiply_adds(vector_bytes)

    calibration = calibrate_processor(Narrow(), Target.lookup("x86-64-avx2"), date=DATE)
    assert not any(line.startswith("multiply-adds, 16") for line in calibration.describe())


def test_a_level_that_cannot_be_measured_keeps_the_numbers_of_the_base() -> None:
    class Small(FakeMachine):
        def copies(self, bytes_of_core: int) -> float:
            return 0.0 if bytes_of_core >= 32 << 20 else super().copies(bytes_of_core)

    target = Target.from_json(calibrated(Small()))
    base = Target.lookup("x86-64-avx2").with_cores(4)
    assert target.levels[-1].bandwidth == base.levels[-1].bandwidth


def test_caches_are_read_from_linux(tmp_path: Path) -> None:
    rows = [("1", "Data", "48K", "0"), ("1", "Instruction", "32K", "0"), ("3", "Unified", "1024K", "0-2,5")]
    for number, values in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
            (folder / name).write_text(value + "\n")
    assert read_caches(tmp_path, cores=4) == [Cache(1, 48 << 10, False), Cache(3, 1 << 20, True)]
    assert read_caches(tmp_path / "none", cores=4) == []


def results(ratio: float = 1.0, *, kernels: int = 12, target: str = "cuda:h200") -> dict[str, Any]:
    """Results whose kernels take `ratio` of the prediction and half as much again, in turn."""
    measured = [4e-6 * ratio * (1 if number % 2 else 1.5) for number in range(kernels)]
    return {
        "date": "2026-11-26T18:11+00:00",
        "gpu": {
            "gpu": "a fake",
            "copy_gb_per_s": 4000.0,
            "l2_bytes": 60 << 20,
            "memory_bytes": 140 << 30,
            "multiprocessors": 132,
        },
        "bundle": {"target": target},
        "workloads": [
            {"kernels": [{"name": "add_0", "predicted_s": 4e-6, "measured_s": seconds}]}
            for seconds in measured
        ],
    }


def fitted(*checks: Any) -> Target:
    read = [Check.read(data, file="made up") for data in checks]
    return calibrate_gpu(read, Target.lookup("cuda:h200")).target()


def test_a_gpu_gets_the_memory_that_was_measured() -> None:
    target = fitted(results())
    levels = {level.name: level for level in target.levels}
    assert levels["DRAM"].bandwidth == 4000e9
    assert levels["DRAM"].capacity_bytes == 140 << 30
    assert levels["L2"].capacity_bytes == 60 << 20
    assert levels["L2"].bandwidth == Target.lookup("cuda:h200").levels[1].bandwidth


def test_a_launch_is_what_short_kernels_take_longer_than_predicted() -> None:
    before = Target.lookup("cuda:h200").launch_seconds
    assert fitted(results(1.0)).launch_seconds == pytest.approx(before + 1e-6)


def test_the_error_of_comparisons_is_that_of_pairs_of_kernels() -> None:
    assert pair_error([1.0, 1.0, 1.0]) == 0
    assert pair_error([0.5, 1.0]) == pytest.approx(0.5)
    assert pair_error([2.0, 4.0]) == pytest.approx(0.5)  # an error that all share decides nothing
    errors = {cost.name: cost for cost in fitted(results()).costs}
    assert errors["confidence.kernels"].value == pytest.approx(1 / 3)
    assert errors["confidence.kernels"].source == "GPU check on a fake: made up"
    assert errors["confidence.contractions"].value == pytest.approx(1 / 11)  # too few to tell


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "these are no results of the GPU check"),
        ([], "these are no results of the GPU check"),
        (results(target="cuda:a100"), "results of kernels for cuda:a100, not for cuda:h200"),
        (results(kernels=9), "9 kernels with a measured time; at least 10 are needed"),
    ],
)
def test_results_that_tell_nothing_are_refused(data: Any, message: str) -> None:
    with pytest.raises(CalibrationError, match=message):
        fitted(data)


def test_checks_of_one_gpu_are_pooled() -> None:
    fast, slow = results(kernels=6), results(kernels=6)
    slow["gpu"] = slow["gpu"] | {"copy_gb_per_s": 4200.0}
    assert fitted(fast, slow).levels[-1].bandwidth == pytest.approx(4100e9)


def test_checks_that_disagree_are_refused() -> None:
    slow = results()
    slow["gpu"] = slow["gpu"] | {"copy_gb_per_s": 3000.0}
    with pytest.raises(CalibrationError, match="bandwidth of a copy disagree by 29%"):
        fitted(results(), slow)


def test_checks_of_two_gpus_are_refused() -> None:
    other = results()
    other["gpu"] = other["gpu"] | {"gpu": "another"}
    with pytest.raises(CalibrationError, match="results of another, not of a fake"):
        fitted(results(), other)


def test_the_command_fits_stored_results(tmp_path: Path) -> None:
    file = tmp_path / "h200.json"
    stored = RESULTS / "2026-11-26-gemm-f16-h200.json"
    ran = CliRunner().invoke(cli, ["calibrate", "--from", str(stored), "-o", str(file)])
    assert ran.exit_code == 0, ran.output
    target = Target.lookup(file)
    assert target.name == "cuda:h200-calibrated"
    assert 3.9e12 < target.levels[-1].bandwidth < 4.3e12
    assert "2026-11-26-gemm-f16-h200.json" in target.source


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "cuda:h200"], "cuda:h200 is a GPU, and this command measures processors"),
        (["--target", "mine.json"], "no target file can be based on 'mine.json'"),
        (["--from", "missing.json"], "missing.json: cannot be read"),
    ],
)
def test_the_command_refuses(arguments: list[str], message: str) -> None:
    ran = CliRunner().invoke(cli, ["calibrate", *arguments])
    assert ran.exit_code == 1
    assert message in ran.output


def test_the_command_refuses_what_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{")
    ran = CliRunner().invoke(cli, ["calibrate", "--from", str(tmp_path / "results.json")])
    assert ran.exit_code == 1
    assert "not JSON" in ran.output


def test_costs_of_a_target_survive_json() -> None:
    target = Target.lookup("x86-64-avx2")
    again = Target.from_json(json.loads(json.dumps(target.to_json())))
    assert again == target
    assert {cost.name.partition(".")[0] for cost in target.costs} == {"cpu", "common", "confidence"}

"""Times the plans of a tuning bundle on this machine's GPU: `python3 run.py` in the bundle.

It needs a driver, numpy and ml_dtypes, but not the compiler. All plans of a subprogram take turns, each with a cold L2,
so that anything that slows the GPU for a while slows all of them. If a plan makes the driver fail, it is left out and
its subprogram starts again; each attempt has a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import ProgramError
from tilewright.runtime.cold import ColdCache
from tilewright.runtime.cuda import Buffer, Cuda, CudaDriver
from tilewright.runtime.launch_loops import FlowReader
from tilewright.system import lifeline

FORMAT, MANIFEST, PROGRAMS = 1, "manifest.json", "programs.zip"
_TURNS = 25
_SMALL_NUMBER = 0x3C  # Byte that fills floats; repeated, it makes a small positive number of any float type.


@dataclass
class Times:
    """Times of the plans of a subprogram, by position; if one is `faulty`, the others were not timed."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    faulty: int | None = None


TimePlans = Callable[[int, set[int]], Times]
"""Function that times all plans of the subprogram at an index, except the excluded ones."""


def main(arguments: Sequence[str] | None = None, *, library: Any = None) -> int:
    """Runs the command. With a fake driver `library`, everything runs in this process."""
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("bundle", type=Path, help="folder of the bundle")
    parser.add_argument("--output", type=Path, default=Path("results.json"))
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--without", type=int, nargs="*", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        if options.only is not None:
            print(json.dumps(asdict(_time_plans(options.bundle, Cuda(), options.only, set(options.without)))))
            return 0
        if not os.access(
            options.output.parent, os.W_OK
        ):  # Checked first, so that minutes of work are not lost.
            raise ProgramError("cannot be written", where=str(options.output))

        def time_plans(place: int, left_out: set[int]) -> Times:
            if library is None:
                return _in_process(options.bundle, place, left_out)
            return _time_plans(options.bundle, Cuda(library), place, left_out)

        results = measure(options.bundle, CudaDriver(library), time_plans)
        options.output.write_text(json.dumps(results) + "\n")
    except (ProgramError, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.output}: import it with `tilewright tuning import {options.output}`", file=sys.stderr)
    return 0


def measure(bundle: Path, driver: CudaDriver, time_plans: TimePlans) -> dict[str, Any]:
    """Returns the manifest, with times for every plan that runs."""
    results: dict[str, Any] = json.loads((bundle / MANIFEST).read_text())
    for place, subprogram in enumerate(results["subprograms"]):
        times = _without_faults(functools.partial(time_plans, place))
        for number, plan in enumerate(subprogram["plans"]):
            if number in times.problems:
                plan["problem"] = times.problems[number]
            else:
                plan["seconds"] = times.seconds[number]
        print(f"{subprogram['name']}: {len(subprogram['plans'])} plans", file=sys.stderr, flush=True)
    device = driver.describe()
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {**results, "machine": f"{device.name}, driver {device.driver}", "measured_at": now}


def _without_faults(time_plans: Callable[[set[int]], Times]) -> Times:
    faults: dict[int, str] = {}
    while (times := time_plans(set(faults))).faulty is not None:
        faults[times.faulty] = times.problems[times.faulty]
    times.problems.update(faults)
    return times


def _in_process(bundle: Path, place: int, left_out: set[int]) -> Times:
    command = [sys.executable, "-m", "tilewright.tuning.on_gpu", str(bundle), "--only", str(place)]
    done = lifeline.run([*command, "--without", *map(str, left_out)])
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise ProgramError(said[-1].removeprefix("error: ") if said else f"exit status {done.returncode}")
    read = json.loads(done.stdout)
    return Times(
        {int(number): seconds for number, seconds in read["seconds"].items()},
        {int(number): problem for number, problem in read["problems"].items()},
        read["faulty"],
    )


def _time_plans(bundle: Path, cuda: Cuda, place: int, left_out: set[int]) -> Times:
    plans = json.loads((bundle / MANIFEST).read_text())["subprograms"][place]["plans"]
    cool, times = ColdCache(cuda), Times()
    runs: dict[int, Callable[[], float]] = {}
    with zipfile.ZipFile(bundle / PROGRAMS) as archive:
        for number, plan in enumerate(plans):
            if number in left_out:
                continue
            try:
                run = prepare(archive.read(f"{plan['folder']}/kernels.ptx"), plan["launches"], cuda, cool)
                run()
            except ProgramError as error:
                times.problems[number] = str(error)
                if not is_alive(cuda):
                    times.faulty = number
                    return times
            else:
                runs[number] = run
    times.seconds = {number: [] for number in runs}
    for _ in range(_TURNS):
        for number, run in runs.items():
            times.seconds[number].append(run())
    return times


def is_alive(cuda: Cuda) -> bool:
    """True if the driver still works for this process; after a fault it does not."""
    try:
        cuda.synchronize()
    except ProgramError:
        return False
    return True


def prepare(ptx: bytes, flow: Mapping[str, Any], cuda: Cuda, cool: ColdCache) -> Callable[[], float]:
    """Returns a call that runs the kernels once, with a cold L2, and returns the GPU's seconds."""
    reader = FlowReader(flow["tensors"], frozenset())
    reader.read(flow["launches"])
    used = sorted({number for step in reader.steps for number in step.tensors})
    buffers = {number: _filled(flow["tensors"][number], reader.bytes_of(number), cuda) for number in used}
    module = cuda.load(ptx)
    launches = [
        module.kernel(step.kernel, dynamic_shared_bytes=step.shared_bytes).bind(
            step.workgroups, step.threads, [buffers[number] for number in step.tensors]
        )
        for step in reader.steps
    ]
    begin, end = cuda.event(), cuda.event()

    def run() -> float:
        cool()
        begin.record()
        for launch in launches:
            launch()
        end.record()
        cuda.synchronize()
        return end.seconds_since(begin)

    return run


def _filled(tensor: Mapping[str, Any], size: int, cuda: Cuda) -> Buffer:
    """Allocates a filled tensor: floats are small, so that nothing overflows; integers are zero, so that indices are
    valid."""
    buffer = cuda.allocate(max(1, size))
    buffer.fill(0 if tensor["element"].startswith(("i", "ui")) else _SMALL_NUMBER)
    return buffer


if __name__ == "__main__":
    sys.exit(main())

"""Times the plans of a tuning bundle on the GPU that is here: `python3 run.py` in the bundle.

Needs a driver, numpy and ml_dtypes, and nothing else of what compiles. All plans of a subprogram take turns, each time
with a cold L2, so what slows the GPU for a while slows all of them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod
from pathlib import Path
from typing import Any

from tilewright.cold import ColdCache
from tilewright.cuda import Buffer, Cuda
from tilewright.errors import ProgramError

FORMAT, MANIFEST, PROGRAMS = 1, "manifest.json", "programs.zip"
_TURNS = 25
_SMALL_NUMBER = 0x3C  # bytes of which make a small positive float of any type


def main(arguments: Sequence[str] | None = None, *, library: Any = None) -> int:
    """The command there."""
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("bundle", type=Path, help="the folder that the bundle is in")
    parser.add_argument("--output", type=Path, default=Path("results.json"))
    options = parser.parse_args(arguments)
    try:
        if not os.access(options.output.parent, os.W_OK):  # Said before the work of minutes.
            raise ProgramError("cannot be written", where=str(options.output))
        results = measure(options.bundle, Cuda(library))
        options.output.write_text(json.dumps(results) + "\n")
    except (ProgramError, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.output}: take it over with `tilewright tuning import {options.output}`", file=sys.stderr)
    return 0


def measure(bundle: Path, cuda: Cuda) -> dict[str, Any]:
    """The manifest, with times for every plan that runs."""
    results: dict[str, Any] = json.loads((bundle / MANIFEST).read_text())
    cool = ColdCache(cuda)
    with zipfile.ZipFile(bundle / PROGRAMS) as archive:
        for subprogram in results["subprograms"]:
            _measure_subprogram(subprogram, archive, cuda, cool)
            print(f"{subprogram['name']}: {len(subprogram['plans'])} plans", file=sys.stderr, flush=True)
    device = cuda.describe()
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {**results, "machine": f"{device.name}, driver {device.driver}", "measured_at": now}


def _measure_subprogram(
    subprogram: dict[str, Any], archive: zipfile.ZipFile, cuda: Cuda, cool: ColdCache
) -> None:
    runs: list[tuple[dict[str, Any], Callable[[], float]]] = []
    for plan in subprogram["plans"]:
        folder = plan["folder"]
        try:
            run = _prepare(archive.read(f"{folder}/kernels.ptx"), plan["launches"], cuda, cool)
            run()
        except ProgramError as error:
            plan["problem"] = str(error)
        else:
            plan["seconds"] = []
            runs.append((plan, run))
    for _ in range(_TURNS):
        for plan, run in runs:
            plan["seconds"].append(run())


def _prepare(ptx: bytes, flow: Mapping[str, Any], cuda: Cuda, cool: ColdCache) -> Callable[[], float]:
    """A call that runs the kernels once and gives the GPU's seconds."""
    buffers = [_filled(tensor, cuda) for tensor in flow["tensors"]]
    module = cuda.load(ptx)
    launches = []
    for launch in flow["launches"]:
        kernel = module.kernel(launch["kernel"], dynamic_shared_bytes=launch["dynamic_shared_bytes"])
        bound = [buffers[number] for number in (*launch["inputs"], *launch["outputs"])]
        launches.append(kernel.bind(launch["workgroups"], launch["threads"], bound))
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


def _filled(tensor: Mapping[str, Any], cuda: Cuda) -> Buffer:
    """Floats are small, so that nothing overflows; integers zero, so that no index is outside."""
    bits = int(re.sub(r"\D", "", tensor["element"].partition("E")[0]) or 8)
    buffer = cuda.allocate(max(1, prod(tensor["shape"]) * ceil(bits / 8)))
    buffer.fill(0 if tensor["element"].startswith(("i", "ui")) else _SMALL_NUMBER)
    return buffer


if __name__ == "__main__":
    sys.exit(main())

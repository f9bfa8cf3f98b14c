"""Writes a workload as an ONNX file, or lists the workloads."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.workloads import WORKLOADS, WorkloadError, build


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workloads", description=__doc__)
    parser.add_argument("name", nargs="?", help="the workload to write")
    parser.add_argument(
        "-o", dest="output", default="-", metavar="FILE", help="output file; '-' is stdout (default)"
    )
    parser.add_argument("--list", action="store_true", help="list names, suites and descriptions")
    options = parser.parse_args(arguments)
    if options.list:
        for workload in WORKLOADS.values():
            print(f"{workload.name:<36} {workload.suite:<14} {workload.description}")
        return 0
    if options.name is None:
        parser.error("give the name of a workload, or --list")
    try:
        data = build(options.name).SerializeToString()
    except WorkloadError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.output == "-":
        sys.stdout.buffer.write(data)
        return 0
    try:
        Path(options.output).write_bytes(data)
    except OSError as error:
        print(f"error: {options.output}: cannot be written ({error.strerror})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    # `--list | head` ends without an error.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())

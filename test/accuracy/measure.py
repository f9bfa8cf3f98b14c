"""Prints the largest error of every function over all f32, and every special value that is wrong.

PYTHONPATH=build/python:. python test/accuracy/measure.py [FUNCTION...] [--target T] [--stride N]
"""

from __future__ import annotations

import argparse
import time

from functions import FUNCTIONS
from judge import judge


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", help=f"default: all of {', '.join(FUNCTIONS)}")
    parser.add_argument("--target", default="cpu", help="the compiler's target; this machine must run it")
    parser.add_argument("--stride", type=int, default=1, help="every Nth value alone")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--flush", action="store_true", help="denormals are zeros, as in IREE's runtime")
    options = parser.parse_args()
    print("| function | max ulp | at | got | by mpmath | special values wrong | judged | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    with judge(target=options.target, flush=options.flush) as bench:
        for name in options.functions or FUNCTIONS:
            function, started = FUNCTIONS[name], time.perf_counter()
            sweep = bench.every(function, stride=options.stride, threads=options.threads)
            points = bench.points(function)
            verdict = max(sweep, points, key=lambda found: found.worst)
            wrong = max(sweep, points, key=lambda found: found.wrong)
            where = ", ".join(f"{v:.9g}" for v in verdict.at[: 2 if function.binary else 1])
            note = f"{wrong.wrong} (f{wrong.wrong_at} = {wrong.wrong_got})" if wrong.wrong else "0"
            cells = [
                name,
                f"{verdict.worst:.3f}",
                where,
                f"{verdict.got:.9g}",
                f"{verdict.confirmed(function):.3f}",
                note,
                f"{sweep.judged + points.judged:,}",
                f"{time.perf_counter() - started:.0f}",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    _main()

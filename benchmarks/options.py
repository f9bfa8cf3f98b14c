"""The runner's command line; every invalid option ends it with one line before anything is measured."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tilewright.errors import TilewrightError
from tilewright.records.targets import resolve_targets
from tilewright.system.cores import available_cores

from benchmarks.peers import PEERS
from benchmarks.suites import DTYPES, SUITES

_FORMS = (("json", ".json"), ("markdown", ".md"), ("plot", ".svg"))
_PLOT_FORMATS = (".svg", ".png", ".pdf")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the command line."""

    suite: list[str]
    peers: list[str]
    target: str
    is_simulated: bool
    threads: int
    workloads: str
    dtypes: list[str]
    seconds: float
    rounds: int
    limit: float
    alone: tuple[str, ...]
    json: Path | None
    markdown: Path | None
    plot: Path | None

    @property
    def writes_files(self) -> bool:
        """True if files are written; otherwise the report is printed."""
        return any((self.json, self.markdown, self.plot))


def parse(arguments: Sequence[str] | None, *, description: str | None) -> Options:
    """Parses the command line; exits with status 2 if it is invalid."""
    parser = _make_parser(description)
    values = vars(parser.parse_args(arguments))
    stem = values.pop("report")
    try:
        is_simulated = resolve_targets(values["target"], threads=1)[0].backend == "cuda"
    except TilewrightError as error:
        parser.error(f"argument --target: {error}")
    if values["plot"] is not None:
        _check_plot(parser, values["plot"], is_simulated=is_simulated)
    if stem is not None:
        _fill_in(parser, values, stem, forms=_FORMS[:2] if is_simulated else _FORMS)
    return Options(**values, is_simulated=is_simulated)


def _fill_in(
    parser: argparse.ArgumentParser, values: dict[str, Any], stem: str, *, forms: Sequence[tuple[str, str]]
) -> None:
    """Sets the files of --report, except those that have options of their own."""
    if stem.endswith(os.sep) or Path(stem).is_dir():
        parser.error(f"argument --report: '{stem}' is a folder, not what files' names begin with")
    for form, ending in forms:
        try:
            values[form] = values[form] or _file(stem + ending)
        except argparse.ArgumentTypeError as error:
            parser.error(f"argument --report: {error}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Prints one line, like all other errors."""
        self.exit(2, f"error: {message}; --help tells more\n")


def _make_parser(description: str | None) -> argparse.ArgumentParser:
    parser = _Parser(prog="benchmarks/run.py", description=description)
    parser.add_argument(
        "suite", nargs="+", choices=SUITES, metavar="SUITE", help=f"suites to run, of {', '.join(SUITES)}"
    )
    parser.add_argument(
        "--peers",
        type=_names_of(PEERS, "peer"),
        default=list(PEERS),
        metavar="A,B",
        help=f"systems, of {', '.join(PEERS)}; default: all",
    )
    parser.add_argument("--target", default="cpu", help="target of our compiler; a GPU is simulated")
    parser.add_argument(
        "--threads",
        type=_count,
        default=available_cores(),
        metavar="N",
        help="threads of every system; default here: %(default)s",
    )
    parser.add_argument("--workloads", default="*", metavar="PATTERN", help="names with * and ?")
    parser.add_argument(
        "--dtypes",
        type=_names_of(DTYPES, "dtype"),
        default=["f32", "bf16"],
        metavar="A,B",
        help=f"types, of {', '.join(DTYPES)}, if the suite has them; default: f32,bf16",
    )
    parser.add_argument(
        "--seconds",
        type=_duration,
        default=3.0,
        metavar="S",
        help="seconds of timing for a workload, in all systems and rounds together; default: %(default)g",
    )
    parser.add_argument(
        "--rounds",
        type=_count,
        default=3,
        metavar="N",
        help="rounds, each in fresh processes with fresh inputs; default: %(default)s",
    )
    parser.add_argument(
        "--limit",
        type=_duration,
        default=180.0,
        metavar="S",
        help="seconds that preparing a program may take; default: %(default)g",
    )
    parser.add_argument(
        "--alone",
        type=_command,
        default=(),
        metavar="COMMAND",
        help="command that reserves the machine while timing: prints a line when it is free, ends with its input",
    )
    parser.add_argument("--json", type=_file, metavar="FILE", help="all rows and the summary")
    parser.add_argument("--markdown", type=_file, metavar="FILE", help="the report")
    parser.add_argument("--plot", type=_file, metavar="FILE", help="ratios and intervals; .svg, .png or .pdf")
    parser.add_argument("--report", metavar="STEM", help="all three: STEM.json, STEM.md and STEM.svg")
    return parser


def _check_plot(parser: argparse.ArgumentParser, path: Path, *, is_simulated: bool) -> None:
    """Checks the plot's path early, because the plot is drawn last."""
    if is_simulated:
        parser.error("argument --plot: a simulated GPU has no peers to be compared with")
    if path.suffix not in _PLOT_FORMATS:
        parser.error(f"argument --plot: '{path}' must end in {', '.join(_PLOT_FORMATS)}")
    if importlib.util.find_spec("matplotlib") is None:
        parser.error("argument --plot: matplotlib is not installed; run: pip install -e '.[bench]'")


def _names_of(known: Collection[str], noun: str) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"no {noun} is called '{name}'; there are {', '.join(known)}"
                )
        return list(dict.fromkeys(chosen))

    return names


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 1 or more")
    return int(text)


def _duration(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return seconds


def _command(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a command ({error})") from None
    if words and shutil.which(words[0]) is None:
        raise argparse.ArgumentTypeError(f"'{words[0]}' is not a program on this machine")
    return tuple(words)


def _file(text: str) -> Path:
    path = Path(text)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{text}' cannot be written")
    return path

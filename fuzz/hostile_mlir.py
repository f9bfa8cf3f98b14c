"""MLIR that no compiler writes: the repository's own test inputs with mutated lines and tokens."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

Rng = np.random.Generator

# These passes run if the text still parses: all of them down to the object file, for a target that every machine
# supports.
_PIPELINES = (
    (),
    ("--canonicalize",),
    ("--allow-unregistered-dialect", "--tile-form-subprograms=target=x86-64-avx2"),
    (
        "--allow-unregistered-dialect",
        "--pass-pipeline=builtin.module(tilewright-cpu{target=x86-64-avx2 object-path=kernels.o})",
    ),
)
_RUN = re.compile(r"RUN:(.*?)$", re.MULTILINE)
_TOKEN = re.compile(r"\s+|[\w.$]+|->|::|.")
_DIMS = re.compile(r"(tensor|memref|vector)<(?:[\d?]+x)*")
_INTEGERS = ("0", "-1", "1", "2", "3", "17", "4294967296", "9223372036854775807", "9223372036854775808",
             "-9223372036854775808", "1000000000000000000", "1" + "0" * 40)  # fmt: skip
_TYPES = ("i1", "i8", "i64", "i128", "f16", "bf16", "f64", "f128", "index", "none", "tensor<*xf32>", "memref<f32>",
          "vector<4xf32>", "complex<f32>", "tuple<>", "f8E4M3FN")  # fmt: skip
_SHAPES = ("", "0x", "1x", "?x", "1000000000000000000x", "1000000000000000000x1000000000000000000x", "1x" * 20,
           "3x" * 33, "4294967296x4294967296x", "9223372036854775807x", "-1x", "65536x65536x65536x65536x")  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A module, and the arguments of `tilewright-opt` in its test."""

    text: str
    arguments: tuple[str, ...]


@cache
def samples(folder: Path) -> tuple[Sample, ...]:
    """Returns every section of every lit test below the folder, with the arguments of the test's first command."""
    found: list[Sample] = []
    for path in sorted(folder.rglob("*.mlir")):
        text = path.read_text()
        arguments = _arguments(text, path)
        if arguments is not None:
            sections = re.split(r"^// -----.*$", text, flags=re.MULTILINE)
            found += [Sample(_without_comments(section), arguments) for section in sections]
    return tuple(found)


def _arguments(text: str, path: Path) -> tuple[str, ...] | None:
    lines = [line.strip() for line in _RUN.findall(text)]
    last = next((number for number, line in enumerate(lines) if not line.endswith("\\")), len(lines))
    command = " ".join(line.removesuffix("\\") for line in lines[: last + 1])
    words = shlex.split(command, posix=True)
    if "tilewright-opt" not in words:
        return None
    words = words[words.index("tilewright-opt") + 1 :]
    ends = [
        words.index(end)
        for end in ("|", ">", "2>&1", "<", "not", "FileCheck", "tilewright-opt")
        if end in words
    ]
    dropped = ("%s", "--split-input-file", "--verify-diagnostics", "-o", "/dev/null")
    kept = [word for word in words[: min(ends, default=None)] if word not in dropped]
    # Arguments that name files written by the test are dropped.
    return tuple(word.replace("%S", str(path.parent)) for word in kept if "%t" not in word)


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def hostile_text(seed: int, folder: Path) -> tuple[str, tuple[str, ...], str]:
    """Returns the mutation, the arguments, and the text."""
    rng = np.random.default_rng([seed, 4])
    pool = samples(folder)
    sample = pool[int(rng.integers(len(pool)))]
    text, names = sample.text, []
    for _ in range(int(rng.integers(1, 4))):
        mutation = _MUTATIONS[int(rng.integers(len(_MUTATIONS)))]
        text = mutation(text, rng, pool)
        names.append(mutation.__name__.strip("_"))
    arguments = sample.arguments if rng.random() < 0.5 else _PIPELINES[_at(rng, _PIPELINES)]
    return "+".join(names), arguments, text


def _at(rng: Rng, sequence: Sequence[object]) -> int:
    return int(rng.integers(max(1, len(sequence))))


def _delete_line(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    lines = text.splitlines()
    del lines[_at(rng, lines) : _at(rng, lines)]
    at = _at(rng, lines)
    return "\n".join(lines[:at] + lines[at + 1 :])


def _repeat_line(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    lines = text.splitlines()
    at = _at(rng, lines)
    return "\n".join(lines[:at] + lines[at : at + 1] * int(rng.integers(2, 5)) + lines[at + 1 :])


def _move_line(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    lines = text.splitlines() or [""]
    line = lines.pop(_at(rng, lines))
    lines.insert(_at(rng, lines), line)
    return "\n".join(lines)


def _borrow_line(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    lines = text.splitlines()
    donor = pool[_at(rng, pool)].text.splitlines() or [""]
    lines.insert(_at(rng, lines), donor[_at(rng, donor)])
    return "\n".join(lines)


def _replaced(text: str, rng: Rng, pattern: str, options: Sequence[str]) -> str:
    """Replaces one match, or all matches with the same text, by an option."""
    matches = list(re.finditer(pattern, text))
    if not matches:
        return text
    match, option = matches[_at(rng, matches)], options[_at(rng, options)]
    if rng.random() < 0.5:
        return re.sub(re.escape(match[0]) + r"(?!\w)", lambda _: option, text)
    return text[: match.start()] + option + text[match.end() :]


def _other_integer(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    return _replaced(text, rng, r"(?<![\w.%#])-?\d+\b(?!x)", _INTEGERS)


def _other_type(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    return _replaced(text, rng, r"(?<=[\s<x(:])(?:f32|f16|bf16|i32|i64|i1|index)\b", _TYPES)


def _other_shape(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    kinds = ("tensor<", "memref<", "vector<")
    options = [kind + shape for kind in kinds[: 1 if rng.random() < 0.7 else 3] for shape in _SHAPES]
    return _replaced(text, rng, _DIMS.pattern, options)


def _other_size(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    """Replaces one size wherever it occurs; such text is consistent, so it gets through many passes."""
    return _replaced(text, rng, r"(?<=[<x])\d+(?=x)", _INTEGERS)


def _one_size_everywhere(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    """Replaces one size in types, extents, offsets and attributes alike, so that verifiers accept the text."""
    sizes = re.findall(r"(?<=[<x])(\d+)(?=x)", text)
    if not sizes:
        return text
    size, option = sizes[_at(rng, sizes)], _INTEGERS[_at(rng, _INTEGERS)]
    return re.sub(rf"(?<![A-Za-wyz_%#.\d]){size}(?![\d.])", option, text)


def _other_token(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    tokens = _TOKEN.findall(text)
    donor = _TOKEN.findall(pool[_at(rng, pool)].text) or [""]
    at = _at(rng, tokens)
    return "".join([*tokens[:at], donor[_at(rng, donor)], *tokens[at + 1 :]])


def _delete_token(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    tokens = _TOKEN.findall(text)
    at = _at(rng, tokens)
    return "".join(tokens[:at] + tokens[at + 1 :])


def _swap_operands(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    values = re.findall(r"%\w+", text)
    return _replaced(text, rng, r"%\w+", values or ["%0"])


def _truncate(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    return text[: _at(rng, text)]


def _nest(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    depth = int(rng.choice([2, 50, 300]))
    return "module {\n" * depth + text + "\n}" * depth


def _flip_bytes(text: str, rng: Rng, pool: Sequence[Sample]) -> str:
    damaged = bytearray(text.encode() or b"\0")
    for _ in range(int(rng.integers(1, 5))):
        damaged[_at(rng, damaged)] = int(rng.integers(256))
    return damaged.decode("latin-1")


_MUTATIONS: tuple[Callable[[str, Rng, Sequence[Sample]], str], ...] = (
    _delete_line,
    _repeat_line,
    _move_line,
    _borrow_line,
    _other_integer,
    _other_integer,
    _other_type,
    _other_type,
    _other_shape,
    _other_shape,
    _other_size,
    _one_size_everywhere,
    _one_size_everywhere,
    _one_size_everywhere,
    _other_token,
    _delete_token,
    _swap_operands,
    _swap_operands,
    _truncate,
    _nest,
    _flip_bytes,
)

"""Compiles a function with the compiler's own pipeline and compares its results with the exact ones."""

from __future__ import annotations

import ctypes
import itertools
import math
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np
from functions import Function
from tilewright.ir.module import Module
from tilewright.pipelines import pass_text, pipeline
from tilewright.runtime.kernels import Kernel, buffer, load_kernels

CHUNK = 1 << 18
_SOURCE = Path(__file__).with_name("reference.c")
_CLANG = "/usr/lib/llvm-22/bin/clang"
_ALL = 1 << 32
_NEIGHBOURS = 64
_SPECIAL = (
    *(
        0.0,
        1e-45,
        2.0**-126,
        2.0**-126 - 2.0**-149,
        1e-20,
        2.0**-24,
        0.5,
        1.0,
        1.0 + 2.0**-23,
        1.5,
        2.0,
        3.0,
        4.0,
    ),
    *(7.0, 16777215.0, 16777216.0, 2.0**31, 2.0**64, 1e20, 3.4028234663852886e38, math.inf, math.nan),
)


class _Verdict(ctypes.Structure):
    _fields_ = [
        ("worst", ctypes.c_double),
        ("worst_x", ctypes.c_float),
        ("worst_y", ctypes.c_float),
        ("worst_got", ctypes.c_float),
        ("wrong_x", ctypes.c_float),
        ("wrong_y", ctypes.c_float),
        ("wrong_got", ctypes.c_float),
        ("wrong", ctypes.c_uint64),
        ("judged", ctypes.c_uint64),
    ]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The largest error of a function, and the number of wrong special values."""

    worst: float
    at: tuple[float, float]
    got: float
    wrong: int
    wrong_at: tuple[float, float]
    wrong_got: float
    judged: int

    def confirmed(self, function: Function) -> float:
        """Returns the error at the worst argument, recomputed against mpmath."""
        exact = function.expected(*self.at)
        size = float(abs(mpmath.mpf(self.at[0]))) if function.of_argument else float(abs(exact))
        exponent = max(min(math.frexp(size)[1] - 1, 127), -126) if size > 0 else -126
        got = mpmath.mpf(math.copysign(2.0**128, self.got) if math.isinf(self.got) else self.got)
        return float(abs(got - exact) / mpmath.mpf(2) ** (exponent - 23))


def _merged(parts: list[_Verdict]) -> Verdict:
    worst = max(parts, key=lambda part: part.worst)
    wrong = max(parts, key=lambda part: part.wrong)
    return Verdict(
        worst=worst.worst,
        at=(worst.worst_x, worst.worst_y),
        got=worst.worst_got,
        wrong=sum(part.wrong for part in parts),
        wrong_at=(wrong.wrong_x, wrong.wrong_y),
        wrong_got=wrong.wrong_got,
        judged=sum(part.judged for part in parts),
    )


def kernel_text(function: Function, size: int = CHUNK) -> str:
    """Returns a module that applies the function to `size` elements."""
    tensor = f"tensor<{size}xf32>"
    inputs, scalars, maps = "%x: " + tensor, "%a: f32, ", "affine_map<(i) -> (i)>, "
    names, types = "%x", tensor
    if function.binary:
        inputs, scalars, maps = f"{inputs}, %y: {tensor}", scalars + "%b: f32, ", maps * 2
        names, types = "%x, %y", f"{tensor}, {tensor}"
    return f"""
func.func @f({inputs}) -> {tensor} {{
  %init = tensor.empty() : {tensor}
  %z = linalg.generic {{indexing_maps = [{maps}affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins({names} : {types}) outs(%init : {tensor}) {{
  ^bb0({scalars}%o: f32):
    {function.body}
    linalg.yield %r : f32
  }} -> {tensor}
  return %z : {tensor}
}}"""


class Judge:
    """The reference library, and kernels that are compiled into one folder."""

    def __init__(self, folder: Path, *, target: str, flush: bool) -> None:
        self._folder, self._target, self._flush = folder, target, flush
        path = folder / "reference.so"
        flags = ["-O2", "-march=native", "-fno-math-errno", "-shared", "-fPIC", "-Wall", "-Werror"]
        libraries = ["-lmvec", "-lm"]
        subprocess.run([_CLANG, *flags, str(_SOURCE), "-o", str(path), *libraries], check=True)
        self._library = ctypes.CDLL(str(path))

    def kernel(self, function: Function) -> Kernel:
        """Returns the compiled function."""
        files = {"object-path": f"{function.name}.o", "manifest": f"{function.name}.json"}
        written = {option: str(self._folder / name) for option, name in files.items()}
        module = Module.parse(kernel_text(function))
        module.run_unrecorded(pipeline(pass_text("tilewright-cpu", {"target": self._target, **written})))
        (kernel,) = load_kernels(Path(written["object-path"]), Path(written["manifest"]))
        return kernel

    def every(self, function: Function, *, stride: int, threads: int) -> Verdict:
        """Judges every `stride`th f32 in order of bits; for two-argument functions, as many random pairs."""
        kernel = self.kernel(function)
        count = _ALL // stride if not function.binary else 100_000_000 // stride
        starts = range(0, count, CHUNK)

        def part(thread: int) -> _Verdict:
            arena = _Arena(self, kernel, function)
            for start in starts[thread::threads]:
                if function.binary:
                    self._library.draw(
                        *arena.arguments, ctypes.c_uint64(start * stride), ctypes.c_int64(CHUNK)
                    )
                else:
                    first = ctypes.c_uint32(start * stride)
                    self._library.fill(
                        arena.arguments[0], first, ctypes.c_uint32(stride), ctypes.c_int64(CHUNK)
                    )
                arena.judge()
            return arena.verdict

        with ThreadPoolExecutor(threads) as pool:
            return _merged(list(pool.map(part, range(threads))))

    def points(self, function: Function) -> Verdict:
        """Judges special values (all pairs for two-argument functions) and the neighbourhoods of critical points."""
        arena = _Arena(self, self.kernel(function), function)
        values = _points(function)
        pairs = itertools.product(values, values) if function.binary else zip(values, values, strict=True)
        flat = np.array(list(pairs), np.float32)
        for start in range(0, len(flat), CHUNK):
            rows = flat[start : start + CHUNK]
            for view, column in zip(arena.views, rows.T, strict=True):
                view[:] = 1
                view[: len(rows)] = column
            arena.judge()
        return _merged([arena.verdict])


class _Arena:
    """Buffers of one thread."""

    def __init__(self, judge: Judge, kernel: Kernel, function: Function) -> None:
        self._judge, self._kernel, self._function = judge, kernel, function
        self._storage = [buffer(CHUNK * 4) for _ in range(3)]
        addresses = [address for _, address in self._storage]
        self.arguments, self._result = [ctypes.c_void_p(a) for a in addresses[:2]], addresses[2]
        self._bindings = [*addresses[: 2 if function.binary else 1], self._result]
        self.views = [
            storage[address - storage.ctypes.data :][: CHUNK * 4].view(np.float32)
            for storage, address in self._storage[:2]
        ]
        self.verdict = _Verdict()

    def judge(self) -> None:
        """Runs the kernel on the arguments and adds the errors to the verdict."""
        library, function = self._judge._library, self._function
        flush = self._judge._flush
        library.set_flush(int(flush))
        self._kernel.run(self._bindings)
        library.set_flush(0)
        library.compare(
            library.find_reference(function.name.encode()),
            *self.arguments,
            ctypes.c_void_p(self._result),
            ctypes.c_int64(CHUNK),
            int(function.of_argument),
            int(flush),
            *(ctypes.c_float(end) for end in function.domain),
            ctypes.byref(self.verdict),
        )


def _points(function: Function) -> list[float]:
    points = [sign * value for value in _SPECIAL for sign in (1.0, -1.0)]
    for centre in (*_SPECIAL, *function.critical):
        if function.binary or not math.isfinite(centre):
            continue
        for sign in (1.0, -1.0):
            middle = int(np.float32(sign * centre).view(np.uint32))
            bits = np.arange(middle - _NEIGHBOURS, middle + _NEIGHBOURS + 1, dtype=np.int64)
            points += (bits & 0xFFFFFFFF).astype(np.uint32).view(np.float32).tolist()
    return points


@contextmanager
def judge(*, target: str = "cpu", flush: bool = False) -> Iterator[Judge]:
    """Yields a judge whose files exist as long as the context."""
    with tempfile.TemporaryDirectory(prefix="tilewright-accuracy-") as folder:
        yield Judge(Path(folder), target=target, flush=flush)

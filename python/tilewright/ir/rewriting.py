"""Passes and patterns that are Python functions.

@ir.pattern("arith.negf")
def double_negation(op):
    inner = op.operands[0].owner
    if not (isinstance(inner, ir.Operation) and inner.name == "arith.negf"):
        return False
    op.replace(inner.operands[0])
    return True

@ir.python_pass("fold-negations", on="func.func")
def fold_negations(op):
    ir.apply_patterns(op, [double_negation])

module.run("builtin.module(func.func(fold-negations))")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.errors import IrError
from tilewright.ir.native import native

if TYPE_CHECKING:
    from tilewright._native import Operation
    from tilewright.ir.views import OpView

MOST_REWRITES = 1_000_000
"""Rewrites after which `apply_patterns` gives up on patterns that never stop matching."""


@dataclass(frozen=True)
class Pass:
    """A pass written in Python, which textual pipelines of this process know by its name."""

    name: str
    function: Callable[[Any], object]
    on: str = "builtin.module"
    """Name of the operations that the function is called with. It changes nothing outside of its operation."""

    def __call__(self, operation: OpView) -> object:
        """Calls the function."""
        return self.function(operation)

    @property
    def pipeline(self) -> str:
        """The pass as a pipeline for a module."""
        return f"builtin.module({self.name if self.on == 'builtin.module' else f'{self.on}({self.name})'})"

    def register(self) -> Pass:
        """Makes the name known to pipelines, instead of a pass written in Python that had the name before."""
        native.register_pass(self.name, self.on, self.function)
        return self


def python_pass(name: str, *, on: str = "builtin.module") -> Callable[[Callable[[Any], object]], Pass]:
    """Makes a function a pass of textual pipelines.

    The function is called with a view of every operation named `on` that the pipeline reaches. What it gets from that
    operation is valid until it returns. An exception ends the pipeline with a `PythonPassError`.

    Raises `IrError` if the name is not one of a pass, or belongs to a pass written in C++.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise IrError(
            f"'{name}' is not a name for a pass",
            hint="use letters, digits, '-' and '_', beginning with a letter",
        )

    def make(function: Callable[[Any], object]) -> Pass:
        return Pass(name, function, on).register()

    return make


def as_pass(given: Pass | Callable[[Any], object]) -> Pass:
    """Returns a function as a registered pass on modules, named after it; a `Pass` stays as it is."""
    if isinstance(given, Pass):
        return given
    name = re.sub(r"[^\w-]+", "-", getattr(given, "__name__", type(given).__name__)).strip("-")
    try:
        return Pass(name, given).register()
    except IrError:  # a pass written in C++ has the name
        return Pass(f"python-{name}", given).register()


@dataclass(frozen=True)
class Pattern:
    """A rewrite of one kind of operation: a function that returns True if it has rewritten its operation."""

    function: Callable[[Any], bool]
    root: str
    """Name of the operations that the pattern may match."""
    benefit: int = 1
    """Among patterns for the same operation, the one with the highest benefit is tried first."""

    def __call__(self, operation: OpView) -> bool:
        """Calls the function."""
        return self.function(operation)


def pattern(root: str, *, benefit: int = 1) -> Callable[[Callable[[Any], bool]], Pattern]:
    """Makes a function a pattern for operations named `root`.

    New operations go before the operation, which the function replaces (`op.replace`), erases or changes in place. It
    returns False if it does not match; it must not have changed anything then.
    """

    def make(function: Callable[[Any], bool]) -> Pattern:
        return Pattern(function, root, benefit)

    return make


def apply_patterns(
    operation: Operation | OpView, patterns: Sequence[Pattern], *, max_rewrites: int = MOST_REWRITES
) -> None:
    """Applies patterns to everything inside an operation until none matches; also folds constants and erases dead
    operations.

    Afterwards, only the operation and those around it are valid; get others from it again. Raises the first exception
    of a pattern, and `IrError` if the patterns do not stop matching.
    """
    native.apply_patterns(operation, [(p.root, p.benefit, p.function) for p in patterns], max_rewrites)

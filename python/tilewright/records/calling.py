"""Calling conventions: how the nested arguments and results of a Python function map to the tensors of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Leaf:
    """One leaf of nested arguments or results."""

    tensor: int | None
    """Position among the program's inputs or outputs; None for a plain value."""
    value: Any = None
    """The value of a leaf that is no tensor: None, a bool, a number or a string. A call must pass the same value."""


@dataclass(frozen=True)
class Calling:
    """Calling convention of a program that was a PyTorch module."""

    inputs: str
    """Structure of (arguments, keyword arguments), as `torch.utils._pytree.treespec_dumps` writes it."""
    outputs: str
    """Structure of the result, in the same form."""
    arguments: tuple[Leaf, ...]
    """Leaves of the arguments, in the order of the structure."""
    results: tuple[Leaf, ...]
    """Leaves of the result, in the order of the structure."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Calling:
        return Calling(
            inputs=data["inputs"],
            outputs=data["outputs"],
            arguments=tuple(Leaf(**leaf) for leaf in data["arguments"]),
            results=tuple(Leaf(**leaf) for leaf in data["results"]),
        )

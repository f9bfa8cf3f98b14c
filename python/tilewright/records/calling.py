"""Calling conventions: how the nested arguments and results of a Python function map to the tensors of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Leaf:
    """One leaf of nested arguments or results."""

    tensor: int | None
    """Position among the program's inputs or outputs; None for a plain value of PyTorch, or an argument that a function
    of JAX does not use."""
    value: Any = None
    """PyTorch: the value of a leaf that is no tensor: None, a bool, a number or a string. A call must pass the same."""


@dataclass(frozen=True)
class Calling:
    """Calling convention of a program that was a module of PyTorch or a function of JAX."""

    inputs: str
    """Structure of (arguments, keyword arguments): PyTorch's as `torch.utils._pytree.treespec_dumps` writes it, JAX's
    as JSON of `records.trees`."""
    outputs: str
    """Structure of the result, in the same form."""
    arguments: tuple[Leaf, ...]
    """Leaves of the arguments, in the order of the structure."""
    results: tuple[Leaf, ...]
    """Leaves of the result, in the order of the structure."""
    kind: Literal["torch", "jax"] = "torch"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Calling:
        return Calling(
            inputs=data["inputs"],
            outputs=data["outputs"],
            arguments=tuple(Leaf(**leaf) for leaf in data["arguments"]),
            results=tuple(Leaf(**leaf) for leaf in data["results"]),
            kind=data.get("kind", "torch"),
        )

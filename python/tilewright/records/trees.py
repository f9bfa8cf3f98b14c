"""Nested values as JAX nests them: tuples, lists, dicts by sorted keys, and None, which has no leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Tree = Any
"""A structure as JSON: "*" is a leaf, None is itself, and {"tuple": [...]}, {"list": [...]} and {"dict": {...}} nest
others."""

LEAF = "*"


class TreeError(ValueError):
    """A value is nested in a class that is none of these."""


def structure_of(value: Any, *, is_leaf: Callable[[Any], bool]) -> Tree:
    """Returns the structure of a nested value. Raises `TreeError` for what is neither a leaf nor nested as above."""
    if value is None:
        return None
    if type(value) is dict:
        if not all(isinstance(key, str) for key in value):
            raise TreeError("a dict has keys that are no strings")
        return {"dict": {key: structure_of(value[key], is_leaf=is_leaf) for key in sorted(value)}}
    if type(value) in (tuple, list):
        return {type(value).__name__: [structure_of(each, is_leaf=is_leaf) for each in value]}
    if is_leaf(value):
        return LEAF
    raise TreeError(f"a value is nested in a {type(value).__name__}")


def leaves_of(value: Any, tree: Tree) -> Iterator[Any]:
    """Yields the leaves of a value that has this structure, in JAX's order. Raises `TreeError` if it does not."""
    if tree == LEAF:
        yield value
        return
    if tree is None:
        if value is not None:
            raise TreeError("a value is given where None is needed")
        return
    [(kind, inside)] = tree.items()
    is_kind = isinstance(value, dict if kind == "dict" else tuple if kind == "tuple" else list)
    if not is_kind or (set(value) != set(inside) if kind == "dict" else len(value) != len(inside)):
        raise TreeError(f"a {type(value).__name__} is given where a {kind} of {len(inside)} is needed")
    pairs = (
        ((value[key], part) for key, part in inside.items())
        if kind == "dict"
        else zip(value, inside, strict=True)
    )
    for each, part in pairs:
        yield from leaves_of(each, part)


def rebuilt(tree: Tree, leaves: Sequence[Any]) -> Any:
    """Returns the value that has this structure and these leaves."""
    rest = iter(leaves)

    def build(part: Tree) -> Any:
        if part is None:
            return None
        if part == LEAF:
            return next(rest)
        [(kind, inside)] = part.items()
        if kind == "dict":
            return {key: build(each) for key, each in inside.items()}
        return tuple(map(build, inside)) if kind == "tuple" else list(map(build, inside))

    return build(tree)

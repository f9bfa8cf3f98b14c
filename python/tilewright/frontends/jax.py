"""Front end for JAX: functions of `jax.jit` with example arguments, and what `jax.export.export` returns.

`jax.export` writes the function as StableHLO text, whose arguments are the leaves of the nested arguments. JAX is
imported only once a function of it is given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.errors import ModelError
from tilewright.frontends import ImportedModel
from tilewright.frontends.mlir import import_mlir
from tilewright.iree.compiler import IreeCompiler
from tilewright.records.calling import Calling, Leaf
from tilewright.records.dims import Sizes
from tilewright.records.trees import TreeError, structure_of


def is_jax_model(model: Any) -> bool:
    """True for a function of `jax.jit`, or an exported one."""
    if sys.modules.get("jax") is None:
        return False
    is_jitted = callable(model) and all(hasattr(model, name) for name in ("lower", "trace", "eval_shape"))
    return is_jitted or _is_exported(model)


def import_jax(model: Any, *, examples: Any, compiler: IreeCompiler, fixed: Sizes) -> ImportedModel:
    """Imports a model for which `is_jax_model` holds.

    `examples` are arguments of a function: a sequence of positional arguments, or a mapping of keyword arguments, of
    arrays or `jax.ShapeDtypeStruct`s. Raises `ModelError` if it cannot be exported.
    """
    exported = model if _is_exported(model) else _export(model, examples)
    name = str(exported.fun_name)
    if _is_exported(model) and examples is not None:
        raise ModelError(
            "example_inputs are for functions; an exported one has its own", where=name, hint="leave them out"
        )
    if "cpu" not in exported.platforms:
        raise ModelError(
            f"it was exported for {', '.join(exported.platforms)}",
            where=name,
            hint='export it with platforms=["cpu"]; Tilewright compiles that for all targets',
        )
    calling = _calling(exported, name)
    text = exported.mlir_module().encode()
    imported = import_mlir(text, name=name, compiler=compiler, fixed=fixed, entry="main")
    once_more = imported.again
    assert once_more is not None

    def again(sizes: Sizes, compiler: IreeCompiler) -> ImportedModel:
        return replace(once_more(sizes, compiler), calling=calling)

    return replace(imported, calling=calling, entry="main", again=again)


def _is_exported(model: Any) -> bool:
    return type(model).__name__ == "Exported" and type(model).__module__.startswith("jax")


def _export(function: Any, examples: Any) -> Any:
    import jax

    name = getattr(function, "__name__", type(function).__name__)
    if not isinstance(examples, Sequence | Mapping) or isinstance(examples, str):
        raise ModelError(
            "a function of JAX needs example inputs",
            where=name,
            hint="give compile(function, example_inputs=(x, ...)), a tuple of arguments or a dict of keyword arguments",
        )
    arguments, named = ((), dict(examples)) if isinstance(examples, Mapping) else (tuple(examples), {})
    try:
        return jax.export.export(function, platforms=["cpu"])(*arguments, **named)
    except Exception as error:  # the function's own code runs here
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ModelError(f"jax.export cannot trace it: {lines[0][:300]}", where=name) from error


def _calling(exported: Any, name: str) -> Calling:
    """Returns how the arguments and results are nested. JAX leaves arguments out that the function does not use."""
    kept = {leaf: position for position, leaf in enumerate(exported.module_kept_var_idx)}
    arguments = tuple(Leaf(kept.get(leaf)) for leaf in range(len(exported.in_avals)))
    results = tuple(Leaf(leaf) for leaf in range(len(exported.out_avals)))
    return Calling(
        _spell(exported.in_tree, len(arguments), name),
        _spell(exported.out_tree, len(results), name),
        arguments,
        results,
        kind="jax",
    )


def _spell(tree: Any, count: int, name: str) -> str:
    import jax

    try:
        nested = jax.tree_util.tree_unflatten(tree, range(count))
        return json.dumps(structure_of(nested, is_leaf=lambda value: isinstance(value, int)))
    except TreeError as error:
        raise ModelError(
            str(error), where=name, hint="use tuples, lists and dicts with strings as keys"
        ) from None

"""Replacement of ops by rules, until none applies: what is left, IREE's importer takes and gets right.

Rules are in `rewrites.ops`, one file for each op or family. A rule that needs a type or shape which is not known waits
for the next round, because ONNX infers nothing behind ops that it does not know; if a round replaces nothing, the first
op that still waits is refused.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache

import onnx
from onnx import NodeProto, helper

from tilewright.errors import ModelError
from tilewright.frontends.rewrites import ops
from tilewright.frontends.rewrites.functions import is_defined
from tilewright.frontends.rewrites.graph import Scope, graphs_in, replace_nodes
from tilewright.frontends.rewrites.rule import (
    OWN_DOMAIN,
    Operation,
    Rule,
    UnknownType,
)
from tilewright.frontends.rewrites.shapes import fold_shapes

_MORE_ROUNDS = 50
"""Rounds of replacement beside one for each node, since each may wait for the one before it: what rules make may have
rules, too."""


@cache
def rules() -> Mapping[tuple[str, str], Rule]:
    """Returns all rules by domain and op."""
    found: dict[tuple[str, str], Rule] = {}
    for info in pkgutil.iter_modules(ops.__path__):
        for rule in importlib.import_module(f"{ops.__name__}.{info.name}").RULES:
            assert (rule.domain, rule.op) not in found, f"two rules for {rule.domain}.{rule.op}"
            found[rule.domain, rule.op] = rule
    return found


def legalize(model: onnx.ModelProto, infer: Callable[[], None], *, is_of_onnx: bool) -> None:
    """Rewrites ONNX's own ops, or those of other domains, in a model whose types have been inferred, in place.

    Also folds shape arithmetic, of which rules make some. `infer` infers types again.
    """
    chosen = {key: rule for key, rule in rules().items() if rule.needs_types and is_of_onnx != bool(key[0])}
    run = _Run(model, chosen, name="onnx" if is_of_onnx else "other")
    for _ in range(len(model.graph.node) + _MORE_ROUNDS):
        is_changed = run.round()
        if not (fold_shapes(model) or is_changed):
            break
        infer()
    if not is_of_onnx:
        _refuse_other_domains(model.graph)
    if run.waiting is not None:
        raise run.waiting


def rewrite_without_types(model: onnx.ModelProto) -> None:
    """Applies, in place, the rules for ops that ONNX's checker refuses as they are."""
    chosen = {key: rule for key, rule in rules().items() if not rule.needs_types}
    if _Run(model, chosen, name="untyped").round():
        model.opset_import.append(helper.make_opsetid(OWN_DOMAIN, 1))


def _refuse_other_domains(graph: onnx.GraphProto) -> None:
    """Raises `ModelError` for the first op that is not ONNX's."""
    for node in (node for each in graphs_in(graph) for node in each.node):
        if node.domain not in ("", "ai.onnx") and not is_defined(node):
            raise ModelError(
                f"the op {node.domain}.{node.op_type} is not supported",
                where=f"'{node.name}'",
                hint="export the model with ONNX's own ops, or with a function that defines it",
            )


class _Run:
    def __init__(self, model: onnx.ModelProto, rules: Mapping[tuple[str, str], Rule], *, name: str) -> None:
        self.waiting: UnknownType | None = None
        self._model = model
        self._rules = rules
        self._name = name
        self._rounds = 0
        self._opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
        self._settled: set[tuple[str, ...]] = set()
        """The nodes that a rule for the same op made, by the path of their graph and their first result: branches may
        use a name each for themselves."""

    def round(self) -> bool:
        """Replaces every op for which a rule applies; returns True if the model changed."""
        self.waiting = None
        self._rounds += 1
        return replace_nodes(self._model.graph, self._replaced)

    def _replaced(self, node: NodeProto, scope: Scope) -> list[NodeProto] | None:
        key = "" if node.domain == "ai.onnx" else node.domain, node.op_type
        rule = self._rules.get(key)
        first = next(filter(None, node.output), None)
        if rule is None or first is None or (*scope.path, first) in self._settled:
            return None
        operation = Operation(
            node,
            shapes=scope.shapes,
            types=scope.types,
            constants=scope.constants,
            makers=scope.makers,
            opset=self._opset,
            tag=f"_{self._name}{self._rounds}",
        )
        try:
            if not rule.rewrite(operation):
                return None
        except UnknownType as error:
            self.waiting = self.waiting or error
            return None
        for made in operation.made:
            if (made.domain, made.op_type) == key:
                self._settled.add((*scope.path, next(filter(None, made.output))))
        return operation.made

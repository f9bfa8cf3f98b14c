"""Import of ONNX's Loop, Scan and If as `scf`, in place of IREE's import.

IREE's importer loses the condition of a Loop and the directions and axes of a Scan, and supports few forms of each.
Here,

- a Loop whose condition stays true, and a Scan, become an `scf.for` over the iterations;
- another Loop becomes an `scf.while`, which ends early;
- an If becomes an `scf.if`, or the branch that is taken if its condition is a constant.

Values from outside a body are used in place. The types of the body's inputs were settled before
(`rewrites.loop_types`): a dim whose length an iteration may change has no length there. `stacks` collects results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, scf
from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from tilewright.errors import ModelError
from tilewright.frontends import scf as pieces
from tilewright.frontends.bodies import Bodies, NestedGraph
from tilewright.frontends.rewrites.loop_types import has_unknown_lengths, stays_true
from tilewright.frontends.scf import Carrier, Length, Value
from tilewright.frontends.stacks import Stack

_MOST_PREPARED = 1024
"""Most iterations of a loop that may end early, for which its collected results have room from the beginning."""


@dataclass(frozen=True)
class _Loop:
    """A Loop or Scan that is being imported. It carries its states, then its collected results."""

    body: GraphProto
    where: str
    states: Sequence[ValueInfoProto]
    """The body's inputs that iterations hand on."""
    bind: Callable[[Value], dict[str, Value]]
    """Makes the body's other inputs, by name, from the number of the iteration."""
    stacks: Sequence[Stack]
    carriers: Sequence[Carrier]
    first: Sequence[Value]
    """What the first iteration is given."""

    def pack(self, tensors: Sequence[Value], anchor: Value | None = None) -> list[Value]:
        """Returns what an iteration is given; `anchor` is that of the iteration before."""
        names = [value.name for value in self.states] + [stack.name for stack in self.stacks]
        packed = [
            carrier.pack(tensor, what=f"'{name}'", where=self.where)
            for carrier, tensor, name in zip(self.carriers, tensors, names, strict=True)
        ]
        return [*packed, pieces.anchor(anchor)] if self.is_boxed else packed

    def unpack(self, packed: Sequence[Value]) -> list[Value]:
        own = packed[: len(self.carriers)]
        return [carrier.unpack(value) for carrier, value in zip(self.carriers, own, strict=True)]

    @property
    def is_boxed(self) -> bool:
        return any(carrier.is_boxed for carrier in self.carriers)


class ControlFlow(Bodies):
    """The part of the importer for ops with bodies.

    IREE's importer calls `_handle_node_X` for an op X, with the insertion point and the location of the node.
    """

    def _handle_node_If(self, node: NodeProto) -> bool:
        where = f"'{node.name}'"
        branches = [_graph(node, name) for name in ("then_branch", "else_branch")]
        known = self._constant(node.input[0])
        if known is not None:
            taken = branches[0 if known.all() else 1]
            with self._inside(taken, self._b):
                results = self._import_body(taken)
            self._nv_map |= {name: value for name, value in zip(node.output, results, strict=True) if name}
            return True
        kinds = [self._common_type(node, branches, number) for number in range(len(node.output))]
        carriers = [Carrier(kind, is_boxed=self._is_dynamic) for kind in kinds]
        anchors = [pieces.anchor()] if self._is_dynamic else []
        carried = [*(carrier.carried_type for carrier in carriers), *(value.type for value in anchors)]
        chosen = scf.IfOp(self._read(node.input[0], where), carried, has_else=True)
        for branch, block in zip(branches, (chosen.then_block, chosen.else_block), strict=True):
            with self._inside(branch, block):
                given = zip(self._import_body(branch), carriers, node.output, strict=True)
                packed = [
                    carrier.pack(pieces.to_builtin(value, where=where), what=f"'{name}'", where=where)
                    for value, carrier, name in given
                ]
                scf.YieldOp([*packed, *map(pieces.anchor, anchors)])
        for value in chosen.results[len(carriers) :]:
            pieces.anchor(value)
        results = [carrier.unpack(value) for carrier, value in zip(carriers, chosen.results, strict=False)]
        self._keep(results, carriers)
        self._define(node, results, branches[0].output)
        return True

    def _common_type(self, node: NodeProto, branches: Sequence[GraphProto], number: int) -> Any:
        """Returns the type of a result of an If; a dim to which the branches give different lengths has none."""
        where = f"'{node.name}'"
        first, second = (
            self._builtin_type(branch.output[number].name, NestedGraph(self._gi, branch), where)
            for branch in branches
        )
        if first.rank != second.rank or first.element_type != second.element_type:
            raise ModelError(
                f"the branches of an If give '{node.output[number]}' different ranks or types: {first} and {second}",
                where=where,
                hint="let both branches reshape it to one rank, or make the condition a constant",
            )
        shapes = zip(pieces.shape_of(first), pieces.shape_of(second), strict=True)
        return pieces.tensor_type([a if a == b else -1 for a, b in shapes], first.element_type)

    def _handle_node_Loop(self, node: NodeProto) -> bool:
        where = f"'{node.name}'"
        body = _graph(node, "body")
        limit_name, condition_name, *initial = (*node.input, "", "")[: max(2, len(node.input))]
        iteration, condition, *states = body.input
        limit = self._trip_count(limit_name, where)
        begins = self._first_condition(condition_name, where)
        ends_early = not stays_true(body, self._constant)
        if limit is None and not ends_early:
            raise ModelError(
                "a Loop without a trip count, whose condition stays true, does not end",
                where=where,
                hint="give it a trip count, or let its body compute the condition",
            )
        if not ends_early and begins is not None:
            limit = arith.select(begins, pieces.index(limit), pieces.index(0))
        is_prepared = not ends_early or (isinstance(limit, int) and limit <= _MOST_PREPARED)

        def bind(step: Value) -> dict[str, Value]:
            number = arith.index_cast(ir.IntegerType.get_signless(64), step)
            return {
                iteration.name: self._single(iteration, number, where),
                condition.name: self._single(condition, pieces.boolean(truth=True), where),
            }

        stacks = [
            self._stack(node, body, output, room=limit if is_prepared else None)
            for output in body.output[1 + len(states) :]
        ]
        loop = self._loop(node, body, states, initial, bind, stacks)
        results = self._repeat(loop, limit, begins) if ends_early else self._count(loop, limit or 0)
        self._define(node, results, body.output[1:])
        return True

    def _handle_node_Scan(self, node: NodeProto) -> bool:
        where = f"'{node.name}'"
        body, attributes = _graph(node, "body"), _attributes(node)
        scanned = len(node.input) - attributes["num_scan_inputs"]
        states, slices = body.input[:scanned], body.input[scanned:]
        sources = [pieces.to_builtin(self._nv_map[name], where=where) for name in node.input[scanned:]]
        axes = attributes.get("scan_input_axes") or [0] * len(sources)
        axes = [axis % source.type.rank for axis, source in zip(axes, sources, strict=True)]
        directions = attributes.get("scan_input_directions") or [0] * len(sources)
        count = self._scan_length(sources, axes, where)

        def bind(step: Value) -> dict[str, Value]:
            bound = {}
            for value, source, axis, direction in zip(slices, sources, axes, directions, strict=True):
                position = pieces.from_end(count, step) if direction else step
                taken = pieces.take(source, axis, position)
                bound[value.name] = self._body_input(value, taken, where)
            return bound

        outputs = body.output[scanned:]
        out_axes = attributes.get("scan_output_axes") or [0] * len(outputs)
        out_directions = attributes.get("scan_output_directions") or [0] * len(outputs)
        stacks = [
            self._stack(
                node,
                body,
                output,
                room=count,
                axis=axis,
                is_reversed=bool(direction),
            )
            for output, axis, direction in zip(outputs, out_axes, out_directions, strict=True)
        ]
        loop = self._loop(node, body, states, node.input[:scanned], bind, stacks)
        self._define(node, self._count(loop, count), body.output)
        return True

    # Loops

    def _loop(
        self,
        node: NodeProto,
        body: GraphProto,
        states: Sequence[ValueInfoProto],
        initial: Sequence[str],
        bind: Callable[[Value], dict[str, Value]],
        stacks: Sequence[Stack],
    ) -> _Loop:
        where = f"'{node.name}'"
        carriers = []
        for value in states:
            kind = pieces.builtin_type(self._torch_type(value.type, value.name, where), where=where)
            carriers.append(Carrier(kind, is_boxed=self._is_dynamic))
        carriers += [Carrier(stack.type, is_boxed=self._is_dynamic) for stack in stacks]
        first = [pieces.to_builtin(self._nv_map[name], where=where) for name in initial]
        first += [stack.begin() for stack in stacks]
        return _Loop(body, where, states, bind, stacks, carriers, first)

    def _count(self, loop: _Loop, limit: Length) -> list[Value]:
        """Makes an `scf.for`; returns the last states, and the collected results."""
        counted = scf.ForOp(pieces.index(0), pieces.index(limit), pieces.index(1), loop.pack(loop.first))
        with self._inside(loop.body, counted.body):
            _, carried = self._iterate(loop, counted.induction_variable, list(counted.inner_iter_args))
            scf.YieldOp(carried)
        results = loop.unpack(counted.results)
        self._keep(results, loop.carriers)
        return results

    def _repeat(self, loop: _Loop, limit: Length | None, begins: Value | None) -> list[Value]:
        """Makes an `scf.while` that ends after `limit` iterations, or if the body's first result is false."""
        initial = [pieces.index(0), begins or pieces.boolean(truth=True), *loop.pack(loop.first)]
        kinds = [value.type for value in initial]
        repeated = scf.WhileOp(kinds, initial)
        before, after = (region.blocks.append(*kinds) for region in repeated.regions)
        with ir.InsertionPoint(before):
            step, goes_on, *_ = before.arguments
            if limit is not None:
                is_within = arith.cmpi(arith.CmpIPredicate.slt, step, pieces.index(limit))
                goes_on = arith.andi(goes_on, is_within)
            scf.ConditionOp(goes_on, list(before.arguments))
        with self._inside(loop.body, after):
            step, _, *carried = after.arguments
            (condition,), carried = self._iterate(loop, step, carried)
            goes_on = pieces.scalar(pieces.to_builtin(condition, where=loop.where))
            scf.YieldOp([arith.addi(step, pieces.index(1)), goes_on, *carried])
        count, _, *packed = repeated.results
        results = loop.unpack(packed)
        self._keep(results, loop.carriers)
        states = len(loop.states)
        return [*results[:states], *(pieces.first(collected, count) for collected in results[states:])]

    def _iterate(self, loop: _Loop, step: Value, carried: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Imports the body for an iteration. Returns what it gives besides, such as a condition, and what the next
        iteration is given."""
        tensors, count = loop.unpack(carried), len(loop.states)
        self._keep(tensors[:count], loop.carriers)
        for value, state in zip(loop.states, tensors[:count], strict=True):
            self._nv_map[value.name] = self._body_input(value, state, loop.where)
        self._nv_map |= loop.bind(step)
        results = self._import_body(loop.body)
        others = len(results) - len(tensors)
        after = [pieces.to_builtin(value, where=loop.where) for value in results[others:]]
        stored = [
            stack.store(tensor, step, value)
            for stack, tensor, value in zip(loop.stacks, tensors[count:], after[count:], strict=True)
        ]
        return results[:others], loop.pack([*after[:count], *stored], carried[-1] if loop.is_boxed else None)

    def _keep(self, tensors: Sequence[Value], carriers: Sequence[Carrier]) -> None:
        """Keeps boxed tensors as they are until the end of the graph."""
        self._kept += [value for value, carrier in zip(tensors, carriers, strict=False) if carrier.is_boxed]

    def _trip_count(self, name: str, where: str) -> Length | None:
        """Returns the most iterations of a Loop, if there is a limit."""
        if not name:
            return None
        known = self._constant(name)
        if known is not None:
            return max(0, int(known.reshape(-1)[0]))
        given = arith.index_cast(ir.IndexType.get(), self._read(name, where))
        return arith.maxsi(given, pieces.index(0))

    def _first_condition(self, name: str, where: str) -> Value | None:
        """Returns the condition on which a Loop begins at all; None if it does in any case."""
        if not name:
            return None
        known = self._constant(name)
        if known is None:
            return self._read(name, where)
        return None if known.all() else pieces.boolean(truth=False)

    def _scan_length(self, sources: Sequence[Value], axes: Sequence[int], where: str) -> Length:
        """Returns the number of iterations of a Scan, which all inputs must have."""
        counts = [pieces.length(source, axis) for source, axis in zip(sources, axes, strict=True)]
        known = sorted({count for count in counts if isinstance(count, int)})
        if len(known) > 1:
            raise ModelError(f"a Scan over inputs of different lengths: {known}", where=where)
        count = known[0] if known else counts[0]
        for other in counts:
            if other is not count:
                pieces.require_equal(other, count, f"{where}: a Scan over inputs of different lengths")
        return count

    @functools.cached_property
    def _is_dynamic(self) -> bool:
        """True if the model has dims of unknown lengths, or loops that make some."""
        return has_unknown_lengths(self._gi.model_info.model_proto.graph)

    def _stack(
        self,
        node: NodeProto,
        body: GraphProto,
        output: ValueInfoProto,
        *,
        room: Length | None,
        axis: int = 0,
        is_reversed: bool = False,
    ) -> Stack:
        where = f"'{node.name}'"
        nested = NestedGraph(self._gi, body)
        slice_type = self._builtin_type(output.name, nested, where)
        return Stack(
            name=output.name,
            where=where,
            slice_type=slice_type,
            axis=axis % (slice_type.rank + 1),
            sizes=self._known_sizes(node, nested.find_type_proto_for_name(output.name), where),
            room=room,
            is_reversed=is_reversed,
            is_boxed=self._is_dynamic,
        )

    def _known_sizes(self, node: NodeProto, kind: Any, where: str) -> list[Length] | None:
        """Returns the lengths of a type's dims, if operands of the node have the same; equal names mean equal
        lengths."""
        named = {}
        for name in filter(None, node.input):
            known = self._gi.find_type_proto_for_name(name)
            for axis, dim in enumerate(known.tensor_type.shape.dim if known else ()):
                named[dim.dim_param] = name, axis
        named.pop("", None)
        dims = kind.tensor_type.shape.dim
        if not all(dim.HasField("dim_value") or dim.dim_param in named for dim in dims):
            return None
        sizes: list[Length] = []
        for dim in dims:
            if dim.HasField("dim_value"):
                sizes.append(dim.dim_value)
            else:
                name, axis = named[dim.dim_param]
                sizes.append(pieces.length(pieces.to_builtin(self._nv_map[name], where=where), axis))
        return sizes


def _graph(node: NodeProto, name: str) -> GraphProto:
    return helper.get_node_attr_value(node, name)  # type: ignore[no-any-return]


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}

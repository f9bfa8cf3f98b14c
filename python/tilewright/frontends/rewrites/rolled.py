"""Rolls unrolled cells: a chain of equal cells (`rewrites.unrolled`) becomes a Scan.

What the cells read in each step is stacked: elements of one tensor are that tensor, and equal ops of such elements, as
the projection of the inputs is, become one op of all steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from tilewright.frontends.rewrites.unrolled import Chain, Known, Result, Slices, State, Values, find_chain

_FIRST_OPSET = 13
"""The first opset whose ops the rewrite is written in; models of older ones are converted before."""
_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div", "Neg", "Sigmoid", "Tanh", "Relu", "Identity", "Cast"})


def roll_cells(model: onnx.ModelProto) -> bool:
    """Replaces the chains of a model whose types have been inferred, in place; returns True if there were any."""
    if max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")) < _FIRST_OPSET:
        return False
    nodes, known = list(model.graph.node), Known(model.graph)
    is_changed = False
    while chain := find_chain(values := Values(nodes, known)):
        nodes = _Rolling(values, known, chain).nodes()
        is_changed = True
    if is_changed:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return is_changed


class _Rolling:
    def __init__(self, values: Values, known: Known, chain: Chain) -> None:
        self._values = values
        self._known = known
        self._chain = chain
        first = chain.cells[0][0]
        self._name = first.name or first.output[0]
        self._prefix = f"{first.output[0]}.rolled"
        self._made: list[NodeProto] = []
        self._stacks: dict[tuple[str, ...], str] = {}

    def nodes(self) -> list[NodeProto]:
        """Returns the nodes of the graph with a Scan in place of the chain."""
        chain, values = self._chain, self._values
        stacked = [self._stack(slices.names) for slices in chain.slices]
        collected = [result for result in self._results() if self._is_read_before_the_end(result)]
        finals = [f"{self._prefix}.state_{number}" for number in range(len(chain.states))]
        sequences = [f"{self._prefix}.sequence_{number}" for number in range(len(collected))]
        body = self._body(collected)
        self._made.append(
            helper.make_node(
                "Scan",
                [*(state.initial for state in chain.states), *stacked],
                [*finals, *sequences],
                name=self._name,
                body=body,
                num_scan_inputs=len(stacked),
            )
        )
        last = len(chain.cells) - 1
        for result, sequence in zip(collected, sequences, strict=True):
            # Another chain may read the sequence.
            like = chain.value(0, result)
            self._known.types[sequence] = self._known.types[like]
            self._known.shapes[sequence] = [len(chain.cells), *self._known.shapes[like]]
            for step in range(len(chain.cells)):
                self._element(sequence, step, chain.value(step, result))
        for state, final in zip(chain.states, finals, strict=True):
            if state.result not in collected:
                self._make_as("Identity", chain.value(last, state.result), final)
        rolled = {id(node) for cell in chain.cells for node in cell}
        kept = [node for node in values.nodes if id(node) not in rolled]
        return self._sorted(self._without_unread([*kept, *self._made]))

    def _body(self, collected: Sequence[Result]) -> onnx.GraphProto:
        chain, prefix = self._chain, f"{self._prefix}.cell"
        inputs = {
            source: f"{prefix}.input_{number}" for number, source in enumerate([*chain.states, *chain.slices])
        }

        def name_of(source: Result | State | Slices | str) -> str:
            if isinstance(source, str):
                return source
            return (
                inputs[source] if isinstance(source, State | Slices) else f"{prefix}.{source[0]}_{source[1]}"
            )

        nodes = []
        for position, (node, sources) in enumerate(zip(chain.cells[0], chain.sources, strict=True)):
            own = [f"{prefix}.{position}_{number}" if name else "" for number, name in enumerate(node.output)]
            nodes.append(_copy(node, map(name_of, sources), own))
        results = [*(state.result for state in chain.states), *collected]
        outputs = [f"{prefix}.output_{number}" for number in range(len(results))]
        for result, output in zip(results, outputs, strict=True):
            nodes.append(helper.make_node("Identity", [name_of(result)], [output], name=self._name))
        given = [*(state.initial for state in chain.states), *(slices.names[0] for slices in chain.slices)]
        return helper.make_graph(
            nodes,
            prefix,
            [self._declared(name, like) for name, like in zip(inputs.values(), given, strict=True)],
            [self._declared(name, chain.value(0, like)) for name, like in zip(outputs, results, strict=True)],
        )

    def _declared(self, name: str, like: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, self._values.types[like], self._values.shapes[like])

    def _results(self) -> list[Result]:
        return [
            (position, number)
            for position, node in enumerate(self._chain.cells[0])
            for number, name in enumerate(node.output)
            if name
        ]

    def _is_read_before_the_end(self, result: Result) -> bool:
        """Returns True if something beside the chain reads the result of a cell, other than a last state."""
        rolled = {id(node) for cell in self._chain.cells for node in cell}
        is_state = any(state.result == result for state in self._chain.states)
        steps = len(self._chain.cells) - is_state
        names = [self._chain.value(step, result) for step in range(steps)]
        return any(
            name in self._values.results
            or any(id(self._values.nodes[reader]) not in rolled for reader in self._values.readers[name])
            for name in names
        )

    def _without_unread(self, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """Returns the nodes of which something reads a result."""
        producer = {name: node for node in nodes for name in node.output if name}
        needed: dict[int, NodeProto] = {}
        waiting = [producer[name] for name in self._values.results if name in producer]
        while waiting:
            node = waiting.pop()
            if id(node) not in needed:
                needed[id(node)] = node
                waiting += [producer[name] for name in self._known.reads(node) if name in producer]
        return [node for node in nodes if id(node) in needed]

    def _sorted(self, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """Returns the nodes in an order in which each comes behind those that it reads."""
        producer = {name: number for number, node in enumerate(nodes) for name in node.output if name}
        done: set[int] = set()
        ordered = []
        for begin in range(len(nodes)):
            waiting = [begin]
            while waiting:
                number = waiting[-1]
                sources = {producer[name] for name in self._known.reads(nodes[number]) if name in producer}
                missing = [source for source in sources if source not in done and source != number]
                if number not in done and missing:
                    waiting += sorted(missing, reverse=True)
                    continue
                waiting.pop()
                if number not in done:
                    done.add(number)
                    ordered.append(nodes[number])
        return ordered

    # Values of all steps as one tensor, with the steps as its first dim

    def _stack(self, names: tuple[str, ...]) -> str:
        if names not in self._stacks:
            self._stacks[names] = self._elements_of(names) or self._as_one_op(names) or self._joined(names)
        return self._stacks[names]

    def _elements_of(self, names: tuple[str, ...]) -> str | None:
        """Returns the tensor whose elements along an axis the values are, with that axis first."""
        found = [self._element_of(name) for name in names]
        if found[0] is None or any(each is None or each[:2] != found[0][:2] for each in found):
            return None
        source, axis, _ = found[0]
        indices = [each[2] for each in found if each]
        shape = self._values.shapes[source]
        if axis:
            source = self._make(
                "Transpose", source, perm=[axis, *(dim for dim in range(len(shape)) if dim != axis)]
            )
        if indices == list(range(shape[axis])):
            return source
        return self._make("Gather", source, self._ints(indices), axis=0)

    def _element_of(self, name: str) -> tuple[str, int, int] | None:
        """Returns the tensor, axis and position of which a value is the element."""
        node = self._producer(name)
        if node is None or node.op_type != "Gather" or not self._values.is_static(node.input[0]):
            return None
        index = self._values.constants.get(node.input[1])
        if index is None or list(index.dims):
            return None
        rank = len(self._values.shapes[node.input[0]])
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0) % rank
        length = self._values.shapes[node.input[0]][axis]
        return node.input[0], axis, int(numpy_helper.to_array(index)) % length

    def _as_one_op(self, names: tuple[str, ...]) -> str | None:
        """Returns the op of all steps if the values are equal ops of values of one step each."""
        nodes = [node for node in map(self._producer, names) if node is not None]
        first = nodes[0] if len(nodes) == len(names) else None
        if first is None or any(_differ(node, first) for node in nodes):
            return None
        operands = list(zip(*(node.input for node in nodes), strict=True))
        differ = [not self._values.are_same(operand) for operand in operands]
        if not all(self._values.is_static(name) for operand in [names, *operands] for name in operand):
            return None
        shape = self._values.shapes[names[0]]
        if first.op_type in _ELEMENTWISE and any(differ):
            ranks = [len(self._values.shapes[operand[0]]) for operand in operands]
            if any(
                rank != len(shape) if own else rank > len(shape)
                for rank, own in zip(ranks, differ, strict=True)
            ):
                return None
            return self._again(
                first, [self._stack(o) if own else o[0] for o, own in zip(operands, differ, strict=True)]
            )
        is_product = first.op_type == "MatMul" or (first.op_type == "Gemm" and not _is_set(first, "transA"))
        if is_product and differ[0] and not any(differ[1:]) and self._is_product_of_rows(first, shape):
            # One product of all rows. IREE's importer would repeat the weights for each step otherwise.
            rows = self._make(
                "Reshape", self._stack(operands[0]), self._ints([-1, self._values.shapes[operands[0][0]][-1]])
            )
            product = self._again(first, [rows, *(operand[0] for operand in operands[1:])])
            return self._make("Reshape", product, self._ints([len(names), *shape]))
        return None

    def _is_product_of_rows(self, node: NodeProto, shape: Sequence[int]) -> bool:
        """Returns True if each row of a product depends on the same row of its left operand only."""
        shapes = [self._values.shapes[name] for name in node.input]
        bias = shapes[2] if len(shapes) > 2 else []
        return (
            len(shapes[0]) == len(shape) and len(shapes[1]) == 2 and all(length == 1 for length in bias[:-1])
        )

    def _joined(self, names: tuple[str, ...]) -> str:
        parts = [self._make("Unsqueeze", name, self._ints([0])) for name in names]
        return self._make("Concat", *parts, axis=0)

    # Nodes

    def _producer(self, name: str) -> NodeProto | None:
        number = self._values.producer.get(name)
        return None if number is None else self._values.nodes[number]

    def _make(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self._make_as(op, f"{self._prefix}.{len(self._made)}", *inputs, **attributes)

    def _make_as(self, op: str, result: str, *inputs: str, **attributes: Any) -> str:
        self._made.append(helper.make_node(op, list(inputs), [result], name=self._name, **attributes))
        return result

    def _again(self, node: NodeProto, inputs: Sequence[str]) -> str:
        self._made.append(_copy(node, inputs, [f"{self._prefix}.{len(self._made)}"]))
        return str(self._made[-1].output[0])

    def _element(self, sequence: str, step: int, result: str) -> None:
        self._make_as("Gather", result, sequence, self._ints(step), axis=0)

    def _ints(self, numbers: int | Sequence[int]) -> str:
        tensor = numpy_helper.from_array(np.array(numbers, np.int64))
        name = self._make("Constant", value=tensor)
        self._known.constants[name] = tensor
        return name


def _copy(node: NodeProto, inputs: Iterable[str], outputs: Iterable[str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = inputs
    copy.output[:] = outputs
    return copy


def _differ(node: NodeProto, other: NodeProto) -> bool:
    return (
        node.op_type != other.op_type
        or node.domain != other.domain
        or len(node.input) != len(other.input)
        or len(node.output) != 1
        or list(node.attribute) != list(other.attribute)
    )


def _is_set(node: NodeProto, name: str) -> bool:
    return any(attribute.name == name and attribute.i for attribute in node.attribute)

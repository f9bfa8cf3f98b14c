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

from tilewright.frontends.rewrites.elements import attribute, element_of, joined_elements
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
        self._sequences: dict[tuple[str, ...], str] = {}
        """The sequences that collect results of the chain, by the names of these."""
        self._splits: dict[str, list[str]] = {}
        """Parts of the values of all steps, by the first result of the node that splits those of the first step."""

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
            names = tuple(chain.value(step, result) for step in range(len(chain.cells)))
            self._sequences[names] = sequence
            for step, name in enumerate(names):
                self._element(sequence, step, name)
        for state, final in zip(chain.states, finals, strict=True):
            if state.result not in collected:
                self._make_as("Identity", chain.value(last, state.result), final)
        rolled = {id(node) for cell in chain.cells for node in cell}
        kept = [node for node in values.nodes if id(node) not in rolled and not self._is_joined_again(node)]
        return self._sorted(self._without_unread([*kept, *self._made]))

    def _is_joined_again(self, node: NodeProto) -> bool:
        """Makes a sequence of the chain the result of a node that puts its elements together, if it is one."""
        joined = joined_elements(self._values, node)
        sequence = self._sequences.get(joined[0]) if joined else None
        if joined is None or sequence is None:
            return False
        others = list(range(1, len(self._known.shapes[sequence])))
        others.insert(joined[1], 0)
        self._make_as("Transpose", node.output[0], sequence, perm=others)
        return True

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
        elements = [element_of(self._values, name) for name in names]
        found = [element for element in elements if element is not None]
        if len(found) < len(names) or len({(element.tensor, element.axis) for element in found}) > 1:
            return None
        source, axis = found[0].tensor, found[0].axis
        shape = self._values.shapes[source]
        if axis:
            source = self._make(
                "Transpose", source, perm=[axis, *(dim for dim in range(len(shape)) if dim != axis)]
            )
        indices = [element.index for element in found]
        if indices == list(range(shape[axis])):
            return source
        return self._make("Gather", source, self._ints(indices), axis=0)

    def _as_one_op(self, names: tuple[str, ...]) -> str | None:
        """Returns the op of all steps if the values are equal ops of values of one step each."""
        nodes = [node for node in map(self._values.node_of, names) if node is not None]
        first = nodes[0] if len(nodes) == len(names) else None
        if first is None or any(_differ(node, first) for node in nodes):
            return None
        if len({list(node.output).index(name) for node, name in zip(nodes, names, strict=True)}) > 1:
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
        if first.op_type == "Split" and differ[0] and not any(differ[1:]):
            return self._split(first, names[0], operands)
        is_product = first.op_type == "MatMul" or (
            first.op_type == "Gemm" and not attribute(first, "transA", 0)
        )
        if is_product and differ[0] and not any(differ[1:]) and self._is_product_of_rows(first, shape):
            # One product of all rows. IREE's importer would repeat the weights for each step otherwise.
            rows = self._make(
                "Reshape", self._stack(operands[0]), self._ints([-1, self._values.shapes[operands[0][0]][-1]])
            )
            product = self._again(first, [rows, *(operand[0] for operand in operands[1:])])
            return self._make("Reshape", product, self._ints([len(names), *shape]))
        return None

    def _split(self, node: NodeProto, result: str, operands: Sequence[tuple[str, ...]]) -> str:
        """Splits the values of all steps as a node does those of one; returns the part that is `result` there."""
        key = str(node.output[0])
        if key not in self._splits:
            rank = len(self._values.shapes[operands[0][0]])
            results = [f"{self._prefix}.{len(self._made)}.{number}" for number in range(len(node.output))]
            split = _copy(
                node, [self._stack(operands[0]), *(operand[0] for operand in operands[1:])], results
            )
            kept = [each for each in node.attribute if each.name != "axis"]
            del split.attribute[:]
            split.attribute.extend(
                [*kept, helper.make_attribute("axis", attribute(node, "axis", 0) % rank + 1)]
            )
            self._made.append(split)
            self._splits[key] = results
        return self._splits[key][list(node.output).index(result)]

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
        or len(node.output) != len(other.output)
        or list(node.attribute) != list(other.attribute)
    )

"""Finds equal cells that follow each other: a recurrence that the exporter wrote out step by step.

A chain begins with the uses of one weight: `h @ U`, of which each depends on the one before. A cell is what lies on the
paths from one use to the next. Cells are equal if their nodes are, from the end back to values from outside; what a
value from outside is to a cell follows from its values in all steps:

- the same in all steps: the cell reads it in place;
- a result of the cell before: a state;
- anything else: one value for each step, which may not depend on the chain.

The projection of the inputs, `x @ W`, is on no such path: it is a value for each step.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from onnx import GraphProto, NodeProto, TensorProto

from tilewright.frontends.rewrites.graph import constants_in, shapes_in, types_in
from tilewright.frontends.rewrites.rule import FLOATS, is_stub, subgraphs

LEAST_STEPS = 4
"""Fewest equal cells that are a loop."""
MOST_NODES = 64
"""Most nodes of a cell: larger repetitions, such as the steps of a diffusion model, are several kernels, which would be
launched step by step."""
LEAST_WEIGHT_BYTES = 1 << 16
"""Fewest bytes of weights in a cell that is rolled for its speed: smaller cells share kernels when they are unrolled
(docs/guide/onnx-loops.md has the figures)."""
LEAST_NODES = 1000
"""Fewest nodes of a chain that is rolled whatever its weights are, because it takes long to compile."""

Result = tuple[int, int]
"""The number of a node in its cell, and the number of its result."""
_ELEMENT_BYTES: Mapping[int, int] = {
    TensorProto.FLOAT: 4,
    TensorProto.FLOAT16: 2,
    TensorProto.BFLOAT16: 2,
    TensorProto.DOUBLE: 8,
}
_WITH_STATE = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform")


@dataclass(frozen=True)
class State:
    """A result of the cell before."""

    result: Result
    initial: str
    """What the first cell reads in its place."""


@dataclass(frozen=True)
class Slices:
    """Values from outside, one for each step."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Equal cells, one for each step; each has its nodes in an order in which they can be computed."""

    cells: Sequence[Sequence[NodeProto]]
    sources: Sequence[Sequence[Result | State | Slices | str]]
    """What each input of each node of a cell is: a result in the cell, a value that differs between steps, or the name
    of one that does not."""

    @property
    def states(self) -> list[State]:
        return _distinct(State, self.sources)

    @property
    def slices(self) -> list[Slices]:
        return _distinct(Slices, self.sources)

    def value(self, step: int, result: Result) -> str:
        """Returns the name of a result of a cell."""
        return str(self.cells[step][result[0]].output[result[1]])


class Known:
    """What is known of a graph, also while its nodes change."""

    def __init__(self, graph: GraphProto) -> None:
        self.shapes, self.types, self.constants = shapes_in(graph), types_in(graph), constants_in(graph)
        self.results = {value.name for value in graph.output}
        self._reads: dict[int, tuple[NodeProto, set[str]]] = {}

    def reads(self, node: NodeProto) -> set[str]:
        """Returns the names that a node and the graphs in it read, some of which may be of values in the graphs."""
        if id(node) not in self._reads:
            self._reads[id(node)] = node, _reads(node)  # the node is kept, so its number stays its own
        return self._reads[id(node)][1]


class Values:
    """The producers and readers of the values of some nodes, and what is known of them."""

    def __init__(self, nodes: Sequence[NodeProto], known: Known) -> None:
        self.nodes = nodes
        self.shapes, self.types, self.constants = known.shapes, known.types, known.constants
        self.results = known.results
        self.producer: dict[str, int] = {}
        self.readers: dict[str, list[int]] = defaultdict(list)
        for number, node in enumerate(nodes):
            for name in filter(None, node.output):
                self.producer[name] = number
            for name in known.reads(node):
                self.readers[name].append(number)

    def node_of(self, name: str) -> NodeProto | None:
        """Returns the node whose result a value is; None for inputs and initializers."""
        number = self.producer.get(name)
        return None if number is None else self.nodes[number]

    def is_static(self, name: str) -> bool:
        return name in self.types and name in self.shapes and min(self.shapes[name], default=1) > 0

    def are_same(self, names: Sequence[str]) -> bool:
        """Returns True if the values are one value, or equal small constants."""
        if all(name == names[0] for name in names):
            return True
        tensors = [self.constants.get(name) for name in names]
        if any(tensor is None or is_stub(tensor) for tensor in tensors):
            return False
        first, *others = (_content(tensor) for tensor in tensors if tensor is not None)
        return all(other == first for other in others)

    def behind(self, numbers: Iterable[int], most: int | None = None) -> set[int]:
        """Returns the nodes that depend on some nodes, up to one in program order, these included."""
        found = set(numbers)
        waiting = list(found)
        while waiting:
            for name in self.nodes[waiting.pop()].output:
                for reader in self.readers[name] if name else ():
                    if reader not in found and (most is None or reader <= most):
                        found.add(reader)
                        waiting.append(reader)
        return found

    def between(self, first: Iterable[int], last: Sequence[int]) -> set[int]:
        """Returns the nodes on paths from nodes to others, those at the ends included; none if there is no path."""
        below = self.behind(first, most=max(last, default=-1))
        waiting = [number for number in last if number in below]
        found = set(waiting)
        while waiting:
            for name in self.nodes[waiting.pop()].input:
                number = self.producer.get(name, -1)
                if number in below and number not in found:
                    found.add(number)
                    waiting.append(number)
        return found


def find_chain(values: Values) -> Chain | None:
    """Returns a chain that is worth a loop, if there is one."""
    tried: set[int] = set()
    for uses in _uses_of_weights(values):
        # Weights of the same cells are in the same chain.
        if tried.issuperset(uses):
            continue
        chain = _chain_of(values, uses, tried)
        if chain and _is_worth_it(values, chain):
            return chain
    return None


def _uses_of_weights(values: Values) -> Iterator[list[int]]:
    """Yields the nodes that use a weight in one way, if there are enough of them; large weights come first."""
    uses: dict[tuple[str, str, bytes, int], list[int]] = defaultdict(list)
    for number, node in enumerate(values.nodes):
        for position, name in enumerate(node.input):
            if _is_weight(values, name) and not subgraphs(node):
                uses[name, node.op_type, _attributes(node), position].append(number)
    large_first = sorted(uses.items(), key=lambda item: -_bytes(values, item[0][0]))
    return (numbers for _, numbers in large_first if len(numbers) >= LEAST_STEPS)


def _chain_of(values: Values, uses: list[int], tried: set[int], *, may_move: bool = True) -> Chain | None:
    """Returns the longest chain whose cells begin with these nodes, or, if a cell begins with a node in front of them,
    with that. Adds the nodes of its cells to `tried`."""
    paths = [values.between([first], [last]) - {last} for first, last in itertools.pairwise(uses)]
    # Nodes may also lead from a cell to the next one beside the use of the weight, such as uses of other weights.
    besides = [
        values.between(one, sorted(next)) - one if one else set() for one, next in itertools.pairwise(paths)
    ]
    inside = [path | beside for path, beside in zip(paths, [set(), *besides], strict=True)]
    shapes = [_Cell.of(values, path, last) for path, last in zip(inside, uses[1:], strict=True)]
    begin, end = _longest_run(shapes)
    cells = [cell for cell in shapes[begin:end] if cell]
    if len(cells) < 2:  # two of them show what does not differ between steps
        return None
    model = cells[0]
    numbers = [cell.numbers for cell in cells]
    place = model.numbers.index(uses[begin])
    while len(first := model.precede(values, numbers[0][place])) == len(model.numbers):
        numbers.insert(0, [first[position] for position in range(len(first))])
    last, unmatched = model.follow(values, uses[end], place, numbers)
    if last is not None:
        numbers.append(last)
    elif unmatched is not None and may_move:
        # A cell of the exporter begins with a node that is behind the weight here, such as one that joins the next
        # input and the state.
        in_front = [first[unmatched]] if unmatched in first else []
        return _chain_of(values, in_front + [cell[unmatched] for cell in numbers], tried, may_move=False)
    tried.update(number for cell in numbers for number in cell)
    # The first cell may read an initial state of another shape.
    return _classify(values, model, numbers) or _classify(values, model, numbers[1:])


def _longest_run(cells: Sequence[_Cell | None]) -> tuple[int, int]:
    """Returns where the longest run of equal cells begins and ends."""
    best, begin = (0, 0), 0
    for position in range(len(cells) + 1):
        if position == len(cells) or cells[position] is None or cells[position] != cells[begin]:
            if position - begin > best[1] - best[0] and cells[begin] is not None:
                best = begin, position
            begin = position
    return best


class _Cell:
    """The nodes of a cell in the order in which they are found from its end, and how they are connected."""

    def __init__(self, numbers: list[int], shape: list[tuple[object, ...]], end: list[Result | None]) -> None:
        self.numbers = numbers
        self.shape = shape
        """For each node, what it computes, and for each input the result of the cell that it is, if it is one."""
        self.end = end
        """The inputs of the first node behind the cell."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Cell) and self.shape == other.shape and self.end == other.end

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, values: Values, inside: set[int], last: int) -> _Cell | None:
        """Returns the cell of nodes on paths to the node `last`; None if they are no cell."""
        nodes = [values.nodes[number] for number in inside]
        if not 0 < len(nodes) <= MOST_NODES or any(subgraphs(n) or n.op_type in _WITH_STATE for n in nodes):
            return None
        numbers: list[int] = []
        positions: dict[int, int] = {}
        waiting = [last]
        while waiting:  # an explicit stack, because cells may be deep
            number = waiting[-1]
            open_inputs = [
                source
                for source in (values.producer.get(name, -1) for name in values.nodes[number].input)
                if source in inside and source not in positions
            ]
            if open_inputs:
                waiting.append(open_inputs[0])
                continue
            waiting.pop()
            if number != last and number not in positions:
                positions[number] = len(numbers)
                numbers.append(number)

        def sources(number: int) -> list[Result | None]:
            return [_source(values, name, positions) for name in values.nodes[number].input]

        shape = [(*_kind(values.nodes[number]), tuple(sources(number))) for number in numbers]
        return cls(numbers, shape, sources(last))

    def inputs(self, position: int) -> Sequence[Result | None]:
        return self.shape[position][-1]  # type: ignore[return-value]

    def follow(
        self, values: Values, use: int, place: int, cells: Sequence[Sequence[int]]
    ) -> tuple[list[int] | None, int | None]:
        """Finds the cell behind others with a node at a place; returns its nodes, or the first node that it lacks.
        What two cells before it read alike, it must, too."""
        *_, before, model = cells
        results = {
            name: values.nodes[own].output[number]
            for other, own in zip(before, model, strict=True)
            for number, name in enumerate(values.nodes[other].output)
        }
        found = list[int]()
        for position, other in enumerate(model):
            names = [
                values.nodes[found[source[0]]].output[source[1]] for source in self.inputs(position) if source
            ] or [results[name] for name in values.nodes[other].input if name in results]
            candidates = [use] if position == place else values.readers[names[0]] if names else []
            models = [before[position], other]
            fitting = [
                n for n in candidates if n not in found and self._fits(values, position, n, found, models)
            ]
            if not fitting:
                return None, position
            found.append(fitting[0])
        return found, None

    def precede(self, values: Values, behind: int) -> dict[int, int]:
        """Returns the nodes, by position, of the cell in front of a node, as far as it is like this one."""
        images: dict[int, int] = {}
        waiting = list(
            zip(values.nodes[behind].input, self.end, strict=False)
        )  # its last inputs may be left out
        while waiting:
            name, source = waiting.pop()
            number = values.producer.get(name, -1)
            if not source or number < 0 or _kind(values.nodes[number]) != self.shape[source[0]][:-1]:
                continue
            if list(values.nodes[number].output).index(name) != source[1]:
                continue
            if images.get(source[0]) == number:
                continue
            images[source[0]] = number
            waiting += zip(values.nodes[number].input, self.inputs(source[0]), strict=True)
        return images

    def _fits(
        self, values: Values, position: int, number: int, found: Sequence[int], models: Sequence[int]
    ) -> bool:
        node = values.nodes[number]
        if _kind(node) != self.shape[position][:-1]:
            return False
        others = (values.nodes[model].input for model in models)
        for name, source, *alike in zip(node.input, self.inputs(position), *others, strict=True):
            if source and name != values.nodes[found[source[0]]].output[source[1]]:
                return False
            if not source and values.are_same(alike) and not values.are_same([name, *alike]):
                return False
        return True


def _classify(values: Values, model: _Cell, cells: Sequence[Sequence[int]]) -> Chain | None:
    """Returns the chain of these cells, or None if they read each other in ways that a loop does not have."""
    if len(cells) < LEAST_STEPS:
        return None
    place = {
        name: (step, (position, result))
        for step, cell in enumerate(cells)
        for position, number in enumerate(cell)
        for result, name in enumerate(values.nodes[number].output)
        if name
    }
    dependent = values.behind(number for cell in cells for number in cell)
    initial: dict[Result, str] = {}
    sources: list[list[Result | State | Slices | str]] = []
    for position in range(len(model.shape)):
        sources.append([])
        for index, inner in enumerate(model.inputs(position)):
            names = tuple(values.nodes[cell[position]].input[index] for cell in cells)
            before = [place.get(name) for name in names]
            state = before[1][1] if before[1] else None
            source: Result | State | Slices | str
            outer = names
            if inner:
                source, outer = inner, ()
                if before != [(step, inner) for step in range(len(cells))]:
                    return None
            elif values.are_same(names):
                source = names[0]
            elif state and before[1:] == [(step, state) for step in range(len(cells) - 1)]:
                source, outer = (
                    State(state, _same(values, initial.setdefault(state, names[0]), names[0])),
                    names[:1],
                )
            else:
                source = Slices(names)
                if any(name in values.constants for name in names):
                    return None  # cells with weights of their own are layers
            if any(values.producer.get(name, -1) in dependent for name in outer):
                return None
            sources[-1].append(source)
    chain = Chain([[values.nodes[n] for n in cell] for cell in cells], sources)
    has_one_start = len({state.result for state in chain.states}) == len(chain.states)
    # Without slices, the cells are layers that share their weights.
    return (
        chain if chain.slices and chain.states and has_one_start and _has_known_types(values, chain) else None
    )


def _has_known_types(values: Values, chain: Chain) -> bool:
    """Returns True if the types of all that a cell reads and computes are known, and those of states and slices are the
    same in all steps."""
    alike = [
        [state.initial, *(chain.value(step, state.result) for step in (0, -1))] for state in chain.states
    ]
    results = [name for node in chain.cells[0] for name in node.output if name]
    return all(map(values.is_static, results)) and all(
        values.is_static(name)
        and values.shapes[name] == values.shapes[names[0]]
        and values.types[name] == values.types[names[0]]
        for names in [*alike, *(slices.names for slices in chain.slices)]
        for name in names
    )


def _is_worth_it(values: Values, chain: Chain) -> bool:
    """Returns True if the chain is predicted to be faster as a loop, or takes long to compile."""
    steps, nodes = len(chain.cells), len(chain.cells[0])
    read = {name for inputs in chain.sources for name in inputs if isinstance(name, str)}
    weights = sum(_bytes(values, name) for name in read if _is_weight(values, name))
    return weights >= LEAST_WEIGHT_BYTES or steps * nodes >= LEAST_NODES


def _same(values: Values, name: str, other: str) -> str:
    """Returns one name of two values if they are the same, else the other one."""
    return name if values.are_same([name, other]) else other


_Kind = TypeVar("_Kind")


def _distinct(kind: type[_Kind], sources: Iterable[Iterable[object]]) -> list[_Kind]:
    found = (source for inputs in sources for source in inputs)
    return list(dict.fromkeys(source for source in found if isinstance(source, kind)))


def _is_weight(values: Values, name: str) -> bool:
    return name in values.constants and values.types.get(name) in FLOATS and len(values.shapes[name]) > 1


def _bytes(values: Values, name: str) -> int:
    elements = 1
    for length in values.shapes[name]:
        elements *= length
    return elements * _ELEMENT_BYTES[values.types[name]]


def _source(values: Values, name: str, positions: dict[int, int]) -> Result | None:
    number = values.producer.get(name, -1)
    if number not in positions:
        return None
    return positions[number], list(values.nodes[number].output).index(name)


def _kind(node: NodeProto) -> tuple[object, ...]:
    """Returns what a node computes of its inputs."""
    return node.domain, node.op_type, _attributes(node), len(node.input), len(node.output)


def _attributes(node: NodeProto) -> bytes:
    return b"".join(sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute))


def _content(tensor: TensorProto) -> bytes:
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("name")
    copy.ClearField("doc_string")
    return copy.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def _reads(node: NodeProto) -> set[str]:
    names = set(filter(None, node.input))
    for graph in subgraphs(node):
        names.update(value.name for value in graph.output)
        for inner in graph.node:
            names |= _reads(inner)
    return names

"""The common part of RNN, GRU and LSTM (opsets 7 to 22): a Scan over the sequence, whose body is an exact cell.

All inputs are multiplied by their weights at once, before the Scan. Its body multiplies the state by the recurrent
weights and applies the activations. The attributes `direction`, `layout`, `hidden_size` and `clip`, the initial states
and `sequence_lens` are dealt with here; the cells are in `rewrites.ops`.

A sequence that is shorter than the longest one keeps its state in the steps behind its end, and its outputs there are
zero. Backwards, it begins at its own end. The last state of an empty sequence is zero, as in ONNX Runtime; ONNX does
not define it. A recurrence in f16 or bf16 is computed in f32 and rounded at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tilewright.frontends.rewrites.activations import Activation, activations_of
from tilewright.frontends.rewrites.rule import NARROW_FLOATS, Dtype, Operation

_FIRST_OPSET = 13
"""The first opset whose ops the rewrite is written in; models of older ones are converted before."""


class Body:
    """The nodes of a Scan's body. They may read values of the graph around it."""

    def __init__(self, name: str, prefix: str, dtype: Dtype) -> None:
        self.nodes: list[NodeProto] = []
        self._name = name
        self._prefix = prefix
        self._dtype = dtype

    def fresh(self) -> str:
        return f"{self._prefix}.{len(self.nodes)}"

    def make(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = self.fresh()
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=self._name, **attributes))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.asarray(value).astype(self._dtype))

    def constant(self, value: np.ndarray[Any, Any]) -> str:
        return self.make("Constant", value=numpy_helper.from_array(value))

    def split(self, value: str, sizes: Sequence[int]) -> list[str]:
        """Splits a tensor along its last dim."""
        if len(sizes) == 1:
            return [value]
        lengths = self.constant(np.array(sizes, np.int64))
        names = [f"{self.fresh()}_{number}" for number in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [value, lengths], names, name=self._name, axis=-1))
        return names


@dataclass(frozen=True)
class Direction:
    """What a cell is made of, in one direction; all weights are transposed, so that they are right operands."""

    hidden: int
    inputs: str
    """[steps, batch, gates * hidden]: the inputs times their weights."""
    recurrent: str
    """[hidden, gates * hidden]."""
    activations: Sequence[Activation]
    clip: float | None
    input_bias: str | None
    """[gates * hidden]."""
    recurrent_bias: str | None
    """[gates * hidden]."""
    peepholes: str | None
    """[3 * hidden]."""

    def activate(self, body: Body, number: int, value: str) -> str:
        """Applies an activation to a clipped value."""
        return self.activations[number].apply(body, self.clipped(body, value))

    def clipped(self, body: Body, value: str) -> str:
        if self.clip is None:
            return value
        return body.make("Clip", value, body.number(-self.clip), body.number(self.clip))


Step = Callable[[Body, str, Sequence[str]], list[str]]
"""Makes a step of a cell from the inputs times their weights, [batch, gates * hidden], and the states. Returns the next
states, of which the first one is also the output."""


@dataclass(frozen=True)
class Cell:
    """A kind of recurrence."""

    gates: int
    states: int
    activations: Sequence[str]
    """The default activations of a direction."""
    prepare: Callable[[Operation, Direction], tuple[str, Step]]
    """Makes what does not depend on the step, and returns the inputs with the biases that they can take, and the
    step."""


def spell_out(operation: Operation, cell: Cell) -> bool:
    """Replaces an RNN, GRU or LSTM."""
    return _Recurrence(operation, cell).spell_out()


class _Recurrence:
    def __init__(self, operation: Operation, cell: Cell) -> None:
        if operation.opset < _FIRST_OPSET:
            operation.refuse(
                f"of opset {operation.opset} is not supported, and ONNX's converter cannot convert the model",
                hint="export it in a newer opset",
            )
        self._op = operation
        self._cell = cell
        self._batch_first = bool(operation.attribute("layout", 0))
        direction = operation.attribute("direction", b"forward")
        self._reversed = {b"forward": [False], b"reverse": [True], b"bidirectional": [False, True]}.get(
            direction.lower()
        ) or operation.refuse(f"the direction '{direction.decode()}' is not one of ONNX's")
        self._hidden = self._find_hidden()
        kind = operation.kind(0)
        self._narrow = kind if kind in NARROW_FLOATS else None
        self._dtype = np.dtype(np.float32) if self._narrow is not None else operation.dtype(0)
        clip = operation.attribute("clip")
        if clip is not None and not clip > 0:
            operation.refuse(f"a clip of {clip} is not positive")
        self._clip = clip
        self._activations = activations_of(operation, cell.activations, len(self._reversed))

    def _find_hidden(self) -> int:
        op, directions = self._op, len(self._reversed)
        hidden = int(op.attribute("hidden_size", 0)) or op.shape(2)[-1]
        if hidden <= 0:
            op.refuse("the length of the state is not known", hint="give it as hidden_size")
        for index, wanted in (
            (1, [directions, self._cell.gates * hidden, -1]),
            (2, [directions, self._cell.gates * hidden, hidden]),
        ):
            shape = op.shape(index)
            if len(shape) != 3 or any(
                a >= 0 and b >= 0 and a != b for a, b in zip(shape, wanted, strict=True)
            ):
                op.refuse(f"its weights '{op.inputs[index]}' are {shape} instead of {wanted}")
        return hidden

    def spell_out(self) -> bool:
        op = self._op
        x = self._wide(0)
        if self._batch_first:
            x = op.transpose(x, [1, 0, 2])
        lengths = self._lengths()
        steps = self._steps(x) if lengths is not None else None
        results = [self._direction(number, x, lengths, steps) for number in range(len(self._reversed))]
        if op.wants(0):
            self._give_outputs([outputs for _, outputs in results if outputs])
        for state in range(self._cell.states):
            if op.wants(1 + state):
                self._give_state(1 + state, [states[state] for states, _ in results], lengths)
        return True

    def _direction(
        self, number: int, x: str, lengths: str | None, steps: str | None
    ) -> tuple[list[str], str | None]:
        """Makes the Scan of a direction; returns the last states, and the outputs if they are wanted."""
        op, cell = self._op, self._cell
        gates = cell.gates * self._hidden
        functions = len(cell.activations)
        bias = self._part(3, number)
        weights = op.transpose(self._part(1, number) or "", [1, 0])
        direction = Direction(
            hidden=self._hidden,
            inputs=self._project(x, weights, gates),
            recurrent=op.transpose(self._part(2, number) or "", [1, 0]),
            activations=self._activations[number * functions : (number + 1) * functions],
            clip=self._clip,
            input_bias=op.slice(bias, 0, 0, gates) if bias else None,
            recurrent_bias=op.slice(bias, 0, gates, 2 * gates) if bias else None,
            peepholes=self._part(7, number),
        )
        inputs, step = cell.prepare(op, direction)
        states = [self._initial(5 + state, number, x) for state in range(cell.states)]
        prefix = f"{op.name or op.op}.{next(filter(None, op.outputs))}.direction_{number}"
        body = Body(op.name, prefix, self._dtype)
        held = [f"{prefix}.state_{state}" for state in range(cell.states)]
        slices = [f"{prefix}.input", *([f"{prefix}.step"] if steps else [])]
        after = step(body, slices[0], held)
        output = after[0]
        if lengths and steps:
            is_within = body.make("Less", slices[1], lengths)
            output = body.make("Where", is_within, after[0], body.number(0))
            after = [body.make("Where", is_within, new, old) for new, old in zip(after, held, strict=True)]
        after = [body.make("Identity", value) for value in after]
        collected = [body.make("Identity", output)] if op.wants(0) else []
        kind = helper.np_dtype_to_tensor_dtype(self._dtype)
        graph = helper.make_graph(
            body.nodes,
            prefix,
            [
                *(_value(name, kind) for name in [*held, slices[0]]),
                *(_value(name, TensorProto.INT32) for name in slices[1:]),
            ],
            [_value(name, kind) for name in [*after, *collected]],
        )
        back = int(self._reversed[number])
        results = op.make_many(
            "Scan",
            *states,
            inputs,
            *([steps] if steps else []),
            count=len(after) + len(collected),
            body=graph,
            num_scan_inputs=len(slices),
            scan_input_directions=[back] * len(slices),
            **({"scan_output_directions": [back]} if collected else {}),
        )
        return results[: cell.states], results[-1] if collected else None

    def _project(self, x: str, weights: str, width: int) -> str:
        """Multiplies the inputs of all steps, [steps, batch, inputs], by weights, [inputs, width].

        The product is one of matrices. IREE's importer would repeat the weights for each step otherwise.
        """
        op = self._op
        steps, batch = op.shape(0)[:2] if not self._batch_first else reversed(op.shape(0)[:2])
        length = op.shape(1)[-1]
        if length <= 0 or (steps < 0 and batch < 0) or 0 in (steps, batch):
            return op.make("MatMul", x, weights)
        product = op.make("MatMul", op.reshape(x, [-1, length]), weights)
        return op.reshape(product, [steps, batch, width])

    def _wide(self, index: int) -> str:
        """Returns an input in the type in which the recurrence is computed."""
        name = self._op.inputs[index]
        return name if self._narrow is None else self._op.cast(name, TensorProto.FLOAT)

    def _part(self, index: int, direction: int) -> str | None:
        """Returns the weights or biases of a direction, if they are given."""
        if not self._op.has(index):
            return None
        if len(self._reversed) == 1:
            return self._op.make("Squeeze", self._wide(index), self._op.ints(0))
        # A slice, and not an element that is gathered, because weights that are slices are laid out at compile time.
        part = self._op.slice(self._wide(index), 0, direction, direction + 1)
        return self._op.make("Squeeze", part, self._op.ints(0))

    def _initial(self, index: int, direction: int, x: str) -> str:
        """Returns the initial state of a direction, [batch, hidden]."""
        op = self._op
        if op.has(index):
            axis = 1 if self._batch_first else 0
            return op.make("Gather", self._wide(index), op.constant(np.int64(direction)), axis=axis)
        batch = op.shape(0)[0 if self._batch_first else 1]
        if batch >= 0:
            return op.constant(np.zeros((batch, self._hidden), self._dtype))
        shape = op.make(
            "Concat",
            op.make("Shape", x, start=1, end=2) if op.opset >= 15 else op.slice(op.make("Shape", x), 0, 1, 2),
            op.ints(self._hidden),
            axis=0,
        )
        return op.make("Expand", op.number(0, self._dtype), shape)

    def _lengths(self) -> str | None:
        """Returns the lengths of the sequences, [batch, 1], unless all are known to be whole."""
        op = self._op
        if not op.has(4):
            return None
        known, steps = op.value(4), op.shape(0)[1 if self._batch_first else 0]
        if known is not None and steps >= 0 and (known >= max(steps, 1)).all():
            return None
        return op.reshape(op.inputs[4], [-1, 1])

    def _steps(self, x: str) -> str:
        """Makes the numbers of the steps, [steps, 1, 1]."""
        op = self._op
        steps = op.shape(0)[1 if self._batch_first else 0]
        if steps >= 0:
            return op.constant(np.arange(steps, dtype=np.int32).reshape(steps, 1, 1))
        count = op.make("Squeeze", op.slice(op.make("Shape", x), 0, 0, 1), op.ints(0))
        counted = op.make("Range", op.constant(np.int64(0)), count, op.constant(np.int64(1)))
        return op.cast(op.reshape(counted, [-1, 1, 1]), TensorProto.INT32)

    def _give_outputs(self, outputs: Sequence[str]) -> None:
        """Makes the result [steps, directions, batch, hidden], or [batch, steps, directions, hidden]."""
        op = self._op
        axis = 2 if self._batch_first else 1
        if self._batch_first:
            outputs = [op.transpose(value, [1, 0, 2]) for value in outputs]
        self._give(0, [op.make("Unsqueeze", value, op.ints(axis)) for value in outputs], axis)

    def _give_state(self, output: int, states: Sequence[str], lengths: str | None) -> None:
        """Makes the result [directions, batch, hidden], or [batch, directions, hidden]."""
        op = self._op
        axis = 1 if self._batch_first else 0
        if lengths is not None:
            is_any = op.make("Greater", lengths, op.constant(np.int32(0)))
            states = [op.make("Where", is_any, value, op.number(0, self._dtype)) for value in states]
        self._give(output, [op.make("Unsqueeze", value, op.ints(axis)) for value in states], axis)

    def _give(self, output: int, parts: Sequence[str], axis: int) -> None:
        op = self._op
        whole = parts[0] if len(parts) == 1 else op.make("Concat", *parts, axis=axis)
        if self._narrow is None:
            op.give(whole, output)
        else:
            op.finish("Cast", whole, output=output, to=self._narrow)


def _value(name: str, kind: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, None)

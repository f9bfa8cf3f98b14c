"""State of a program that stays on the device between calls: outputs that continue inputs in place.

IREE 3.13 has two ways to keep a tensor between calls without a copy. A mutable global of the module holds it, but then
a loaded program has one state, which only functions of the module can set or read. Or a function's result is the buffer
of its argument: then the caller owns the state, may have any number of them, and stock tools can do the same.
Tilewright uses the second. IREE reuses the buffer by itself where nothing else needs the old state, but does not report
where it copies instead; this module checks that it does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import CompileError, InputError
from tilewright.records.signature import Array, Signature, TensorSpec
from tilewright.runtime.at_exit import check_not_over, release_at_exit

if TYPE_CHECKING:
    from tilewright.runtime.session import Session

_FUNCTION = re.compile(r'"util\.func"\(\) <\{[^\n]*?sym_name = "([^"]+)"')
_ARGUMENT = re.compile(r"(%\w+): ")
_RETURN = re.compile(r'"util\.return"\(([^)]*)\)')


def check_state(state: Mapping[str, str], signature: Signature | None) -> None:
    """Refuses state pairs whose output or input does not exist, or whose shapes and dtypes differ."""
    if not state:
        return
    if signature is None:
        raise CompileError("the model does not describe its inputs and outputs, so none of them can be state")
    inputs, outputs = _by_name(signature.inputs), _by_name(signature.outputs)
    for output, continued in state.items():
        for name, known, kind in ((output, outputs, "output"), (continued, inputs, "input")):
            if name not in known:
                raise CompileError(
                    f"no {kind} is called '{name}', which should be state",
                    hint=f"it has: {', '.join(known) or 'none'}",
                )
        made, read = outputs[output], inputs[continued]
        if (made.dtype, made.shape) != (read.dtype, read.shape):
            raise CompileError(f"{made} cannot continue {read}", hint="state must keep its type and shape")
    if len(set(state.values())) < len(state):
        raise CompileError("two outputs cannot continue the same input", hint="give each state an input")


def check_in_place(stream: str, entry: str, state: Mapping[str, str], signature: Signature) -> None:
    """Refuses a program that copies its state; `stream` is the module at IREE's stream phase."""
    returns = _returned_arguments(stream, entry)
    inputs = [spec.name for spec in signature.inputs]
    for index, spec in enumerate(signature.outputs):
        if spec.name in state and returns[index] != inputs.index(state[spec.name]):
            continued = state[spec.name]
            raise CompileError(
                f"output '{spec.name}' cannot continue input '{continued}' in place: IREE makes a copy",
                hint=f"update '{continued}' by ScatterND, ScatterElements or TensorScatter, and let everything "
                f"else read '{spec.name}'",
            )


def _returned_arguments(stream: str, entry: str) -> list[int | None]:
    """Returns, for every result of the entry, the index of the argument that it is."""
    functions = [(m[1], m.end()) for m in _FUNCTION.finditer(stream)]
    ends = [start for _, start in functions[1:]] + [len(stream)]
    bodies = {name: stream[start:end] for (name, start), end in zip(functions, ends, strict=True)}
    # Models from torch and ONNX have a function that calls the one that computes and waits for it.
    body = bodies.get(f"{entry}$async") or bodies[entry]
    block = next(line for line in body.splitlines() if line.lstrip().startswith("^bb0("))
    arguments = _ARGUMENT.findall(block)
    returned = [[name.strip() for name in match[1].split(",")] for match in _RETURN.finditer(body)]
    return [
        arguments.index(names[0]) if names[0] in arguments and len(set(names)) == 1 else None
        for names in zip(*returned, strict=True)
    ]


class Steps:
    """Successive calls of a program, with its state on the device in between.

    `steps(*inputs)` takes the inputs that are not state and returns the outputs that are not.
    """

    def __init__(
        self, session: Session, signature: Signature, state: Mapping[str, str], given: Mapping[str, Any]
    ) -> None:
        self._session, self._signature, self._state = session, signature, state
        unknown = set(given) - set(state.values())
        if unknown:
            raise InputError(
                f"'{min(unknown)}' is not state", hint=f"state is: {', '.join(state.values()) or 'none'}"
            )
        specs = _by_name(signature.inputs)
        self._sizes: dict[str, tuple[int, str]] = {}
        starts = {name: _start(specs[name], given.get(name), self._sizes) for name in state.values()}
        self._held = {name: session.place(start) for name, start in starts.items()}
        self._inputs = Signature(
            tuple(spec for spec in signature.inputs if spec.name not in state.values()), signature.outputs
        )
        release_at_exit(self)

    def release(self) -> None:
        """Releases the state."""
        self._held.clear()

    def __call__(self, *arrays: Any) -> list[Array]:
        """Runs one step; returns the outputs that are not state, in order."""
        check_not_over(self._session.entry)
        given = iter(self._inputs.check_inputs(arrays, sizes=dict(self._sizes)))
        arguments = [self._held.get(spec.name, None) for spec in self._signature.inputs]
        views = [next(given, None) if argument is None else argument for argument in arguments]
        for index, spec in enumerate(self._signature.inputs):
            if views[index] is None:
                views[index] = self._session.default(spec)
        results = self._session.step(views, len(self._signature.outputs))
        outputs = []
        for index, spec in enumerate(self._signature.outputs):
            if spec.name in self._state:
                self._held[self._state[spec.name]] = results.buffer(index)
            else:
                outputs.append(results.array(index, spec))
        return outputs

    def state(self, name: str) -> Array:
        """Returns a copy of a state, by the name of its input."""
        check_not_over(self._session.entry)
        specs = _by_name(self._signature.inputs)
        if name not in self._held:
            raise InputError(f"'{name}' is not state", hint=f"state is: {', '.join(self._held) or 'none'}")
        return self._session.read(self._held[name], specs[name])

    def __repr__(self) -> str:
        return f"<tilewright.Steps of {self._session.entry}, state {', '.join(self._held)}>"


def _start(spec: TensorSpec, given: Any, known: dict[str, tuple[int, str]]) -> Array:
    """Returns the initial value of a state: zeros unless one is given."""
    if given is not None:
        (array,) = Signature((spec,), ()).check_inputs([given], sizes=known)
        return array
    sizes: Sequence[int] = [size for size in spec.shape if isinstance(size, int)]
    if len(sizes) < len(spec.shape):
        raise InputError("its sizes are not known, so it must be given", where=f"state '{spec.name}'")
    return np.zeros(sizes, spec.numpy_dtype)


def _by_name(specs: Sequence[TensorSpec]) -> dict[str, TensorSpec]:
    return {spec.name: spec for spec in specs}

"""Ops that onnx's ReferenceEvaluator computes in some forms only, in full: Scan, Loop, GatherElements, ScatterElements,
GlobalMaxPool and ConvTranspose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_loop import Loop as _JoiningLoop
from onnx.reference.ops.op_scan import Scan as _ForwardScan

Array = np.ndarray[Any, Any]

_COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


class Scan(_ForwardScan):
    """The op Scan, along any axes and in any directions; onnx's goes forward along the first ones."""

    op_domain = ""

    def __init__(self, onnx_node: Any, run_params: Any) -> None:
        OpRun.__init__(self, onnx_node, run_params)
        given = vars(self)
        inputs, body = int(given["num_scan_inputs"]), given["body"]
        self.input_names, self.output_names = body.input_names, body.output_names
        outputs = len(self.output_names) - (len(self.input_names) - inputs)
        self._inputs = [
            _padded(given["scan_input_axes"], inputs),
            _padded(given["scan_input_directions"], inputs),
        ]
        self._outputs = [
            _padded(given["scan_output_axes"], outputs),
            _padded(given["scan_output_directions"], outputs),
        ]
        self.scan_input_axes = self.scan_input_directions = None
        self.scan_output_axes = self.scan_output_directions = None
        self.input_axes_ = [0] * inputs
        self._states = len(self.input_names) - inputs

    def _run(self, *args: Array, **attributes: Any) -> tuple[Array, ...]:
        states = self._states
        moved = [
            np.flip(np.moveaxis(x, axis, 0), 0) if backwards else np.moveaxis(x, axis, 0)
            for x, axis, backwards in zip(args[states:], *self._inputs, strict=True)
        ]
        results: tuple[Array, ...] = super()._run(*args[:states], *moved, **attributes)  # type: ignore[no-untyped-call]
        stacked = [
            np.moveaxis(np.flip(y, 0) if backwards else y, 0, axis)
            for y, axis, backwards in zip(results[states:], *self._outputs, strict=True)
        ]
        return (*results[:states], *stacked)


def _padded(values: Any, count: int) -> list[int]:
    return [*(int(value) for value in values or ())] or [0] * count


class Loop(_JoiningLoop):
    """The op Loop; onnx's joins the outputs of iterations along their first axis, instead of a new one."""

    op_domain = ""

    def _run(  # type: ignore[no-untyped-def, override]
        self,
        trips: Array | None,
        condition: Array | None,
        *states: Array,
        context: Mapping[str, Array] | None = None,
        bindings=None,  # noqa: ANN001
        **_: Any,
    ) -> tuple[Array, ...]:
        body = vars(self)["body"]
        counter, going, *names = body.input_names
        stacked: list[list[Array]] = [[] for _ in range(len(body.output_names) - 1 - len(states))]
        is_going, step = condition is None or bool(condition), 0
        held = list(states)
        while is_going and (trips is None or step < int(trips)):
            inputs = {**(context or {}), **dict(zip(names, held, strict=True))}
            inputs |= {counter: np.array(step, np.int64), going: np.array(is_going)}
            after, *outputs = self._run_body(inputs, bindings=bindings)  # type: ignore[attr-defined]
            is_going, step = bool(after), step + 1
            held = outputs[: len(states)]
            for rows, output in zip(stacked, outputs[len(states) :], strict=True):
                rows.append(output)
        if stacked and not step:
            raise NotImplementedError("a Loop without iterations, whose outputs have no shape")
        return (*held, *(np.stack(rows) for rows in stacked))


def _positions(indices: Array, axis: int, size: int) -> tuple[Array, ...]:
    """Returns the index of the element that each entry of `indices` names, along every axis."""
    grid: list[Array] = list(np.indices(indices.shape))
    grid[axis] = np.where(indices < 0, indices + size, indices)
    return tuple(grid)


class GatherElements(OpRun):
    """The op GatherElements; onnx's wants indices as large as the data along all other axes."""

    op_domain = ""

    def _run(self, data: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        return (data[_positions(indices, axis, data.shape[axis])],)


class ScatterElements(OpRun):
    """The op ScatterElements; onnx's fails for some shapes of indices."""

    op_domain = ""

    def _run(
        self, data: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "none"
    ) -> tuple[Array]:
        result = data.copy()
        at = _positions(indices, axis, data.shape[axis])
        if reduction in _COMBINE:
            _COMBINE[reduction].at(result, at, updates)
        else:
            result[at] = updates
        return (result,)


class GlobalMaxPool(OpRun):
    """The op GlobalMaxPool; onnx's loses axes."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class ConvTranspose(OpRun):
    """The op ConvTranspose with explicit pads; onnx's fails for some groups, dilations and pads."""

    op_domain = ""

    def _run(  # type: ignore[no-untyped-def]
        self,
        x: Array,
        weights: Array,
        bias: Array | None = None,
        **_,  # noqa: ANN003
    ) -> tuple[Array]:
        axes = x.ndim - 2
        kernel = weights.shape[2:]
        strides, dilations = self.strides or [1] * axes, self.dilations or [1] * axes  # type: ignore[attr-defined]
        extra, group = self.output_padding or [0] * axes, self.group or 1  # type: ignore[attr-defined]
        full = [
            s * (n - 1) + d * (k - 1) + 1 + e
            for s, n, d, k, e in zip(strides, x.shape[2:], dilations, kernel, extra, strict=True)
        ]
        before, behind = self._pads(full, x.shape[2:], strides)
        inputs, features = x.shape[1] // group, weights.shape[1]
        y = np.zeros((x.shape[0], group * features, *full), x.dtype)
        for tap in np.ndindex(*kernel):
            places = tuple(
                slice(d * t, d * t + s * (n - 1) + 1, s)
                for d, t, s, n in zip(dilations, tap, strides, x.shape[2:], strict=True)
            )
            for g in range(group):
                given = x[:, g * inputs : (g + 1) * inputs]
                taps = weights[(slice(g * inputs, (g + 1) * inputs), slice(None), *tap)]
                y[(slice(None), slice(g * features, (g + 1) * features), *places)] += np.einsum(
                    "nc...,cm->nm...", given, taps
                )
        inside = tuple(slice(b, n - e) for b, n, e in zip(before, full, behind, strict=True))
        y = y[(slice(None), slice(None), *inside)]
        return (y if bias is None else y + bias.reshape(-1, *[1] * axes),)

    def _pads(
        self, full: list[int], sizes: tuple[int, ...], strides: list[int]
    ) -> tuple[list[int], list[int]]:
        """Returns how much is cut off before and behind every axis; a negative number adds zeros."""
        axes = len(full)
        auto = self.auto_pad or "NOTSET"  # type: ignore[attr-defined]
        if auto in ("NOTSET", "VALID") and not self.output_shape:  # type: ignore[attr-defined]
            pads = list(self.pads or [0] * 2 * axes)  # type: ignore[attr-defined]
            return pads[:axes], pads[axes:]
        wanted = self.output_shape or [n * s for n, s in zip(sizes, strides, strict=True)]  # type: ignore[attr-defined]
        if any(f < w for f, w in zip(full, wanted, strict=True)):
            raise NotImplementedError("an output_shape beyond the elements that the inputs reach")
        cut = [f - w for f, w in zip(full, wanted, strict=True)]
        less, more = [c // 2 for c in cut], [c - c // 2 for c in cut]
        return (less, more) if auto == "SAME_UPPER" else (more, less)

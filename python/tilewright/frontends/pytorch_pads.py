"""Pads that IREE's compiler gets wrong: those that also remove elements, and zeros around the input of a transposed
convolution.

It forgets to remove elements at one end of a dim that grows at the other. It folds a pad with zeros into the step that
sets elements `stride` apart, and forgets the stride; zeros of the other sign are not folded, and sums that begin with
zero are the same with them.
"""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {_aten.constant_pad_nd.default: _pad}


def _pad(x: Any, amounts: Any, value: Any = 0) -> Any:
    """Removes what negative amounts remove first."""
    if all(amount >= 0 for amount in amounts):
        return NotImplemented
    for number in range(len(amounts) // 2):
        axis = x.dim() - 1 - number
        before, after = (max(0, -amount) for amount in amounts[2 * number : 2 * number + 2])
        x = x.narrow(axis, before, x.shape[axis] - before - after)
    return _aten.constant_pad_nd(x, [max(0, amount) for amount in amounts], value)


def pad_by_other_zeros(graph: Any) -> None:
    """Gives transposed convolutions with strides that read a pad with zeros one of their own, with negative zeros."""
    for node in list(graph.nodes):
        if node.target is not _aten.convolution.default or not _sets_apart(*node.args):
            continue
        pad = node.args[0]
        if pad.target is not _aten.constant_pad_nd.default or any(value != 0 for value in pad.args[2:]):
            continue
        with graph.inserting_before(node):
            own = graph.call_function(pad.target, (*pad.args[:2], -0.0))
        own.meta = dict(pad.meta)
        node.replace_input_with(pad, own)


def _sets_apart(
    _x: Any, _weight: Any, _bias: Any, strides: Any, _pads: Any, _dilations: Any, is_transposed: Any, *_: Any
) -> bool:
    return bool(is_transposed) and any(stride != 1 for stride in strides)

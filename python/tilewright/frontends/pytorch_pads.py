"""Zeros around the input of a transposed convolution, with a sign that IREE's compiler does not fold away.

It folds a pad with zeros into the step that sets elements `stride` apart, and forgets the stride. Sums that begin with
zero are the same whatever the sign of the zeros that are added.
"""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten


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

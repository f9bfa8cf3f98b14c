"""IREE's lowering of ONNX without its inference of shapes, for modules whose types have all sizes.

IREE infers the shape of each op twice: it inlines a function that computes it, and folds that. Where the importer has
written all sizes this finds nothing, and it takes two thirds of the time of IREE's front end (24 layers of BERT: 2.8 s
with it and 0.9 s without, on a shared Zen 3, 2026-11-29). An op that is lowered through others without sizes is the
exception: then the result has open sizes, or there is none, and the whole pipeline has to run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LEGAL_OPS = (
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.adaptive_avg_pool1d",
    "aten.adaptive_avg_pool2d",
    "aten.adaptive_max_pool1d",
    "aten.fft_rfft",
    "aten.convolution_backward",
    "aten.scaled_dot_product_attention",
    "aten.argmax",
    "aten.argmin",
)
"""Ops that IREE does not decompose (`BackendLegalOps` in its plugin for torch)."""
_DECOMPOSE = (
    f"func.func(torch-decompose-complex-ops{{legal-ops={{{','.join(_LEGAL_OPS)}}}}}),func.func(canonicalize)"
)
PIPELINE = ",".join(
    (
        "func.func(convert-torch-onnx-to-torch)",
        _DECOMPOSE,
        "func.func(torch-scalarize-shapes)",
        "torch-refine-public-return",
        "func.func(canonicalize)",
        _DECOMPOSE,
        "torch-to-iree",
    )
)
"""Passes that IREE 3.13 runs on a module of ONNX, without `torch-shape-refinement-pipeline` on both sides of
`torch-scalarize-shapes`. They leave nothing for IREE's own conversion of its input to do."""
_FLAGS_OF_LOWERING = ("--iree-torch-", "--iree-input-type")
"""Beginnings of the flags that change IREE's lowering, which a pipeline as text would ignore."""
_OPEN_TORCH_TYPE = re.compile(
    r"tensor(?:<(?:\*|\[[^\]]*\?)|(?<=!torch\.tensor)(?![\w<])|(?<=!torch\.vtensor)(?![\w<]))"
)
"""It begins with a word, which is searched for a hundred times as fast as a choice."""
_OPEN_TYPE = re.compile(rb"tensor<(?:\*|[^>]*\?)")


def has_all_sizes(listing: str) -> bool:
    """Returns True if the tensors of an imported module, as text, have a rank and sizes; lists may have any."""
    return _OPEN_TORCH_TYPE.search(listing) is None


def is_lowered(text: bytes) -> bool:
    """Returns True if all tensors of a lowered module have sizes."""
    return _OPEN_TYPE.search(text) is None


def keeps_lowering(flags: Sequence[str]) -> bool:
    """Returns True if none of IREE's flags changes its lowering of ONNX."""
    return not any(flag.startswith(_FLAGS_OF_LOWERING) for flag in flags)

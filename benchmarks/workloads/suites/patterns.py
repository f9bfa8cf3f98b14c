"""Elementwise ops around reductions, which memory bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import onnx

from benchmarks.workloads import stitch
from benchmarks.workloads.random_stitches import SEEDS, random_stitch
from benchmarks.workloads.workload import Workload

# Token-major activations of a transformer layer and its MLP, and a decode step
_ROWS = (512, 768)
_WIDE_ROWS = (128, 3072)
# Sizes beyond the caches, so that memory bandwidth is the limit
_LARGE = (2048, 4096)
# 256 MB of float32
_BANDWIDTH = (65536, 1024)
_LARGE_ELEMENTS = 1 << 22
_Shapes = tuple[Sequence[int], ...]
_Builder = Callable[..., onnx.ModelProto]

_STITCH: tuple[tuple[str, _Builder, _Shapes], ...] = (
    ("softmax", stitch.softmax, ((6144, 512), (2048, 2048), (77, 77, 5), (1, 50257))),
    ("softmax-axis1", partial(stitch.softmax, axis=1), ((16, 197, 768),)),
    ("masked-softmax", stitch.masked_softmax, ((6144, 512), (1, 12, 128, 128), (77, 77, 5))),
    ("causal-softmax", stitch.causal_softmax, ((12, 512, 512),)),
    ("layer-norm", stitch.layer_norm_op, (_ROWS, (128, 768), (512, 1024), _LARGE, (77, 321), (197, 1027))),
    ("layer-norm-decomposed", stitch.layer_norm_chain, (_ROWS, (197, 1027))),
    ("rms-norm", stitch.rms_norm_chain, (_ROWS, (1, 4096), (128, 4096), _LARGE)),
    (
        "bias-residual-layer-norm",
        stitch.bias_residual_layer_norm,
        (_ROWS, (1, 128, 768), (128, 768), (2048, 1024)),
    ),
    ("gelu-erf", stitch.gelu_erf_chain, (_WIDE_ROWS, _LARGE)),
    ("gelu-tanh", stitch.gelu_tanh_chain, (_WIDE_ROWS, _LARGE)),
    ("silu-product", stitch.silu_product, ((128, 1376), (128, 11008))),
    ("log-softmax", stitch.log_softmax, ((128, 30522), (1, 50257), (127, 1003))),
    ("l2-normalise", stitch.l2_normalise, (_ROWS, (1000, 128), (1023, 129))),
    ("batch-statistics", stitch.batch_statistics, ((8, 64, 28, 28), (129, 77))),
    ("batch-statistics-nhwc", partial(stitch.batch_statistics, channel=3), ((32, 56, 56, 64),)),
    ("transpose-cast", stitch.transpose_cast, ((12, 128, 64),)),
    ("argmax", stitch.argmax, ((512, 30522),)),
    ("rotary", stitch.rotary, ((32, 128, 64),)),
)
_OUT_OF_CACHE: tuple[tuple[str, _Builder, _Shapes], ...] = (
    ("scaled-copy", stitch.scaled_copy, (_BANDWIDTH,)),
    ("layer-norm", stitch.layer_norm_op, (_BANDWIDTH,)),
    ("softmax", stitch.softmax, (_BANDWIDTH,)),
)


def patterns() -> list[Workload]:
    """Returns the suites `stitch` and, with tensors beyond the caches, `bandwidth`."""
    return [*_patterns("stitch", _STITCH), *_patterns("bandwidth", _OUT_OF_CACHE)]


def _patterns(suite: str, table: Sequence[tuple[str, _Builder, _Shapes]]) -> list[Workload]:
    return [
        Workload(
            name=f"{name}-{'x'.join(map(str, shape))}",
            build=partial(builder, shape),
            description=f"{name.replace('-', ' ')} on {'x'.join(map(str, shape))}",
            suite=suite,
            is_large=math.prod(shape) > _LARGE_ELEMENTS,
        )
        for name, builder, shapes in table
        for shape in shapes
    ]


def random_stitches() -> list[Workload]:
    return [
        Workload(
            name=f"random-stitch-{seed}",
            build=partial(random_stitch, seed),
            description=f"random elementwise chain around dependent reductions, seed {seed}",
            suite="random-stitch",
        )
        for seed in SEEDS
    ]

"""The benchmark workloads, by name.

python -m benchmarks.workloads --list
python -m benchmarks.workloads bert-small -o bert-small.onnx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import onnx

from benchmarks.workloads import stitch
from benchmarks.workloads.convolutional import CnnOptions, cnn
from benchmarks.workloads.random_stitches import SEEDS, random_stitch
from benchmarks.workloads.transformers import (
    BertOptions,
    Gpt2Options,
    LlamaOptions,
    bert,
    gpt2_block,
    llama_block,
)

__all__ = [
    "WORKLOADS",
    "BertOptions",
    "CnnOptions",
    "Gpt2Options",
    "LlamaOptions",
    "Workload",
    "WorkloadError",
    "bert",
    "build",
    "cnn",
    "gpt2_block",
    "llama_block",
    "random_stitch",
]


class WorkloadError(ValueError):
    """A workload was asked for that does not exist."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A named model. `build` returns a fresh, deterministic ModelProto."""

    name: str
    build: Callable[[], onnx.ModelProto]
    description: str
    suite: str


# Token-major activations of a transformer layer and its MLP, and a decode step.
_ROWS = (512, 768)
_WIDE_ROWS = (128, 3072)

_STITCH: tuple[tuple[str, Callable[..., onnx.ModelProto], tuple[Sequence[int], ...]], ...] = (
    ("softmax", stitch.softmax, ((6144, 512), (77, 77, 5), (1, 50257))),
    ("softmax-axis1", partial(stitch.softmax, axis=1), ((16, 197, 768),)),
    ("masked-softmax", stitch.masked_softmax, ((1, 12, 128, 128), (77, 77, 5))),
    ("layer-norm", stitch.layer_norm_op, (_ROWS, (197, 1027))),
    ("layer-norm-decomposed", stitch.layer_norm_chain, (_ROWS, (197, 1027))),
    ("rms-norm", stitch.rms_norm_chain, (_ROWS, (1, 4096))),
    ("bias-residual-layer-norm", stitch.bias_residual_layer_norm, (_ROWS, (1, 128, 768))),
    ("gelu-erf", stitch.gelu_erf_chain, (_WIDE_ROWS,)),
    ("gelu-tanh", stitch.gelu_tanh_chain, (_WIDE_ROWS,)),
    ("silu-product", stitch.silu_product, ((128, 1376),)),
    ("log-softmax", stitch.log_softmax, ((1, 50257), (127, 1003))),
    ("l2-normalise", stitch.l2_normalise, (_ROWS, (1023, 129))),
    ("batch-statistics", stitch.batch_statistics, ((8, 64, 28, 28), (129, 77))),
)


def _models() -> list[Workload]:
    bert_small = BertOptions(layers=2, hidden=128, heads=4, sequence=32, intermediate=512)
    grouped = LlamaOptions(key_value_heads=2)
    rows: list[tuple[str, Callable[[], onnx.ModelProto], str]] = [
        ("bert", bert, "BERT-base encoder, 12 layers, sequence 128, batch 1, f32"),
        ("bert-small", partial(bert, bert_small), "BERT encoder, 2 layers, hidden 128, sequence 32"),
        ("gpt2-block", gpt2_block, "one GPT-2 small block, sequence 128, causal"),
        ("llama-block", llama_block, "one Llama block, hidden 512, 8 heads, sequence 128, SwiGLU"),
        ("llama-block-grouped", partial(llama_block, grouped), "llama-block with 2 key/value heads"),
        ("cnn", cnn, "small residual CNN, 1x3x32x32"),
        ("cnn-64", partial(cnn, CnnOptions(image=64)), "small residual CNN, 1x3x64x64"),
    ]
    return [Workload(name=name, build=build, description=text, suite="models") for name, build, text in rows]


def _stitches() -> list[Workload]:
    return [
        Workload(
            name=f"{name}-{'x'.join(map(str, shape))}",
            build=partial(builder, shape),
            description=f"{name.replace('-', ' ')} on {'x'.join(map(str, shape))}",
            suite="stitch",
        )
        for name, builder, shapes in _STITCH
        for shape in shapes
    ]


def _random_stitches() -> list[Workload]:
    return [
        Workload(
            name=f"random-stitch-{seed}",
            build=partial(random_stitch, seed),
            description=f"random elementwise chain around dependent reductions, seed {seed}",
            suite="random-stitch",
        )
        for seed in SEEDS
    ]


WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (*_models(), *_stitches(), *_random_stitches())
}


def build(name: str) -> onnx.ModelProto:
    """The model of the workload called `name`."""
    if name not in WORKLOADS:
        raise WorkloadError(
            f"no workload is called '{name}'; `python -m benchmarks.workloads --list` names them all"
        )
    return WORKLOADS[name].build()

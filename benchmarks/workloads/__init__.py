"""The benchmark workloads, by name.

python -m benchmarks.workloads --list
python -m benchmarks.workloads bert-small -o bert-small.onnx
"""

from __future__ import annotations

import onnx

from benchmarks.workloads.convolutional import CnnOptions, cnn
from benchmarks.workloads.neural_fields import NerfOptions, nerf
from benchmarks.workloads.random_stitches import random_stitch
from benchmarks.workloads.recommendation import DienOptions, MmoeOptions, dien, mmoe
from benchmarks.workloads.recurrent import (
    RecurrentOptions,
    ScanOptions,
    recurrent,
    selective_scan,
    unrolled_lstm,
)
from benchmarks.workloads.speech import ConformerOptions, RecogniserOptions, conformer_block, recogniser
from benchmarks.workloads.suites import convolutions, models, operators, patterns, products
from benchmarks.workloads.transformers import (
    BertOptions,
    DecodeOptions,
    Gpt2Options,
    LlamaOptions,
    bert,
    gpt2,
    gpt2_block,
    gpt2_decode,
    llama_block,
    state_of,
)
from benchmarks.workloads.vision import SwinOptions, VitOptions, swin, vit
from benchmarks.workloads.workload import Workload, WorkloadError

__all__ = [
    "WORKLOADS",
    "BertOptions",
    "CnnOptions",
    "ConformerOptions",
    "DecodeOptions",
    "DienOptions",
    "Gpt2Options",
    "LlamaOptions",
    "MmoeOptions",
    "NerfOptions",
    "RecogniserOptions",
    "RecurrentOptions",
    "ScanOptions",
    "SwinOptions",
    "VitOptions",
    "Workload",
    "WorkloadError",
    "bert",
    "build",
    "cnn",
    "conformer_block",
    "dien",
    "gpt2",
    "gpt2_block",
    "gpt2_decode",
    "llama_block",
    "mmoe",
    "nerf",
    "random_stitch",
    "recogniser",
    "recurrent",
    "selective_scan",
    "state_of",
    "swin",
    "unrolled_lstm",
    "vit",
]

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        *models.models(),
        *models.recurrent_models(),
        *patterns.patterns(),
        *patterns.random_stitches(),
        *products.gemms(),
        *products.chains(),
        *products.attentions(),
        *convolutions.convolutions(),
        *convolutions.convolutional_networks(),
        *convolutions.layers(),
        *operators.operators(),
    )
}


def build(name: str) -> onnx.ModelProto:
    """Builds the model of the workload called `name`."""
    if name not in WORKLOADS:
        raise WorkloadError(
            f"no workload is called '{name}'; `python -m benchmarks.workloads --list` names them all"
        )
    return WORKLOADS[name].build()

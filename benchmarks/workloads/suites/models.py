"""Models, some of them in smaller sizes, and recurrent models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import onnx

from benchmarks.workloads.convolutional import CnnOptions, cnn
from benchmarks.workloads.neural_fields import nerf
from benchmarks.workloads.recommendation import DienOptions, MmoeOptions, dien, mmoe
from benchmarks.workloads.recurrent import RecurrentOptions, recurrent, selective_scan, unrolled_lstm
from benchmarks.workloads.speech import ConformerOptions, conformer_block, recogniser
from benchmarks.workloads.transformers import (
    BertOptions,
    DecodeOptions,
    LlamaOptions,
    bert,
    gpt2,
    gpt2_block,
    gpt2_decode,
    llama_block,
)
from benchmarks.workloads.vision import swin, vit
from benchmarks.workloads.workload import Workload

_LARGE_MODELS = ("bert", "vit-base", "swin-t", "gpt2", "gpt2-decode", "gpt2-decode-128")


def models() -> list[Workload]:
    bert_small = BertOptions(layers=2, hidden=128, heads=4, sequence=32, intermediate=512)
    grouped = LlamaOptions(key_value_heads=2)
    batch = MmoeOptions(batch=256)
    wide, one = DecodeOptions(batch=128, maximum=128), DecodeOptions(layers=1, maximum=128)
    dense = ConformerOptions(has_convolution=False)
    rows: list[tuple[str, Callable[[], onnx.ModelProto], str]] = [
        ("bert", bert, "BERT-base encoder, 12 layers, sequence 128, batch 1, f32"),
        ("bert-small", partial(bert, bert_small), "BERT encoder, 2 layers, hidden 128, sequence 32"),
        ("gpt2-block", gpt2_block, "one GPT-2 small block, sequence 128, causal"),
        ("gpt2", gpt2, "GPT-2 small on a prompt of 128, without embeddings and vocabulary"),
        ("gpt2-decode", gpt2_decode, "GPT-2 small on one more token, caches of 1024, batch 1"),
        (
            "gpt2-decode-128",
            partial(gpt2_decode, wide),
            "GPT-2 small on one more token, caches of 128, batch 128",
        ),
        ("gpt2-decode-block", partial(gpt2_decode, one), "one layer of gpt2-decode, caches of 128"),
        ("llama-block", llama_block, "one Llama block, hidden 512, 8 heads, sequence 128, SwiGLU"),
        ("llama-block-grouped", partial(llama_block, grouped), "llama-block with 2 key/value heads"),
        ("cnn", cnn, "small residual CNN, 1x3x32x32"),
        ("cnn-64", partial(cnn, CnnOptions(image=64)), "small residual CNN, 1x3x64x64"),
        ("vit-base", vit, "ViT-base on patches of 16, 1x3x224x224"),
        ("swin-t", swin, "Swin-T, windows of 7, 1x3x224x224"),
        ("conformer-block", conformer_block, "one Conformer (M) block, 256 frames"),
        (
            "conformer-block-dense",
            partial(conformer_block, dense),
            "conformer-block without its convolutions",
        ),
        ("nerf", nerf, "MLP of a radiance field, 7 layers 64 wide, 16384 points"),
        ("mmoe", mmoe, "multi-gate mixture of 8 experts, batch 1"),
        ("mmoe-256", partial(mmoe, batch), "multi-gate mixture of 8 experts, batch 256"),
        ("dien", dien, "DIEN's attention and recurrence, unrolled over 16 steps, batch 256"),
    ]
    return [
        Workload(name=name, build=build, description=text, suite="models", is_large=name in _LARGE_MODELS)
        for name, build, text in rows
    ]


def recurrent_models() -> list[Workload]:
    lstm, gru = RecurrentOptions(), RecurrentOptions(op="GRU", layers=2, batch=8)
    both = RecurrentOptions(layers=2, steps=50, hidden=128, batch=4, is_bidirectional=True, has_lengths=True)
    small = RecurrentOptions(layers=2, steps=7, hidden=32)
    rows: list[tuple[str, Callable[[], onnx.ModelProto], str]] = [
        ("lstm", partial(recurrent, lstm), "LSTM of Souffle's table 2: 10 layers, 100 steps, hidden 256"),
        ("lstm-layer", partial(recurrent, replace(lstm, layers=1)), "one layer of lstm"),
        ("lstm-unrolled", partial(unrolled_lstm, lstm), "lstm with nodes for each of its 1000 cells"),
        ("lstm-small", partial(recurrent, small), "LSTM, 2 layers, 7 steps, hidden 32"),
        ("lstm-lengths", partial(recurrent, both), "LSTM in both directions over sequences of 4 lengths"),
        ("gru", partial(recurrent, gru), "GRU, 2 layers, 100 steps, hidden 256, batch 8"),
        ("dien-loop", partial(dien, DienOptions(is_loop=True)), "dien with its recurrence as a loop"),
        ("recogniser", recogniser, "small Deep Speech 2: a convolution, 3 layers of LSTM in both directions"),
        ("selective-scan", selective_scan, "scan of Mamba, 64 steps, 128 channels with states of 16"),
    ]
    return [
        Workload(
            name=name,
            build=build,
            description=text,
            suite="recurrent",
            is_large=name in ("lstm", "lstm-unrolled"),
        )
        for name, build, text in rows
    ]

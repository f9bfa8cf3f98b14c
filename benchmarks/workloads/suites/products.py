"""Products of matrices, chains of two, and attentions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.workloads import contractions
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions
from benchmarks.workloads.workload import Workload

# M, K and N of matmuls
_GEMMS: tuple[tuple[int, int, int], ...] = (
    # BERT's layers, and the same matrix with every number of rows
    *((rows, 768, 768) for rows in (1, 4, 16, 64, 128, 256, 512)),
    (128, 768, 3072),
    (128, 3072, 768),
    (512, 768, 3072),
    # GPT-2: the fused projection of a prompt and of one token, and the vocabulary
    (128, 768, 2304),
    (1, 768, 2304),
    (1, 768, 50257),
    # Llama: prompt and token
    (128, 4096, 4096),
    (1, 4096, 4096),
    (16, 4096, 11008),
    # MLP-Mixer: tokens and channels
    (768, 196, 384),
    (768, 384, 196),
    (196, 768, 3072),
    # Skinny shapes
    (512, 64, 512),
    (512, 512, 64),
    (512, 768, 2),
    (512, 16, 768),
    # Odd shapes
    (77, 321, 123),
    (33, 1027, 65),
    (7, 1000, 1000),
)
# Square matmuls, which fill a GPU
_SQUARE_GEMMS = tuple((size,) * 3 for size in (1024, 2048, 4096))

# batch, M, N, K and L of the paper's table IV
_CHAINS: dict[str, tuple[int, int, int, int, int]] = {
    "g1": (8, 512, 64, 64, 512),
    "g2": (12, 512, 64, 64, 512),
    "g3": (16, 512, 64, 64, 512),
    "g4": (12, 256, 64, 64, 256),
    "g5": (16, 256, 64, 64, 256),
    "g6": (16, 256, 80, 80, 256),
    "g7": (12, 208, 64, 64, 208),
    "g8": (16, 208, 64, 64, 208),
    "g9": (16, 208, 80, 80, 208),
    "g10": (1, 512, 64, 64, 256),
    "g11": (1, 768, 64, 64, 384),
    "g12": (1, 1024, 64, 64, 512),
}

# heads, key-value heads, sequence, head size, causal
_ATTENTIONS: tuple[tuple[int, int, int, int, bool], ...] = (
    (12, 12, 128, 64, True),
    (12, 12, 512, 64, True),
    (8, 2, 512, 64, False),
    (8, 2, 512, 64, True),
    (32, 8, 256, 128, True),
)
# Multiply-adds above which float64 takes too long for a test.
_LARGE_PRODUCT = 1 << 27
# Elements above which a weight is too large for a test
_LARGE_WEIGHT = 1 << 22


def gemms() -> list[Workload]:
    """Returns the suites `gemm` and `gemm-square`."""
    return [*_gemms("gemm", _GEMMS), *_gemms("gemm-square", _SQUARE_GEMMS)]


def _gemms(suite: str, shapes: Sequence[tuple[int, int, int]]) -> list[Workload]:
    kinds = (("dense", contractions.dense, "constant"), ("matmul", contractions.matmul, "given"))
    return [
        Workload(
            name=f"{name}-{rows}x{fan_in}x{fan_out}",
            build=partial(builder, rows, fan_in, fan_out),
            description=f"{rows} rows of {fan_in} by a {which} matrix of {fan_in}x{fan_out}",
            suite=suite,
            is_large=rows * fan_in * fan_out > _LARGE_PRODUCT or fan_in * fan_out > _LARGE_WEIGHT,
        )
        for name, builder, which in kinds
        for rows, fan_in, fan_out in shapes
    ]


def chains() -> list[Workload]:
    workloads = []
    for name, (batch, m, n, k, l) in _CHAINS.items():  # noqa: E741 - the paper's name
        options = ChainOptions(batch=batch, m=m, n=n, k=k, l=l)
        sizes = f"batch {batch}, M {m}, N {n}, K {k}, L {l}"
        is_large = batch * m * l * (k + n) > _LARGE_PRODUCT
        for kind, build in (
            ("chain", contractions.gemm_chain),
            ("softmax-chain", contractions.softmax_chain),
        ):
            workloads.append(
                Workload(
                    name=f"{name}-{kind}",
                    build=partial(build, options),
                    description=f"{kind.replace('-', ' ')}, {sizes}",
                    suite="chains",
                    is_large=is_large,
                )
            )
    return workloads


def attentions() -> list[Workload]:
    workloads = []
    for heads, shared, sequence, size, is_causal in _ATTENTIONS:
        options = AttentionOptions(
            heads=heads, key_value_heads=shared, sequence=sequence, head_size=size, is_causal=is_causal
        )
        kind = "-".join(["causal"] * is_causal + ["grouped"] * (shared < heads) + ["attention"])
        workloads.append(
            Workload(
                name=f"{kind}-{heads}x{sequence}x{size}",
                build=partial(contractions.attention, options),
                description=f"{heads} heads of {size}, {shared} of keys and values, sequence {sequence}",
                suite="chains",
                is_large=2 * heads * sequence * sequence * size > _LARGE_PRODUCT,
            )
        )
    return workloads

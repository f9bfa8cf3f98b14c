"""Flags for IREE's compiler.

The best of IREE's flags were measured on one layer of BERT-base (sequence 128), a GPT-2 block, a Llama block and a
CNN, on two cores with AVX-512 (Zen 5), in f32, in turn. The medians in ms are:

    flags                                      BERT 1 thread   GPT-2 1   Llama 1   CNN 1
    (none)                                         14.5          16.1       8.3     0.52
    data tiling                                     9.5          10.3       4.5     0.52
    data tiling + aggressive fusion                 9.4         fails       4.5     0.52
    data tiling + ukernels=all                     10.0          10.4       4.9     0.52
    data tiling + opt-level O2 or O3               14.1         fails     fails     0.52
    opt-level O3                                   17.2         fails       8.5     0.52
    llvm-ukernels=all (with O3)                    14.0         fails     fails     0.52
    inner-tiled (with O3)                         fails         fails     fails    fails

So data tiling alone is the default, for Tilewright and for IREE as a peer; `tilewright.compare.comparison` also tries
the two runners-up for each model and takes the fastest. Data tiling is switched off, with a note, for models that IREE
cannot compile with it or would compute wrongly (`iree.faults`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.iree.faults import DATA_TILING
from tilewright.records.kinds import CPU, CUDA
from tilewright.records.targets import Target

_IREE_CUDA_TARGETS = {"sm_90": "sm_89"}
"""The capability for which IREE compiles its own kernels if it does not know the target's."""


def iree_flags(target: Target, *, host: bool, extra: Sequence[str] = ()) -> list[str]:
    """Returns flags for IREE's compiler: the target, its best optimisations, and the user's flags, which override
    them."""
    return merge_flags(_FLAGS[target.kind](target, is_host=host), extra)


def _flags_of_cuda(target: Target, *, is_host: bool) -> list[str]:
    return [
        "--iree-hal-target-device=cuda",
        f"--iree-cuda-target={_IREE_CUDA_TARGETS.get(target.cpu, target.cpu)}",
        "--iree-input-demote-f64-to-f32=false",
    ]


def _flags_of_processors(target: Target, *, is_host: bool) -> list[str]:
    flags = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        # By default IREE computes f64 in f32, and a program of an ONNX model then fails when it is called.
        "--iree-input-demote-f64-to-f32=false",
    ]
    if "+fma" in target.features.split(","):
        # Without FMA, IREE's kernels for tiled data call a function for every product.
        flags.append(DATA_TILING)
    if is_host:
        flags.append("--iree-llvmcpu-target-cpu=host")
    else:
        flags += [f"--iree-llvmcpu-target-cpu={target.cpu or 'generic'}"]
        if target.features:
            flags.append(f"--iree-llvmcpu-target-cpu-features={target.features}")
    return flags


_FLAGS = {CPU: _flags_of_processors, CUDA: _flags_of_cuda}
"""Functions that make the flags, by the kind of the target."""


def merge_flags(flags: Sequence[str], extra: Sequence[str]) -> list[str]:
    """Returns both lists merged: if both set a flag, the second wins, because IREE refuses a repeated flag."""
    chosen = {flag.partition("=")[0]: flag for flag in [*flags, *extra]}
    # A disabled switch is removed, which means the same to IREE.
    return [flag for flag in chosen.values() if flag != f"{DATA_TILING}=false"]

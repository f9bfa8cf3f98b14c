"""Flags for IREE's compiler.

Which of IREE's flags are its best was measured on one layer of BERT-base (sequence 128), a GPT-2 block, a
Llama block and a CNN, on two cores with AVX-512 (Zen 5), f32, in turn, medians in ms:

    flags                                      BERT 1 thread   GPT-2 1   Llama 1   CNN 1
    (none)                                         14.5          16.1       8.3     0.52
    data tiling                                     9.5          10.3       4.5     0.52
    data tiling + aggressive fusion                 9.4         fails       4.5     0.52
    data tiling + ukernels=all                     10.0          10.4       4.9     0.52
    data tiling + opt-level O2 or O3               14.1         fails     fails     0.52
    opt-level O3                                   17.2         fails       8.5     0.52
    llvm-ukernels=all (with O3)                    14.0         fails     fails     0.52
    inner-tiled (with O3)                         fails         fails     fails    fails

So data tiling alone is the default, here and for IREE as a peer; `tilewright.compare.comparison` also tries the two
runners-up per model and takes the fastest. Where IREE cannot compile a model with data tiling, or would compute
it wrongly (`iree.faults`), it is switched off and noted.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.iree.faults import DATA_TILING
from tilewright.records.targets import Target

_IREE_CUDA_TARGETS = {"sm_90": "sm_89"}
"""What IREE compiles its own kernels for where it does not know our capability."""


def iree_flags(target: Target, *, host: bool, extra: Sequence[str] = ()) -> list[str]:
    """Flags for IREE's compiler: the target, its best optimisations, and the user's own, which win."""
    if target.backend == "cuda":
        flags = [
            "--iree-hal-target-device=cuda",
            f"--iree-cuda-target={_IREE_CUDA_TARGETS.get(target.cpu, target.cpu)}",
            "--iree-input-demote-f64-to-f32=false",
        ]
        return merge_flags(flags, extra)
    flags = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        # By default IREE computes f64 in f32, and with an ONNX model it then fails when it is called.
        "--iree-input-demote-f64-to-f32=false",
    ]
    if "+fma" in target.features.split(","):
        # Without FMA, IREE's kernels for tiled data call a function for every product.
        flags.append(DATA_TILING)
    if host:
        flags.append("--iree-llvmcpu-target-cpu=host")
    else:
        flags += [f"--iree-llvmcpu-target-cpu={target.cpu or 'generic'}"]
        if target.features:
            flags.append(f"--iree-llvmcpu-target-cpu-features={target.features}")
    return merge_flags(flags, extra)


def merge_flags(flags: Sequence[str], extra: Sequence[str]) -> list[str]:
    """Both lists; where both set a flag, the second wins. IREE refuses a flag that is given twice."""
    chosen = {flag.partition("=")[0]: flag for flag in [*flags, *extra]}
    # A disabled switch is left out: to IREE the two mean the same.
    return [flag for flag in chosen.values() if flag != f"{DATA_TILING}=false"]

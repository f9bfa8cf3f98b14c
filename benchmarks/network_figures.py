"""Prints figures of convolutional networks that need no GPU: `python -m benchmarks.network_figures`."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Sequence
from dataclasses import dataclass

import click
import onnx
import tilewright
from onnx import ModelProto, NodeProto, helper
from tilewright.errors import TilewrightError

from benchmarks.flops import products_of, shapes_of
from benchmarks.tables import table
from benchmarks.workloads import WORKLOADS

FEWEST_CHANNELS = 16
"""Channels of a group from which on a convolution is expected to run on tensor cores."""


@dataclass(frozen=True, kw_only=True)
class TensorShare:
    """Multiply-adds of a model's convolutions that have at least `FEWEST_CHANNELS` channels per group."""

    tensor: int
    """Those of convolutions that tensor instructions compute."""
    total: int
    others: tuple[str, ...]
    """Results of the convolutions that other instructions compute, or IREE."""

    @property
    def share(self) -> float:
        return self.tensor / self.total if self.total else 1.0


def tensor_share(model: ModelProto, program: tilewright.Program) -> TensorShare:
    """Counts the multiply-adds of convolutions that `program`'s plan computes with `mma` or `wgmma` instructions."""
    kernels = {
        op.location: op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel
    }
    shapes = shapes_of(model)
    tensor, total, others = 0, 0, []
    for node in model.graph.node:
        if node.op_type != "Conv" or _channels_per_group(node, shapes[node.input[1]]) < FEWEST_CHANNELS:
            continue
        count = products_of(node, shapes)
        total += count
        if kernels.get(node.output[0], "").startswith(("mma", "wgmma")):
            tensor += count
        else:
            others.append(node.output[0])
    return TensorShare(tensor=tensor, total=total, others=tuple(others))


def _channels_per_group(node: NodeProto, weight: Sequence[int]) -> int:
    """Returns the fewer of a group's input channels and filters."""
    groups = next((helper.get_attribute_value(a) for a in node.attribute if a.name == "group"), 1)
    return min(weight[1], weight[0] // groups)


def figures(name: str, dtype: str, target: str) -> list[str]:
    """Compiles a workload and returns the cells of its row."""
    model = onnx.shape_inference.infer_shapes(WORKLOADS[name].in_type(dtype).build())
    started = time.perf_counter()
    try:
        program = tilewright.compile(model, target, tuning=False, cache=False)
    except TilewrightError as failure:
        return [name, failure.message, *[""] * 6]
    seconds = time.perf_counter() - started
    left = [op for op in program.metadata.report.left_to_iree if op.is_dispatch]
    resources = program.metadata.resources
    spills = sum(kernel.spill_bytes for kernel in resources.values()) if resources else None
    share = tensor_share(model, program)
    return [
        name,
        str(len(program.kernels)),
        ", ".join(f"{op.op} ({op.location})" for op in left),
        f"{share.share:.1%}" if share.total else "",
        "unknown" if spills is None else str(spills),
        f"{sum(kernel.predicted_seconds for kernel in program.kernels) * 1e6:.1f}",
        f"{sum(kernel.predicted_bytes for kernel in program.kernels) / 1e6:.1f}",
        f"{seconds:.1f}",
    ]


@click.command()
@click.option("--dtype", default="f16", show_default=True, help="Element type.")
@click.option("--target", default="cuda:h200", show_default=True, help="Target to compile for.")
@click.option("--suite", default="networks", show_default=True, help="Suite of workloads.")
@click.option("--pattern", default="*", show_default=True, help="Workloads of the suite.")
def main(dtype: str, target: str, suite: str, pattern: str) -> None:
    """Print kernels, what stays with IREE, use of tensor cores, spills and compile times of a suite's workloads."""
    names = [w.name for w in WORKLOADS.values() if w.suite == suite and fnmatch.fnmatch(w.name, pattern)]
    header = [
        "network",
        "kernels",
        "with IREE",
        "on tensor cores",
        "spilled bytes",
        "predicted, µs",
        "MB",
        "compile, s",
    ]
    rows = []
    for name in names:
        rows.append(figures(name, dtype, target))
        click.echo(" ".join(rows[-1]), err=True)
    click.echo(table(header, rows))


if __name__ == "__main__":
    main()

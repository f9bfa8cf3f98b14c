"""Convolutions that run in GPU kernels on the simulated device, which checks their safety and traffic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import tilewright
from simulated_products import DTYPES, TYPES
from tilewright.records.signature import Array
from tilewright.simulator.programs import SimulatedRun, simulate_program

from benchmarks.workloads.builder import GraphBuilder

_SMALL_BYTES = 256
"""Bytes by which the sectors that a kernel moves may exceed the elements of small tensors."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A convolution of an image with two or another number of dims; `groups` 0: depthwise."""

    image: tuple[int, ...] = (9, 11)
    window: tuple[int, ...] = (3, 3)
    batch: int = 1
    channels: int = 16
    filters: int = 24
    groups: int = 1
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, ...] = ()
    """Before and after each image dim, as ONNX has them; empty: none."""
    element: str = "f16"
    is_transposed: bool = False

    def model(self) -> onnx.ModelProto:
        g = GraphBuilder("convolution")
        kind, rank, groups = TYPES[self.element], len(self.image), self.groups or self.channels
        pads = self.pads or (0,) * (2 * rank)
        x = g.input("x", (self.batch, self.channels, *self.image), kind)
        own, other = self.filters, self.channels
        if self.is_transposed:
            own, other = other, own
        # The weights of a transposed convolution are laid out once if they are constant.
        w = (
            g.constant(self._arrays()[1])
            if self.is_transposed
            else g.input("w", (own, other // groups, *self.window), kind)
        )
        b = g.input("b", (self.filters,), kind)
        y = g.op(
            "ConvTranspose" if self.is_transposed else "Conv", x, w, b, group=groups,
            kernel_shape=list(self.window), strides=[self.stride] * rank, dilations=[self.dilation] * rank,
            pads=list(pads),
        )  # fmt: skip
        size = []
        for i, (extent, window) in enumerate(zip(self.image, self.window, strict=True)):
            around, reach = pads[i] + pads[rank + i], self.dilation * (window - 1) + 1
            if self.is_transposed:
                size.append((extent - 1) * self.stride + reach - around)
            else:
                size.append((extent + around - reach) // self.stride + 1)
        g.output(g.op("Relu", y), (self.batch, self.filters, *size), kind)
        return g.build()

    def inputs(self) -> list[Array]:
        x, w, b = self._arrays()
        return [x, b] if self.is_transposed else [x, w, b]

    def _arrays(self) -> list[Array]:
        rng = np.random.default_rng(7)
        groups = self.groups or self.channels
        own, other = (self.channels, self.filters) if self.is_transposed else (self.filters, self.channels)
        shapes = (
            (self.batch, self.channels, *self.image),
            (own, other // groups, *self.window),
            (self.filters,),
        )
        return [rng.standard_normal(shape).astype(DTYPES[self.element]) for shape in shapes]


def simulated(
    model: onnx.ModelProto, inputs: list[Array], folder: Path
) -> tuple[tilewright.Program, SimulatedRun]:
    """Runs a program that has to be wholly ours; raises if a kernel has a bug, or moves more than the plan says."""
    program = tilewright.compile(model, "cuda:h200", dump_dir=folder)
    ran = simulate_program(program, folder, inputs)
    assert ran.invented == ()
    assert_traffic_is_planned(program, ran)
    # Filters that are turned around are constants.
    left = [op for op in program.metadata.report.left_to_iree if "constants alone" not in op.reason]
    assert not any(op.operations for op in left), program.explain()
    return program, ran


def assert_traffic_is_planned(program: tilewright.Program, ran: SimulatedRun) -> None:
    """Compares bytes past the L2 with the plan, which counts each tensor once for a kernel that touches it."""
    past = sum(kernel.dram_bytes_read + kernel.dram_bytes_written for kernel in ran.kernels)
    planned = sum(kernel.predicted_bytes for kernel in program.kernels)
    assert past <= 1.1 * planned + _SMALL_BYTES * len(ran.kernels)

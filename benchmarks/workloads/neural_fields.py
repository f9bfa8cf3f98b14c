"""The MLP of a neural radiance field: many points, narrow layers."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.workloads.builder import GraphBuilder


@dataclass(frozen=True, kw_only=True)
class NerfOptions:
    """Sizes of the MLP; the defaults are six hidden layers of 64, as in fully fused MLPs."""

    points: int = 16384
    width: int = 64
    layers: int = 6
    seed: int = 0


def nerf(options: NerfOptions = NerfOptions()) -> onnx.ModelProto:
    """Builds an MLP of equally wide layers from encoded points to three colours."""
    o = options
    g = GraphBuilder("nerf", seed=o.seed)
    x = g.input("points", (o.points, o.width))
    for _ in range(o.layers):
        # A relu halves the mean square of its input.
        x = g.op("Relu", g.op("MatMul", x, g.weight((o.width, o.width), fan_in=o.width // 2)))
    g.output(g.op("MatMul", x, g.weight((o.width, 3), fan_in=o.width)), (o.points, 3))
    return g.build()

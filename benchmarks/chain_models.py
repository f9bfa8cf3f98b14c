"""The chains of Chimera's tables as whole models and as one model per operator: two batched matmuls (Table IV) and two
convolutions (Table V)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.convolutional import ConvolutionChainOptions, convolution_chain, operators_of
from benchmarks.workloads.suites.convolutions import convolution_chains


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The chain [batch, m, k] x [batch, k, inner], an optional softmax, x [batch, inner, n]. `inner` is the paper's
    L."""

    name: str
    batch: int
    m: int
    n: int
    k: int
    inner: int
    softmax: bool = False

    def whole(self) -> onnx.ModelProto:
        g = GraphBuilder(self.name)
        a, b, d = (g.input(name, shape) for name, shape in self._inputs().items())
        c = g.op("MatMul", a, b)
        g.output(
            g.op("MatMul", g.op("Softmax", c, axis=-1) if self.softmax else c, d), self._shape(self.m, self.n)
        )
        return g.build()

    def operators(self) -> list[onnx.ModelProto]:
        """Returns one model per operator, in order."""
        models = []
        inputs = self._inputs()
        between = self._shape(self.m, self.inner)
        g = GraphBuilder(f"{self.name}_first")
        g.output(g.op("MatMul", g.input("a", inputs["a"]), g.input("b", inputs["b"])), between)
        models.append(g.build())
        if self.softmax:
            g = GraphBuilder(f"{self.name}_softmax")
            g.output(g.op("Softmax", g.input("c", between), axis=-1), between)
            models.append(g.build())
        g = GraphBuilder(f"{self.name}_second")
        g.output(
            g.op("MatMul", g.input("c", between), g.input("d", inputs["d"])), self._shape(self.m, self.n)
        )
        models.append(g.build())
        return models

    def _inputs(self) -> dict[str, list[int]]:
        sides = {"a": (self.m, self.k), "b": (self.k, self.inner), "d": (self.inner, self.n)}
        return {name: self._shape(*shape) for name, shape in sides.items()}

    def _shape(self, rows: int, columns: int) -> list[int]:
        return [self.batch, rows, columns]


@dataclass(frozen=True, kw_only=True)
class ConvolutionChain:
    """Two convolutions, perhaps with a ReLU between them."""

    name: str
    options: ConvolutionChainOptions

    def whole(self) -> onnx.ModelProto:
        return convolution_chain(self.options)

    def operators(self) -> list[onnx.ModelProto]:
        """Returns one model per operator, in order."""
        return operators_of(self.options)


_TABLE = (
    *(("G1", 8, 512, 64, 64, 512), ("G2", 12, 512, 64, 64, 512), ("G3", 16, 512, 64, 64, 512)),
    *(("G4", 12, 256, 64, 64, 256), ("G5", 16, 256, 64, 64, 256), ("G6", 16, 256, 80, 80, 256)),
    *(("G7", 12, 208, 64, 64, 208), ("G8", 16, 208, 64, 64, 208), ("G9", 16, 208, 80, 80, 208)),
    *(("G10", 1, 512, 64, 64, 256), ("G11", 1, 768, 64, 64, 384), ("G12", 1, 1024, 64, 64, 512)),
)

CHAINS: tuple[Chain, ...] = tuple(
    Chain(
        name=name + ("-softmax" if softmax else ""), batch=batch, m=m, n=n, k=k, inner=inner, softmax=softmax
    )
    for softmax in (False, True)
    for name, batch, m, n, k, inner in _TABLE
)


CONVOLUTION_CHAINS: tuple[ConvolutionChain, ...] = tuple(
    ConvolutionChain(name=name.replace("c", "C", 1), options=options)
    for name, options in convolution_chains().items()
)


def convolutions_named(names: Sequence[str]) -> list[ConvolutionChain]:
    """Returns those of the named chains that are convolutions, such as C1 or C1-relu."""
    return [chain for chain in CONVOLUTION_CHAINS if chain.name in names]


def chains_named(names: Sequence[str]) -> list[Chain]:
    """Returns the chains with these names, such as G2 or G2-softmax; raises ValueError that lists unknown ones."""
    known = {chain.name: chain for chain in CHAINS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown chains {', '.join(unknown)}; known: {', '.join(known)}")
    return [known[name] for name in names]

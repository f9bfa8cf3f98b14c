"""Kinds of random graphs, by their name for `python -m fuzz --kind`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnx import ModelProto
from tilewright.reference.oracle import random_inputs

from fuzz.builder import Array
from fuzz.graphs import pairs, random_graph
from fuzz.metamorphic import random_twins
from fuzz.wide import random_dynamic, random_special, random_wide, special_inputs
from fuzz.windows import random_windows


@dataclass(frozen=True)
class Kind:
    """A kind of random graphs, and the values of their inputs."""

    graph: Callable[[int], ModelProto]
    pairs: tuple[tuple[str, str], ...] = ()
    """Operators and types that occur in many graphs."""
    is_special: bool = False
    """True if inputs hold NaN, infinities and other special values."""

    has_twins: bool = False
    """True if each output is followed by another one that must equal it."""

    def inputs(self, model: ModelProto, seed: int) -> list[Array]:
        """Returns inputs of a graph with known sizes."""
        drawn = random_inputs(model, seed)
        return special_inputs(model, drawn, seed) if self.is_special else drawn


KINDS: Mapping[str, Kind] = {
    "all": Kind(random_graph, pairs()),
    "windows": Kind(random_windows),
    "wide": Kind(random_wide),
    "dynamic": Kind(random_dynamic),
    "twins": Kind(random_twins, has_twins=True),
    "special": Kind(random_special, is_special=True),
}
"""All kinds by name."""

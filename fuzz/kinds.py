"""Kinds of random graphs, by their name for `python -m fuzz --kind`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto

from fuzz.graphs import random_graph
from fuzz.windows import random_windows

KINDS: Mapping[str, Callable[[int], ModelProto]] = {"all": random_graph, "windows": random_windows}
"""Functions that return the graph of a seed."""

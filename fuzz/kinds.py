"""The kinds of random graphs that there are, by the name that `python -m fuzz --kind` has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto

from fuzz.graphs import random_graph
from fuzz.windows import random_windows

KINDS: Mapping[str, Callable[[int], ModelProto]] = {"all": random_graph, "windows": random_windows}
"""Each gives the graph of a seed."""

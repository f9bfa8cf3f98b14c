"""The kinds of random graphs that there are, by the name that `tilewright fuzz --kind` has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto

from tilewright.fuzz.graphs import random_graph
from tilewright.fuzz.windows import random_windows

KINDS: Mapping[str, Callable[[int], ModelProto]] = {"all": random_graph, "windows": random_windows}
"""Each gives the graph of a seed."""

"""The order in which a parallel run begins the files of tests.

A process of pytest-xdist runs all tests of a file, so a long file that begins last leaves the other processes idle.
`scripts/test.sh` therefore keeps this order (`--no-loadscope-reorder`): files with slow tests, then those with many.
"""

from __future__ import annotations

from collections import Counter

import pytest

_SLOW = (
    "test_docs.py",
    "test_op_table.py",
    "test_open_dims.py",
    "test_iree_flags.py",
    "test_tuning_decisions.py",
    "test_benchmark_peers.py",
    "test_recurrent_ops.py",
    "test_convolution_networks.py",
    "test_cli_run.py",
    "test_gpu_check.py",
    "test_onnx_node_tests.py",
    "test_random_graphs.py",
    "test_edges.py",
    "test_simulated_traffic.py",
    "test_cuda.py",
    "test_examples.py",
)
"""Files that take more than half a minute of a processor with few tests, the longest first."""


def slow_files_first(items: list[pytest.Item]) -> None:
    """Sorts tests by file, and leaves those of a file in order."""
    tests = Counter(item.path for item in items)
    place = {name: number for number, name in enumerate(_SLOW)}

    def key(item: pytest.Item) -> tuple[int, int, str]:
        return place.get(item.path.name, len(_SLOW)), -tests[item.path], str(item.path)

    items.sort(key=key)

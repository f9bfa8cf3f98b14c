"""Compiles with the slow systems ahead of time, in several processes at once, into caches that the timed processes use.

PyTorch then tunes its kernels on a GPU that other processes use as well; for PyTorch's best kernels, use one process.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.client import Client, PeerError

Work = tuple[str, Mapping[str, Any]]
"""A system and the workload that it compiles."""


def share_caches(folder: Path) -> None:
    """Makes the systems use caches of this check alone, so that it neither fills nor uses other caches."""
    os.environ.update(
        TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"), TRITON_CACHE_DIR=str(folder / "triton")
    )


def compile_ahead(
    work: Iterable[Work],
    *,
    processes: int,
    client: Callable[[str], Client],
    folder: Path,
    limit: Callable[[], float],
) -> None:
    """Compiles and runs each workload once; failures are ignored, because they repeat when the workload is timed."""
    waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
    for item in work:
        waiting.put(item)
    threads = [
        threading.Thread(target=_work, args=(waiting, client, folder, limit)) for _ in range(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _work(
    waiting: queue.SimpleQueue[Work],
    client: Callable[[str], Client],
    folder: Path,
    limit: Callable[[], float],
) -> None:
    with ExitStack() as stack:
        own: dict[str, Client] = {}
        while limit() > 0:
            try:
                name, entry = waiting.get_nowait()
            except queue.Empty:
                return
            if name not in own:
                own[name] = stack.enter_context(client(name))
            try:
                own[name].ask("check", limit=limit(), folder=str(folder / entry["folder"]), entry=sent(entry))
            except PeerError:
                own[name].stop()


def sent(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a workload's entry that a system receives."""
    return {key: value for key, value in entry.items() if key != "suite"}

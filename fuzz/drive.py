"""Thread pool in which each thread works with a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar


class Closeable(Protocol):
    """A process that starts at its first request."""

    def close(self) -> None: ...


Item = TypeVar("Item")
Process = TypeVar("Process", bound=Closeable)
Result = TypeVar("Result")


def drive(
    items: Iterable[Item],
    work: Callable[[Item, Process], Result],
    *,
    jobs: int,
    process: Callable[[], Process],
    done: Callable[[Result], None],
) -> None:
    """Works on all items; `done` receives the results in the order of the items. All processes are closed at the end,
    even after an error."""
    local = threading.local()
    processes: list[Process] = []

    def worked(item: Item) -> Result:
        if not hasattr(local, "process"):
            local.process = process()
            processes.append(local.process)
        return work(item, local.process)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            for result in pool.map(worked, items):
                done(result)
        finally:
            pool.shutdown(cancel_futures=True)
            for each in processes:
                each.close()

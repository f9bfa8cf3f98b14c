"""Exclusive use of a shared machine while measuring."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def alone(command: Sequence[str]) -> Iterator[None]:
    """Context manager that holds the machine by a command such as `flock /tmp/machine.lock sh -c 'echo; cat'`.

    The command prints a line when it has the lock and keeps it until its input ends. It works if everybody takes that
    lock. An empty command holds nothing.
    """
    if not command:
        yield
        return
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        try:
            if not holder.stdout.readline():
                raise ChildProcessError(f"'{command[0]}' ended before the machine was free")
            yield
        finally:
            holder.stdin.close()

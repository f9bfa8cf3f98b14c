"""Time on a machine that others use as well."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def alone(command: Sequence[str]) -> Iterator[None]:
    """Holds the machine for a block, by a command that prints a line when it has it and keeps it until its input ends.

    Such as `flock /tmp/machine.lock sh -c 'echo; cat'`, where everybody takes that lock. No command: holds nothing.
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

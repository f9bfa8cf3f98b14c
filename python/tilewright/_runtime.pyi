"""The extension module that runs kernels without IREE: thin, and private. See `runtime.direct`."""

from collections.abc import Sequence
from typing import Any

class Memory:
    """The memory of a result, which it lends to numpy."""

class Library:
    @staticmethod
    def load(elf: Any) -> Library: ...
    def has(self, kernel: str) -> bool: ...

class DirectProgram:
    def __init__(
        self,
        library: Library,
        *,
        launches: Sequence[tuple[str, int, Sequence[int]]],
        input_bytes: Sequence[int],
        output_bytes: Sequence[int],
        constants: Sequence[int],
        offsets: Sequence[int],
        own_bytes: int,
        local_bytes: int,
        processor: int,
        threads: int,
    ) -> None: ...
    def run(self, *arrays: Any) -> list[Any]: ...
    def trace(self, *arrays: Any) -> list[list[tuple[float, float]]]: ...
    def run_addresses(self, inputs: Sequence[int], outputs: Sequence[int]) -> None: ...

"""The extension module that runs kernels without IREE: thin, and private. See `runtime.direct`."""

from collections.abc import Sequence

class Memory:
    pass

class Library:
    @staticmethod
    def load(elf: object) -> Library: ...
    def has(self, kernel: str) -> bool: ...

class DirectProgram:
    def __init__(
        self,
        library: Library,
        *,
        launches: Sequence[tuple[str, int, Sequence[int], int]],
        loops: Sequence[tuple[int, int, int, Sequence[tuple[int, int, int, int, int, int, int]]]],
        input_bytes: Sequence[int],
        output_bytes: Sequence[int],
        constants: Sequence[int],
        offsets: Sequence[int],
        own_bytes: int,
        local_bytes: int,
        processor: int,
        threads: int,
    ) -> None: ...
    def run(self, *arrays: object) -> list[Memory]: ...
    def trace(self, *arrays: object) -> list[list[tuple[float, float]]]: ...
    def run_addresses(self, inputs: Sequence[int], outputs: Sequence[int]) -> None: ...

"""The extension module that runs kernels without IREE: thin, and private. See `runtime.direct`."""

from collections.abc import Mapping, Sequence

class Memory:
    pass

class Library:
    @staticmethod
    def load(elf: object) -> Library: ...
    def has(self, kernel: str) -> bool: ...

class InputForms:
    def __init__(self, forms: Sequence[tuple[str, Sequence[int]]]) -> None: ...

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
    def run_lent(self, forms: InputForms, *arrays: object) -> list[Memory] | None: ...
    def trace(self, *arrays: object) -> list[list[tuple[float, float]]]: ...
    def run_addresses(self, inputs: Sequence[int], outputs: Sequence[int]) -> None: ...

class CudaProgram:
    def __init__(
        self,
        *,
        driver: Mapping[str, int],
        context: int,
        kernels: Sequence[tuple[int, int, int, bool]],
        launches: Sequence[tuple[str, int, Sequence[int], int]],
        loops: Sequence[tuple[int, int, int, Sequence[tuple[int, int, int, int, int, int, int]]]],
        input_bytes: Sequence[int],
        output_bytes: Sequence[int],
        constants: Sequence[int],
        offsets: Sequence[int],
        own: int,
        done: int,
    ) -> None: ...
    def run(self, inputs: Sequence[int], outputs: Sequence[int], stream: int) -> None: ...
    def run_on_host(self, placed: Sequence[int], stream: int, *arrays: object) -> list[Memory]: ...
    def trace_on_host(
        self, placed: Sequence[int], stream: int, marks: Sequence[int], *arrays: object
    ) -> list[tuple[float, float]]: ...
    def launch_graph(self, graph: int, stream: int) -> None: ...

def lend_cuda(
    owner: object, address: int, shape: Sequence[int], code: int, bits: int, device: int
) -> object: ...

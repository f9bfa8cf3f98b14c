"""Programs as one file each, for applications in C: what to launch, the code, and weights as kernels read them.

`runtime/ProgramFile.h` describes the format, and reads it; `runtime/include/tilewright/runtime.h` runs it.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from tilewright.errors import ProgramError
from tilewright.records.signature import TensorSpec, element_dtype
from tilewright.runtime.constants import Constants
from tilewright.runtime.direct import find_library
from tilewright.runtime.held import HeldFile
from tilewright.runtime.launch_loops import ALIGNMENT
from tilewright.runtime.launches import LaunchPlan, shape_of, size_of
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.processor import linux_name, missing_features, needed_features
from tilewright.runtime.slots import MovingSlot, SlottedPlan, assign_slots

_MAGIC = b"tilewrt\1"
"""The last byte is the version of the format."""

_HEADER = "<8sIIQQ"
"""Magic, CRC-32 of description and code, zero, end of the code, and size of the file."""

_T = TypeVar("_T")


def exported(
    metadata: Metadata, module: HeldFile, weights: Mapping[str, HeldFile]
) -> Iterator[bytes | memoryview]:
    """Yields the parts of the file. Raises `ProgramError` if IREE is needed to run the program."""
    plan, signature = metadata.launches, metadata.signature
    in_process = metadata.kind.in_process
    if (
        not in_process
        or plan is None
        or signature is None
        or any(spec.has_default for spec in signature.inputs)
    ):
        reason, hint = _refusal(metadata)
        raise ProgramError(f"it cannot be exported: {reason}", where=metadata.entry, hint=hint)
    if plan.at_load and (missing := missing_features(metadata.features)):
        raise ProgramError(
            f"it cannot be exported here: values that depend on weights alone are computed by code for "
            f"{metadata.target}, and this machine lacks {', '.join(missing)}",
            where=metadata.entry,
            hint="export it on a machine that can run it",
        )
    slotted = assign_slots(plan, len(signature.inputs))
    constants = Constants(plan, module, weights)
    code = _code(module, plan)
    sizes = [_bytes_of(plan, number) for number in slotted.constants]
    # The description has a fixed length, whatever its numbers are.
    length = len(_description(metadata, plan, slotted, [0] * len(sizes), code))
    end = struct.calcsize(_HEADER) + length + len(code)
    places, total = _places(sizes, end)
    described = _description(metadata, plan, slotted, places, code)
    yield struct.pack(_HEADER, _MAGIC, zlib.crc32(described + code), 0, end, total)
    yield described
    yield code
    position = end
    for number, place, size in zip(slotted.constants, places, sizes, strict=True):
        yield bytes(place - position)
        yield np.ascontiguousarray(constants.get(number)).reshape(-1).view(np.uint8).data
        position = place + size
    for file in weights.values():
        if file.is_mapped:
            file.check()  # a file that changed meanwhile may have affected what was written


def _refusal(metadata: Metadata) -> tuple[str, str]:
    """Returns why only IREE can run a program, and what to do."""
    inputs = metadata.signature.inputs if metadata.signature else ()
    if not all(isinstance(size, int) for spec in inputs for size in spec.shape):
        return "its shapes are open", "give sizes for all dims when you compile it (dims=, --dims)"
    if not metadata.kind.in_process:
        reason = "it runs on a GPU"
    elif metadata.state:
        reason = "it has state"
    elif any(spec.has_default for spec in inputs):
        reason = "an input has a default"
    else:
        reason = "IREE computes a part of it (`tilewright explain` says which)"
    return reason, "save it, and run the .vmfb with IREE (docs/guide/deploy.md)"


def _places(sizes: Sequence[int], end: int) -> tuple[list[int], int]:
    """Returns the offset of each constant in the file, and the file's size."""
    places = []
    for size in sizes:
        place = -(-end // ALIGNMENT) * ALIGNMENT
        places.append(place)
        end = place + size
    return places, end


def _bytes_of(plan: LaunchPlan, number: str) -> int:
    tensor = plan.constants[number]
    return int(math.prod(tensor["shape"]) * element_dtype(tensor["element"]).itemsize)


def _description(
    metadata: Metadata, plan: LaunchPlan, slotted: SlottedPlan, places: Sequence[int], code: bytes
) -> bytes:
    assert metadata.signature is not None
    sizes = [_bytes_of(plan, number) for number in slotted.constants]
    parts = [
        _text(metadata.target),
        _list([linux_name(feature) for feature in needed_features(metadata.features)], _text),
        _list(plan.processor_bits.items(), lambda item: _text(linux_name(item[0])) + _u32(item[1])),
        _list(metadata.signature.inputs, lambda spec: _tensor(spec, spec.numpy_dtype.alignment)),
        _list(metadata.signature.outputs, lambda spec: _tensor(spec, ALIGNMENT)),
        _list(slotted.launches, _launch),
        _list(slotted.loops, _loop),
        _list(zip(places, sizes, strict=True), lambda item: struct.pack("<QQ", *item)),
        struct.pack("<Q", slotted.own_bytes),
        _list(slotted.offsets, lambda offset: struct.pack("<Q", offset)),
        struct.pack("<QIQ", plan.local_bytes, metadata.threads, len(code)),
    ]
    return b"".join(parts)


def _tensor(spec: TensorSpec, alignment: int) -> bytes:
    shape = _list(shape_of(spec), lambda size: struct.pack("<q", size))
    return _text(spec.name) + _text(spec.dtype) + shape + struct.pack("<QI", size_of(spec), alignment)


def _launch(launch: tuple[str, int, list[int], int]) -> bytes:
    kernel, workgroups, slots, size = launch
    return _text(kernel) + _u32(workgroups) + _list(slots, _u32) + struct.pack("<Q", size)


def _loop(loop: tuple[int, int, int, list[MovingSlot]]) -> bytes:
    *numbers, slots = loop
    return struct.pack("<III", *numbers) + _list(slots, lambda slot: struct.pack("<IIIIqqq", *slot))


def _text(text: str) -> bytes:
    data = text.encode()
    return _u32(len(data)) + data


def _u32(number: int) -> bytes:
    return struct.pack("<I", number)


def _list(items: Iterable[_T], write: Callable[[_T], bytes]) -> bytes:
    written = [write(item) for item in items]
    return _u32(len(written)) + b"".join(written)


def _code(module: HeldFile, plan: LaunchPlan) -> bytes:
    """Returns the ELF library with the kernels; its headers say how long it is."""
    start, _ = find_library(module, plan)
    elf = memoryview(module.buffer)[start:]
    (segments, sections), (segment_size, segment_count, section_size, section_count) = (
        struct.unpack_from("<QQ", elf, 0x20),
        struct.unpack_from("<HHHH", elf, 0x36),
    )
    end = sections + section_size * section_count
    for number in range(segment_count):
        offset, size = struct.unpack_from("<Q16xQ", elf, segments + number * segment_size + 8)
        end = max(end, offset + size)
    return bytes(elf[:end])


def c_flags() -> list[str]:
    """Returns the flags with which a C compiler finds the runtime's header and library, and the program the library."""
    package = Path(__file__).absolute().parent.parent
    library = package / "lib"
    return [f"-I{package / 'include'}", f"-L{library}", "-ltilewright_runtime", f"-Wl,-rpath,{library}"]

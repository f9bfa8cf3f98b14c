"""Programs on PyTorch's tensors: inputs and outputs pass through DLPack without a copy where the memory allows it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any

from tilewright.errors import InputError
from tilewright.records.signature import Signature, TensorSpec
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.launches import shape_of
from tilewright.runtime.session import Session

_ALIGNMENT = 64
"""Bytes that IREE wants the memory of an imported buffer to be aligned to."""


class TensorCaller:
    """Calls a program of static or dynamic shapes with tensors in CPU memory and returns new tensors.

    An input is used where it lies if it is contiguous and aligned; otherwise it is copied. The memory of an output is
    the caller's own. IREE may return memory that is not new: an input, a constant or a part of another output. Such
    outputs are found at the first call, which therefore runs the program twice, and are copied from then on.
    """

    def __init__(self, session: Session, signature: Signature, *, fixed: Collection[int] = ()) -> None:
        """`fixed` are the positions of inputs that are nearly always the same memory, such as a module's weights. They
        are kept in place from call to call."""
        self._session, self._signature = session, signature
        self._fixed: dict[int, tuple[int, Any]] = dict.fromkeys(fixed, (0, None))
        """Addresses of such inputs at the last call, and where they are for the program."""
        self._copied: tuple[bool, ...] | None = None
        """For each output, True if its memory is not new."""
        self._lock = threading.Lock()

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """Runs the program on tensors that fit its signature."""
        inputs = [self._find(position, tensor) for position, tensor in enumerate(tensors)]
        if self._copied is None:
            with self._lock:
                if self._copied is None:
                    self._copied = self._find_shared(inputs)
        outputs = self._run(inputs)
        return [
            tensor.clone() if copied else tensor for tensor, copied in zip(outputs, self._copied, strict=True)
        ]

    def _find(self, position: int, tensor: Any) -> Any:
        """Returns a tensor where the program reads it."""
        if position not in self._fixed:
            return self._place(tensor)
        address, placed = self._fixed[position]
        if address != tensor.data_ptr() or not tensor.is_contiguous():
            placed, is_borrowed = self._place(tensor), _can_borrow(tensor)
            # The memory of a borrowed tensor stays alive with it, so that no other one gets its address.
            self._fixed[position] = (tensor.data_ptr() if is_borrowed else 0, placed)
        return placed

    def _place(self, tensor: Any) -> Any:
        tensor = tensor.detach()
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        if _can_borrow(tensor):
            return self._session.borrow(tensor.__dlpack__())
        return self._session.place(as_array(tensor))

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        specs = self._signature.outputs
        results = self._session.step(inputs, len(specs))
        return [_as_tensor(results, index, spec) for index, spec in enumerate(specs)]

    def _find_shared(self, inputs: Sequence[Any]) -> tuple[bool, ...]:
        """Runs the program twice; memory that both runs return, or one returns twice, is not new."""
        first, second = self._run(inputs), self._run(inputs)
        shared = []
        for index, tensor in enumerate(first):
            others = [*first[:index], *second]
            # Empty tensors overlap nothing; those of later calls may.
            shared.append(not tensor.numel() or any(_overlap(tensor, other) for other in others))
        return tuple(shared)


class DirectTensorCaller:
    """Calls a program that runs without IREE with tensors in CPU memory and returns new tensors.

    An input is used where it lies if it is contiguous and aligned; otherwise it is copied.
    """

    def __init__(self, session: DirectSession, signature: Signature) -> None:
        import torch

        self._session = session
        self._outputs = [(shape_of(spec), getattr(torch, spec.dtype)) for spec in signature.outputs]

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """Runs the program on tensors that fit its signature."""
        import torch

        inputs = [tensor.resolve_neg().contiguous() for tensor in tensors]
        # PyTorch aligns the memory of tensors to 64 bytes.
        outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in self._outputs]
        self._session.run_at(
            [tensor.data_ptr() for tensor in inputs], [tensor.data_ptr() for tensor in outputs]
        )
        return outputs


def tensor_caller(
    session: Session | DirectSession, signature: Signature, *, fixed: Collection[int] = ()
) -> TensorCaller | DirectTensorCaller:
    """Returns what calls a program with tensors. `fixed` is as for `TensorCaller`."""
    if isinstance(session, DirectSession):
        return DirectTensorCaller(session, signature)
    return TensorCaller(session, signature, fixed=fixed)


def _can_borrow(tensor: Any) -> bool:
    return (
        tensor.data_ptr() % _ALIGNMENT == 0
        and tensor.numel() > 0
        and tensor.is_contiguous()
        and not tensor.is_neg()
    )


def checked_tensor(tensor: Any, spec: TensorSpec, sizes: dict[str, tuple[int, str]]) -> Any:
    """Returns a tensor that fits the spec. Raises `InputError` if it does not.

    `sizes` maps the name of a dim to its size, if known, and the input that gave it; the sizes of this one are added.
    """
    where = f"input '{spec.name}'"
    if tensor.device.type != "cpu":
        raise InputError(f"it is on {tensor.device}, not in CPU memory", where=where, hint="pass x.cpu()")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype != spec.dtype:
        raise InputError(
            f"dtype {dtype} was given but {spec.dtype} is needed",
            where=where,
            hint=f"convert it with .to(torch.{spec.dtype})",
        )
    shape = tuple(tensor.shape)
    fits = len(shape) == len(spec.shape)
    for size, wanted in zip(shape, spec.shape, strict=False):
        known = sizes.setdefault(wanted, (size, spec.name))[0] if isinstance(wanted, str) else wanted
        fits = fits and known in (size, None)
    if not fits:
        dims = ", ".join("?" if d is None else str(sizes.get(str(d), (d,))[0]) for d in spec.shape)
        raise InputError(f"shape {shape} was given but ({dims}) is needed", where=where)
    return tensor


def as_array(tensor: Any) -> Any:
    """Returns a tensor as an array on the same memory, if it is contiguous."""
    import numpy as np

    dtype = TensorSpec("", str(tensor.dtype).removeprefix("torch."), ()).numpy_dtype
    tensor = tensor.detach().contiguous()
    bits = tensor.reshape(-1).view(_bits(tensor.element_size())).numpy()
    return np.asarray(bits).view(dtype).reshape(tuple(tensor.shape))


def _bits(size: int) -> Any:
    import torch

    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}[size]


def _as_tensor(results: Any, index: int, spec: TensorSpec) -> Any:
    """Returns an output as a tensor on the same memory."""
    import torch

    dtype = getattr(torch, spec.dtype)
    view = results.buffer(index)
    if 0 in view.shape or dtype.itemsize > 8:
        array = results.array(index, spec)
        return torch.from_numpy(array) if array.size else torch.empty(array.shape, dtype=dtype)
    return torch.utils.dlpack.from_dlpack(_Capsule(results.lend(index, dtype.itemsize))).view(dtype)


class _Capsule:
    """A DLPack capsule in the form that `torch.from_dlpack` takes."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _overlap(left: Any, right: Any) -> bool:
    starts = left.data_ptr(), right.data_ptr()
    return bool(
        starts[0] < starts[1] + right.numel() * right.element_size()
        and starts[1] < starts[0] + left.numel() * left.element_size()
    )

"""Signatures: names, dtypes and shapes of the inputs and outputs of a program."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.errors import InputError, ModelError

Array = npt.NDArray[Any]

DEFAULTS_SCOPE = "defaults"
"""Scope of the parameter archive with the values of inputs that callers may leave out, by the inputs' names."""

# Maps MLIR element types to numpy's; types without a sign map to signed ones, the default of MLIR's arithmetic.
_ELEMENT_DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "ui64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
}


def element_dtype(element: str) -> np.dtype[Any]:
    """Returns the numpy type of an MLIR element type. Raises `InputError` if there is none."""
    if element not in _ELEMENT_DTYPES:
        raise InputError(f"element type {element} has no numpy type")
    return _ELEMENT_DTYPES[element]


@dataclass(frozen=True)
class TensorSpec:
    """One input or output. A dim is a size, or a name (or None) if the size is known only at run time."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]
    is_scalar: bool = False
    """True for a plain number in the function's interface, as opposed to a tensor of rank 0."""
    is_coded: bool = False
    """True for a type of eight bits or fewer that the program takes as bytes with its bits, because IREE lacks it."""
    has_default: bool = False
    """True for an input that callers may leave out; the program then takes the model's own value."""

    def __str__(self) -> str:
        dims = "x".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name}: {self.dtype}[{dims}]"

    @functools.cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))

    def to_json(self) -> dict[str, Any]:
        flags = {name: True for name in ("is_coded", "has_default") if getattr(self, name)}
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape), **flags}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TensorSpec:
        return TensorSpec(
            data["name"],
            data["dtype"],
            tuple(data["shape"]),
            is_coded=data.get("is_coded", False),
            has_default=data.get("has_default", False),
        )


_LONGEST_REPR = 800
"""Most characters of a signature's repr."""


@dataclass(frozen=True, repr=False)
class Signature:
    """The inputs and outputs of a program, in the order of the model's own graph; inputs with defaults are last."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def check_sizes(self) -> None:
        """Raises `ModelError` for a tensor whose size in bytes may overflow 64 bits, because IREE compiles its ops to
        nothing."""
        for spec in (*self.inputs, *self.outputs):
            sizes = [size for size in spec.shape if isinstance(size, int)]
            if math.prod(sizes) >= 2**60:
                raise ModelError(f"'{spec}' has more elements than can be addressed", hint="check its shape")

    def check_inputs(
        self, arrays: Sequence[Any], *, sizes: dict[str, tuple[int, str]] | None = None
    ) -> list[Array]:
        """Returns the arguments as C-contiguous arrays. Raises `InputError` for a wrong number of arrays, dtype or
        shape. The last inputs may be missing if they have defaults.

        `sizes` maps the name of a dim to its size, if known, and the input that gave it; the sizes of these arrays are
        added.
        """
        least, most = len(self.required), len(self.inputs)
        if not least <= len(arrays) <= most:
            wanted = ", ".join(str(spec) for spec in self.inputs) or "none"
            count = f"{most}" if least == most else f"{least} to {most}"
            raise InputError(f"{len(arrays)} inputs were given but the program takes {count}: {wanted}")
        sizes = {} if sizes is None else sizes
        return [_checked(spec, array, sizes) for spec, array in zip(self.inputs, arrays, strict=False)]

    @property
    def required(self) -> tuple[TensorSpec, ...]:
        """The inputs without defaults, which every call must give."""
        return tuple(spec for spec in self.inputs if not spec.has_default)

    def __repr__(self) -> str:
        text = str(self)
        return f"<Signature {text if len(text) <= _LONGEST_REPR else text[:_LONGEST_REPR] + '…'}>"

    def __str__(self) -> str:
        inputs = ", ".join(f"{spec}{' = default' if spec.has_default else ''}" for spec in self.inputs)
        return f"({inputs}) -> ({', '.join(str(spec) for spec in self.outputs)})"

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": [spec.to_json() for spec in self.inputs],
            "outputs": [spec.to_json() for spec in self.outputs],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Signature:
        return Signature(
            tuple(TensorSpec.from_json(spec) for spec in data["inputs"]),
            tuple(TensorSpec.from_json(spec) for spec in data["outputs"]),
        )


def _checked(spec: TensorSpec, value: Any, sizes: dict[str, tuple[int, str]]) -> Array:
    array = _checked_type(spec, value, sizes)
    return array.view(np.uint8) if spec.is_coded else array


def _checked_type(spec: TensorSpec, value: Any, sizes: dict[str, tuple[int, str]]) -> Array:
    if (
        type(value) is np.ndarray
        and value.shape == spec.shape
        and value.dtype == spec.numpy_dtype
        and value.flags.c_contiguous
    ):
        return value  # this is the common case, and its speed matters to small programs
    if not isinstance(value, np.ndarray | np.generic):
        if isinstance(value, list | tuple | int | float | bool):
            # Python numbers have no dtype of their own, so they get the program's.
            try:
                value = np.asarray(value, dtype=spec.numpy_dtype)
            except (ValueError, TypeError, OverflowError) as error:
                raise InputError(
                    f"not convertible to {spec.dtype}: {error}", where=f"input '{spec.name}'"
                ) from None
        else:
            value = np.asarray(value)
    array = np.asarray(value)
    where = f"input '{spec.name}'"
    if array.dtype != spec.numpy_dtype:
        raise InputError(
            f"dtype {array.dtype} was given but {spec.dtype} is needed",
            where=where,
            hint=f"convert it with .astype({spec.dtype!r})",
        )
    if array.ndim != len(spec.shape):
        raise InputError(f"shape {array.shape} was given but {_shape_text(spec)} is needed", where=where)
    for axis, (size, wanted) in enumerate(zip(array.shape, spec.shape, strict=True)):
        if isinstance(wanted, int) and size != wanted:
            raise InputError(
                f"shape {array.shape} was given but {_shape_text(spec)} is needed (dim {axis})", where=where
            )
        if isinstance(wanted, str):
            first, first_name = sizes.setdefault(wanted, (size, spec.name))
            if first != size:
                raise InputError(
                    f"dim {axis} ('{wanted}') is {size}, but it is {first} in input '{first_name}'",
                    where=where,
                )
    return np.require(array, requirements="C")


def _shape_text(spec: TensorSpec) -> str:
    return "(" + ", ".join("?" if d is None else str(d) for d in spec.shape) + ")"


_TENSOR = re.compile(r"tensor<(?P<dims>(?:(?:\d+|\?)x)*)(?P<element>[a-zA-Z]\w*(?:<\w+>)?)[^>]*>")
_TORCH_TENSOR = re.compile(r"!torch\.v?tensor<\[(?P<dims>[\d?,]*)\],(?P<element>\w+(?:<\w+>)?)>")


def signature_from_declaration(declaration: str) -> Signature:
    """Parses the `iree.abi.declaration` that IREE attaches to every exported function.

    The form is `sync func @name(%input0: tensor<4x?xf32>) -> (%output0: tensor<4xf32>)`.
    """
    arguments, arrow, results = declaration.partition("->")
    inputs = _specs(arguments[arguments.find("(") :], "input")
    outputs = _specs(results, "output") if arrow else ()
    return Signature(inputs, outputs)


def signature_from_types(inputs: Sequence[str], outputs: Sequence[str]) -> Signature:
    """Parses the MLIR types of a function's arguments and results, including torch's tensor types."""
    return Signature(
        tuple(_spec(text, "input", index) for index, text in enumerate(inputs)),
        tuple(_spec(text, "output", index) for index, text in enumerate(outputs)),
    )


def _specs(text: str, kind: str) -> tuple[TensorSpec, ...]:
    parts = _split_arguments(text)
    return tuple(_spec(part.split(":", 1)[-1].strip(), kind, index) for index, part in enumerate(parts))


def _spec(text: str, kind: str, index: int) -> TensorSpec:
    dims: list[str] = []
    is_scalar = False
    if match := _TENSOR.match(text):
        dims = match["dims"].split("x")[:-1]
        element = match["element"]
    elif match := _TORCH_TENSOR.match(text):
        dims = match["dims"].split(",") if match["dims"] else []
        # torch writes signed integers as "si64".
        element = re.sub(r"^s(i\d)", r"\1", match["element"])
    else:
        element, is_scalar = (text.split() or ["?"])[0], True
    if element not in _ELEMENT_DTYPES:
        raise ModelError(
            f"{kind} {index} is of type {text}, which has no numpy counterpart",
            hint="use tensors of a numeric element type at the boundary of the model",
        )
    shape = tuple(None if d == "?" else int(d) for d in dims)
    return TensorSpec(f"{kind}{index}", _ELEMENT_DTYPES[element].name, shape, is_scalar=is_scalar)


def _split_arguments(text: str) -> list[str]:
    """Splits `(%a: tensor<2x3xf32> {...}, %b: i32)` at the commas outside all brackets."""
    parts: list[str] = []
    depth, current = 0, ""
    for character in text.strip().removeprefix("(").removesuffix(")"):
        depth += (character in "<({[") - (character in ">)}]")
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    return [part.strip() for part in parts if part.strip()]

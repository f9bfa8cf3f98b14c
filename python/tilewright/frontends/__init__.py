"""Front ends, which turn a model into MLIR for IREE's input phase and files with its weights."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.errors import ModelError
from tilewright.frontends.weights import PendingArchives
from tilewright.records.calling import Calling
from tilewright.records.dims import Dim, Sizes
from tilewright.records.signature import Signature

if TYPE_CHECKING:
    import onnx
    import torch

    from tilewright.iree.compiler import IreeCompiler

Model: TypeAlias = (
    "str | os.PathLike[str] | bytes | onnx.ModelProto | torch.nn.Module | torch.export.ExportedProgram"
)
"""A model: a path to an ONNX, MLIR or torch.export file (.pt2), an `onnx.ModelProto`, MLIR as text (str) or bytecode
(bytes), or a module or exported program of PyTorch."""


@dataclass(frozen=True)
class ImportedModel:
    """A model in the form that IREE reads: a module, and the weights as parameter archives by scope."""

    source: bytes
    name: str
    signature: Signature | None = None
    """None if the signature is known only after IREE has compiled the module."""
    entry: str | None = None
    """Name of the function that is the program; None if the module has only one."""
    archives: PendingArchives = field(default_factory=PendingArchives)
    listing: str | None = None
    """The module as text for people to read, if the source is bytecode."""
    calling: Calling | None = None
    """How the program is called, if the model takes nested arguments."""
    lends_inputs: bool = False
    """True if callers lend the memory of inputs, which the program must not change."""
    is_static_onnx: bool = False
    """True if the module is ONNX, and all of its tensors have sizes."""
    notes: tuple[str, ...] = ()
    """What a user should know about the import."""
    dims: Mapping[str, Dim] = field(default_factory=dict)
    """Sizes that the model itself allows for its open dims."""
    again: Reimport | None = None
    """Imports the same model with sizes for its open dims, if it has such; None if that is not possible."""

    @property
    def parameters(self) -> dict[str, Path]:
        """The parameter archives by scope, written."""
        return self.archives.paths()

    @property
    def is_dynamic(self) -> bool:
        """True if the model leaves sizes of its inputs open, so that its weights are needed for other sizes, too."""
        specs = self.signature.inputs if self.signature is not None else ()
        return any(not isinstance(size, int) for spec in specs for size in spec.shape)


Reimport: TypeAlias = "Callable[[Sizes, IreeCompiler], ImportedModel]"
"""Imports a model once more, for fixed sizes of dims. It reads no file of the model, and the weights are the first
import's, so that a model that has changed since is not mixed with the first. It may be called in any thread."""


def import_model(
    model: Model,
    *,
    examples: Any = None,
    compiler: IreeCompiler,
    directory: Path,
    dims: Mapping[str, Dim] | None = None,
    entry: str | None = None,
) -> ImportedModel:
    """Imports a model of any kind; its weights will be written to `directory`.

    `examples` are the inputs to export a module of PyTorch with, and `dims` what the caller says of dims, of which
    those of one size are fixed. `entry` is the function that `dims` is about, for MLIR with several. Raises
    `ModelError` if the model cannot be read, or has no such dim.
    """
    from tilewright.frontends import jax, mlir, pytorch

    dims = dims or {}
    fixed = {name: dim.fixed for name, dim in dims.items() if dim.fixed is not None}
    if isinstance(model, str | os.PathLike) and str(model).endswith(".pt2"):
        _read_file(Path(model), most_bytes=1)
        exported = pytorch.load_exported(Path(model))
        return pytorch.import_torch(
            exported,
            examples=examples,
            name=Path(model).name,
            compiler=compiler,
            directory=directory,
            dims=dims,
        )
    if pytorch.is_torch_model(model):
        return pytorch.import_torch(
            model, examples=examples, name="model", compiler=compiler, directory=directory, dims=dims
        )
    if jax.is_jax_model(model):
        return jax.import_jax(model, examples=examples, compiler=compiler, fixed=fixed)
    if examples is not None:
        raise ModelError(
            "example_inputs are for modules of PyTorch and functions of JAX, not for a model of type "
            f"{type(model).__name__}"
        )
    if isinstance(model, str) and is_mlir_text(model):
        return mlir.import_mlir(model.encode(), name="model", compiler=compiler, fixed=fixed, entry=entry)
    if isinstance(model, bytes):
        return _import_bytes(
            model, name="model", compiler=compiler, directory=directory, fixed=fixed, entry=entry
        )
    if isinstance(model, str | os.PathLike):
        return _import_path(Path(model), compiler=compiler, directory=directory, fixed=fixed, entry=entry)
    onnx_model: Any = model
    if is_onnx_proto(onnx_model):
        from tilewright.frontends import onnx as onnx_frontend

        return onnx_frontend.import_onnx(
            onnx_model, base=None, name="model", compiler=compiler, directory=directory, fixed=fixed
        )
    raise ModelError(
        f"a model of type {type(model).__name__} is not supported",
        hint="give a path to an ONNX, MLIR or .pt2 file, an onnx.ModelProto, MLIR text, a module of PyTorch, or a "
        "function of jax.jit",
    )


_NO_MODELS = {
    ".vmfb": (
        "it is compiled already",
        "tilewright.load takes it, and compile the model that it was made of",
    ),
    ".twp": ("it is compiled already", "applications in C run it (docs/guide/deploy-c.md)"),
    ".pt": ("a file of PyTorch's weights is no model", "give the module, or the .pt2 of torch.export.save"),
    ".pth": ("a file of PyTorch's weights is no model", "give the module, or the .pt2 of torch.export.save"),
    ".safetensors": ("a file of weights is no model", "give the model that reads them"),
    ".gguf": ("a file of weights is no model", "give the model that reads them"),
    ".irpa": ("a file of weights is no model", "give the model that reads them"),
}
"""Files that are often taken for models, by suffix: what is wrong, and what to do."""


def _import_path(
    path: Path, *, compiler: IreeCompiler, directory: Path, fixed: Sizes, entry: str | None
) -> ImportedModel:
    data = _read_file(path)
    if path.suffix in _NO_MODELS:
        problem, hint = _NO_MODELS[path.suffix]
        raise ModelError(problem, where=str(path), hint=hint)
    if path.suffix in (".mlir", ".mlirbc"):
        from tilewright.frontends import mlir

        return mlir.import_mlir(data, name=path.name, compiler=compiler, fixed=fixed, entry=entry)
    return _import_bytes(
        data,
        name=path.name,
        compiler=compiler,
        directory=directory,
        fixed=fixed,
        entry=entry,
        base=path.parent,
        is_onnx=path.suffix == ".onnx",
    )


def _read_file(path: Path, *, most_bytes: int = -1) -> bytes:
    """Returns the beginning of a file, or all of it. Raises `ModelError` if it is missing, unreadable or empty."""
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes)
    except FileNotFoundError:
        raise ModelError("no such file", where=str(path), hint="check the path of the model") from None
    except OSError as error:
        raise ModelError(f"cannot be read ({error.strerror})", where=str(path)) from None
    if not data:
        raise ModelError("the file is empty", where=str(path))
    return data


def _import_bytes(
    data: bytes,
    *,
    name: str,
    compiler: IreeCompiler,
    directory: Path,
    fixed: Sizes,
    entry: str | None,
    base: Path | None = None,
    is_onnx: bool = False,
) -> ImportedModel:
    from tilewright.frontends import mlir

    if not is_onnx and mlir.looks_like_mlir(data):
        return mlir.import_mlir(data, name=name, compiler=compiler, fixed=fixed, entry=entry)
    from tilewright.frontends import onnx as onnx_frontend

    proto = onnx_frontend.parse(data, name=name)
    return onnx_frontend.import_onnx(
        proto, base=base, name=name, compiler=compiler, directory=directory, fixed=fixed
    )


def external_data(path: Path) -> list[str]:
    """Returns the paths, relative to the model's folder, of the files that hold data of a model.

    Raises `OSError` and `ModelError` if the model cannot be read.
    """
    from tilewright.frontends import mlir

    data = path.read_bytes()
    if path.suffix == ".pt2":
        return []
    is_mlir = path.suffix in (".mlir", ".mlirbc") or (path.suffix != ".onnx" and mlir.looks_like_mlir(data))
    # Every reference has this word, and reading ONNX takes much longer than finding it.
    if is_mlir or b"location" not in data:
        return []
    from tilewright.frontends import onnx as onnx_frontend

    return onnx_frontend.external_files(onnx_frontend.parse(data, name=path.name))


def is_mlir_text(text: str) -> bool:
    return "\n" in text or "{" in text


def is_onnx_proto(model: Any) -> bool:
    return type(model).__name__ == "ModelProto"

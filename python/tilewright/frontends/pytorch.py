"""Front end for PyTorch: modules, `torch.export.ExportedProgram`s, saved `.pt2` files and FX graphs.

IREE's `FxImporter` imports the graph in this process, where PyTorch's objects are. Large weights go straight to a
parameter archive (see `weights`). PyTorch is imported only here and only once a model of PyTorch is given.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tilewright.errors import ModelError
from tilewright.frontends import ImportedModel
from tilewright.frontends.archives import check_archive, only_tensors
from tilewright.frontends.service import spell_out_torch
from tilewright.frontends.weights import PendingArchives
from tilewright.iree.compiler import IreeCompiler
from tilewright.records.calling import Calling, Leaf
from tilewright.records.dims import Dim, Sizes, settle_names, signature_inputs
from tilewright.records.signature import Signature, TensorSpec

if TYPE_CHECKING:
    from tilewright.frontends.pytorch_dims import Symbols

_ENTRY = "main"
_PLAIN = (type(None), bool, int, float, str)
"""Types of leaves that a program's calling convention may fix."""


_OTHERWISE = "torch.compile(module, backend='tilewright') leaves to PyTorch what cannot be compiled"


@dataclass(frozen=True)
class TorchGraph:
    """An FX graph of ATen ops on tensors of static shapes, without mutation, whose outputs are all tensors.

    Every placeholder, node and output has the tensor that it is in `meta["val"]`.
    """

    module: Any
    """The `torch.fx.GraphModule`."""


def is_torch_model(model: Any) -> bool:
    """True for a module or an exported program of PyTorch, or a `TorchGraph`."""
    return isinstance(model, TorchGraph) or is_module(model)


def is_module(model: Any) -> bool:
    """True for a module or an exported program of PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    return isinstance(model, torch.nn.Module) or type(model).__name__ == "ExportedProgram"


def need_torch(what: str) -> None:
    """Raises `ModelError` if PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise ModelError(
            "PyTorch is not installed", where=what, hint="install it: pip install 'tilewright[torch]'"
        )


def import_torch(
    model: Any,
    *,
    examples: Any,
    name: str,
    compiler: IreeCompiler,
    directory: Path,
    dims: Mapping[str, Dim] | None = None,
) -> ImportedModel:
    """Imports a model for which `is_torch_model` holds, and writes its weights to `directory`.

    `examples` are inputs for a module: a sequence of positional arguments, or a mapping of keyword arguments. `dims`
    says what is known of open dims; those of a module are the ones that it names ("x.0"). Raises `ModelError` if the
    model cannot be exported or imported.
    """
    dims = dims or {}
    if isinstance(model, TorchGraph):
        return _import_graph(model, name=name, compiler=compiler, directory=directory)
    if type(model).__name__ != "ExportedProgram":
        return _import_exported(
            _export(model, examples, dims),
            name=type(model).__name__,
            compiler=compiler,
            directory=directory,
            dims=dims,
        )
    if examples is not None:
        raise ModelError(
            "example_inputs are for modules; an exported program has its own",
            where=name,
            hint="leave them out",
        )
    return _import_exported(
        model, name=name, compiler=compiler, directory=directory, dims=dims, has_bounds=True
    )


def load_exported(path: Path) -> Any:
    """Loads what `torch.export.save` wrote. Nothing in the file is run: pickles may hold tensors only.

    Raises `ModelError` if it cannot be loaded or holds code, or if PyTorch is not installed.
    """
    need_torch(str(path))
    import torch

    check_archive(path)
    try:
        with only_tensors():
            return torch.export.load(str(path))
    except Exception as error:  # PyTorch raises many kinds for damaged files
        raise ModelError(
            f"not a program of torch.export: {_first_line(error)}", where=str(path), hint="save it again"
        ) from error


def _export(module: Any, examples: Any, dims: Mapping[str, Dim]) -> Any:
    """Returns the exported program of a module, with the dims that `dims` names left open."""
    import torch

    from tilewright.frontends.pytorch_dims import open_dims

    name = type(module).__name__
    if examples is None:
        raise ModelError(
            "a module needs example inputs", where=name, hint="give compile(module, example_inputs=(x, ...))"
        )
    if isinstance(examples, torch.Tensor) or not isinstance(examples, Sequence | Mapping):
        raise ModelError(
            f"example_inputs is a {type(examples).__name__}",
            where=name,
            hint="give a tuple of arguments, or a dict of keyword arguments",
        )
    arguments, named = ((), dict(examples)) if isinstance(examples, Mapping) else (tuple(examples), {})
    shapes = open_dims(module, arguments, named, dims, name=name) if dims else None
    try:
        with torch.no_grad():
            return torch.export.export(module, arguments, named, dynamic_shapes=shapes)
    except Exception as error:  # a module's own code runs here
        raise ModelError(
            f"torch.export cannot trace it: {_first_line(error)}",
            where=name,
            hint="torch.compile(module, backend='tilewright') takes modules that export does not",
        ) from error


def _import_exported(
    program: Any,
    *,
    name: str,
    compiler: IreeCompiler,
    directory: Path,
    dims: Mapping[str, Dim],
    has_bounds: bool = False,
) -> ImportedModel:
    """Imports an exported program. `has_bounds` is True if the bounds of its dims are its author's own; PyTorch gives
    to others a least size of 2."""
    import torch

    from tilewright.frontends.pytorch_complex import spell_out_complex
    from tilewright.frontends.pytorch_dims import Symbols, hold_constants
    from tilewright.frontends.pytorch_empties import hold_empties
    from tilewright.frontends.pytorch_ops import check_ops, decompositions, drop_type_checks
    from tilewright.frontends.pytorch_pads import pad_by_other_zeros
    from tilewright.frontends.pytorch_scalars import make_scalars_floats
    from tilewright.frontends.pytorch_sizes import with_ops_of_sizes

    symbols = Symbols(program)
    try:
        with torch.no_grad():
            table = decompositions()  # PyTorch takes a third of a second to make it
            program = program.run_decompositions(table)
            drop_type_checks(program.graph)
            parts = spell_out_complex(program, table, name=name)
            make_scalars_floats(program.graph)
            pad_by_other_zeros(program.graph)
            hold_empties(program.graph)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"its ops cannot be decomposed: {_first_line(error)}", where=name, hint=_OTHERWISE
        ) from error
    check_ops(program.graph, name=name)
    calling, inputs, outputs = _read_signature(program, name)
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    signature = Signature(
        tuple(_spec(name, spec.arg.name, values[spec.arg.name], symbols) for spec in inputs),
        tuple(
            _spec(name, label, values[spec.arg.name], symbols)
            for spec, label in zip(outputs, _output_names(program, calling), strict=True)
        ),
    )
    given = settle_names(dims, signature_inputs(signature), where=name)
    fixed = {dim: choice.fixed for dim, choice in given.items() if choice.fixed is not None}
    constants = hold_constants(program, parts)

    def run(
        sizes: Sizes, compiler: IreeCompiler, directory: Path | None
    ) -> tuple[ImportedModel, dict[str, Any]]:
        graph, static = symbols.fix(program.graph, signature, sizes, outputs, name=name)
        # The importer would make results of the constants among the outputs, which IREE's interface cannot express.
        kept = SimpleNamespace(
            input_specs=program.graph_signature.input_specs,
            output_specs=outputs,
            user_inputs_to_mutate={},
        )
        bare = SimpleNamespace(
            graph=with_ops_of_sizes(graph),
            graph_signature=kept,
            state_dict=constants,
            constants=constants,
            range_constraints=program.range_constraints,
        )
        return _run_importer(
            lambda importer: importer.import_program(bare, func_name=_ENTRY),
            static,
            calling,
            name=name,
            compiler=compiler,
            directory=directory,
        )

    first, weights = run(fixed, compiler, directory)

    def again(sizes: Sizes, compiler: IreeCompiler) -> ImportedModel:
        static, others = run({**fixed, **sizes}, compiler, None)
        if not others.items() <= weights.items():
            raise ModelError("its weights have other names once its dims are fixed", where=name)
        return replace(static, archives=first.archives)

    return replace(first, dims=symbols.bounds if has_bounds else {}, again=again)


def _import_graph(graph: TorchGraph, *, name: str, compiler: IreeCompiler, directory: Path) -> ImportedModel:
    from tilewright.frontends.pytorch_pads import pad_by_other_zeros
    from tilewright.frontends.pytorch_scalars import make_scalars_floats

    make_scalars_floats(graph.module.graph)
    pad_by_other_zeros(graph.module.graph)
    nodes = list(graph.module.graph.nodes)
    (results,) = nodes[-1].args
    signature = Signature(
        tuple(_spec(name, node.name, node.meta["val"]) for node in nodes if node.op == "placeholder"),
        tuple(_spec(name, f"output{i}", node.meta["val"]) for i, node in enumerate(results)),
    )
    imported, _ = _run_importer(
        lambda importer: importer.import_graph_module(graph.module, func_name=_ENTRY),
        signature,
        None,
        name=name,
        compiler=compiler,
        directory=directory,
    )
    return imported


def _run_importer(
    run: Any,
    signature: Signature,
    calling: Calling | None,
    *,
    name: str,
    compiler: IreeCompiler,
    directory: Path | None,
) -> tuple[ImportedModel, dict[str, Any]]:
    """Runs the importer; without a directory, the weights are not written.

    Also returns what identifies the tensor of each weight, by its name in the archive.
    """
    from tilewright.frontends.pytorch_importer import import_fx

    try:
        imported = import_fx(run)
    except Exception as error:  # the importer raises what Python raises
        raise ModelError(f"not importable: {_first_line(error)}", where=name, hint=_OTHERWISE) from error
    archives = PendingArchives()
    if imported.weights and directory is not None:
        archives.add(imported.scope, directory / "model.irpa", imported.arrays())
    model = ImportedModel(
        source=spell_out_torch(compiler, imported.bytecode),
        name=name,
        signature=signature,
        entry=_ENTRY,
        archives=archives,
        listing=imported.listing,
        calling=calling,
        lends_inputs=True,
    )
    identities = {
        key: (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        for key, tensor in imported.weights.items()
    }
    return model, identities


def _read_signature(program: Any, name: str) -> tuple[Calling, list[Any], list[Any]]:
    """Returns the calling convention, and the specs of the inputs and outputs that are tensors.

    Raises `ModelError` for what a program without side effects cannot do.
    """
    from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

    arguments: list[Leaf] = []
    inputs: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            continue
        if spec.kind != InputKind.USER_INPUT or not isinstance(spec.arg, TensorArgument | ConstantArgument):
            raise ModelError(
                f"its input '{spec.arg.name}' is neither a tensor nor a constant",
                where=name,
                hint="export it with a constant in its place",
            )
        arguments.append(_leaf(spec, len(inputs), name))
        inputs += [spec] if isinstance(spec.arg, TensorArgument) else []
    results: list[Leaf] = []
    outputs: list[Any] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise ModelError(
                f"it changes '{spec.target}' while it runs",
                where=name,
                hint="call module.eval() first, or use torch.compile(module, backend='tilewright')",
            )
        if not isinstance(spec.arg, TensorArgument | ConstantArgument):
            raise ModelError(f"its output '{spec.arg.name}' is not a tensor", where=name)
        results.append(_leaf(spec, len(outputs), name))
        outputs += [spec] if isinstance(spec.arg, TensorArgument) else []
    calling = Calling(
        _dump_tree(program.call_spec.in_spec, name),
        _dump_tree(program.call_spec.out_spec, name),
        tuple(arguments),
        tuple(results),
    )
    return calling, inputs, outputs


def _leaf(spec: Any, position: int, name: str) -> Leaf:
    from torch.export.graph_signature import TensorArgument

    if isinstance(spec.arg, TensorArgument):
        return Leaf(position)
    if not isinstance(spec.arg.value, _PLAIN):
        raise ModelError(f"'{spec.arg.name}' is a {type(spec.arg.value).__name__}", where=name)
    return Leaf(None, spec.arg.value)


def _dump_tree(tree: Any, name: str) -> str:
    from torch.utils import _pytree

    try:
        return str(_pytree.treespec_dumps(_with_plain_tuples(tree)))
    except NotImplementedError as error:
        raise ModelError(
            f"the structure of its inputs or outputs is unknown: {_first_line(error)}",
            where=name,
            hint="use tuples, lists and dicts",
        ) from error


def _with_plain_tuples(tree: Any) -> Any:
    """Returns the structure with tuples in place of PyTorch's named results, such as those of torch.topk, which have no
    form in files."""
    import torch
    from torch.utils import _pytree

    if tree.is_leaf():
        return tree
    is_named = getattr(tree.type, "__module__", "") == torch.return_types.__name__
    parts = [_with_plain_tuples(part) for part in tree.children()]
    return _pytree.TreeSpec(tuple if is_named else tree.type, tree.context, parts)


def _output_names(program: Any, calling: Calling) -> list[str]:
    """Returns a name for each output that is a tensor: its keys in the result ("hidden.0"), else "output0"."""
    from torch.utils import _pytree

    leaves = range(len(calling.results))
    nested = _pytree.tree_unflatten(list(leaves), program.call_spec.out_spec)
    names: list[str] = []
    for path, leaf in _pytree.tree_flatten_with_path(nested)[0]:
        if calling.results[leaf].tensor is None:
            continue
        keys = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", "")))) for key in path]
        text = ".".join(keys)
        names.append(text if text and not text[0].isdigit() else f"output{len(names)}")
    return names


def _spec(model: str, name: str, value: Any, symbols: Symbols | None = None) -> TensorSpec:
    """Returns the spec of a tensor. Raises `ModelError` if numpy has no such type."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_quantized:
        raise ModelError(f"'{name}' is not a dense tensor", where=model)
    text = str(value.dtype).removeprefix("torch.")
    try:
        spec = TensorSpec(
            name, text, tuple(d if isinstance(d, int) else symbols and symbols.name(d) for d in value.shape)
        )
        _ = spec.numpy_dtype
    except TypeError:
        raise ModelError(f"'{name}' is of type {text}, which numpy does not have", where=model) from None
    return spec


def _first_line(error: BaseException) -> str:
    """Returns the first line of a message, with the next one if that only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])[:300]

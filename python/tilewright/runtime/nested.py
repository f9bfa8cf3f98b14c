"""Calls with nested arguments and results: a program that was a PyTorch module is called as the module is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.errors import InputError, ProgramError
from tilewright.records.calling import Calling, Leaf
from tilewright.records.signature import Signature
from tilewright.runtime.cuda_session import CudaSession
from tilewright.runtime.cuda_tensors import is_on_gpu
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.session import Session
from tilewright.runtime.torch_tensors import as_array, checked_tensor, tensor_caller

Cut: TypeAlias = Callable[[Sequence[Any]], list[Any]]
"""Changes the outputs of a program before they are nested."""


class NestedCaller:
    """Calls a program with the arguments of the module that it was compiled from.

    Tensors and arrays are found in the arguments by the structure of the example inputs. The result has the module's
    structure. Its leaves are tensors if any input is one, else arrays.
    """

    def __init__(
        self,
        session: Session | DirectSession | CudaSession,
        signature: Signature,
        calling: Calling,
        *,
        is_local: bool,
    ) -> None:
        try:
            from torch.utils import _pytree
        except ImportError:
            raise ProgramError(
                "it is called like a PyTorch module, but PyTorch is not installed",
                hint="pip install 'tilewright[torch]', or call program.bind(*arrays)",
            ) from None
        self._pytree = _pytree
        self._session, self._signature, self._calling = session, signature, calling
        self._inputs = _pytree.treespec_loads(calling.inputs)
        self._outputs = _pytree.treespec_loads(calling.outputs)
        self._on_tensors = (
            None if isinstance(session, CudaSession) or not is_local else tensor_caller(session, signature)
        )
        children = self._inputs.children()
        self._is_flat = (
            len(children) == 2
            and children[0].type is tuple
            and not children[1].num_children
            and all(child.is_leaf() for child in children[0].children())
            and all(leaf.tensor is not None for leaf in calling.arguments)
        )
        """True if the arguments are tensors by position, which need no search."""

    def run(self, values: Sequence[Any], cut: Cut = list) -> Any:
        """Runs the program on what `flatten` returned; `cut` changes its outputs. Raises `InputError` for tensors that
        do not fit it."""
        import torch

        if isinstance(self._session, CudaSession) and any(map(is_on_gpu, values)):
            results = self._session(values)
        elif any(isinstance(value, torch.Tensor) for value in values):
            results = self._call_tensors(values)
        else:
            results = self._call_arrays(values)
        results = cut(results)
        leaves = [
            leaf.value if leaf.tensor is None else results[leaf.tensor] for leaf in self._calling.results
        ]
        return self._pytree.tree_unflatten(leaves, self._outputs)

    def _call_arrays(self, values: Sequence[Any]) -> list[Any]:
        checked = self._signature.check_inputs(values)
        if isinstance(self._session, DirectSession | CudaSession):
            return self._session(self._session.checked(checked))
        return self._session(checked, self._signature)

    def _call_tensors(self, values: Sequence[Any]) -> list[Any]:
        import torch

        sizes: dict[str, tuple[int, str]] = {}
        checked = [
            value if not isinstance(value, torch.Tensor) else checked_tensor(value, spec, sizes)
            for value, spec in zip(values, self._signature.inputs, strict=True)
        ]
        if self._on_tensors is not None:
            return self._on_tensors([_to_tensor(value) for value in self._check_arrays(checked, sizes)])
        arrays = [as_array(value) if isinstance(value, torch.Tensor) else value for value in checked]
        results = self._call_arrays(arrays)
        return [_to_tensor(result) for result in results]

    def _check_arrays(self, values: Sequence[Any], sizes: dict[str, tuple[int, str]]) -> list[Any]:
        import torch

        checked = []
        for value, spec in zip(values, self._signature.inputs, strict=True):
            if not isinstance(value, torch.Tensor):
                (value,) = Signature((spec,), ()).check_inputs([value], sizes=sizes)
            checked.append(value)
        return checked

    def flatten(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Returns the tensors and arrays among the arguments; checks the structure and the other leaves."""
        import torch

        is_flat = self._is_flat and not named and len(arguments) == len(self._calling.arguments)
        if is_flat and all(isinstance(value, torch.Tensor) for value in arguments):
            return list(arguments)
        wanted = self._inputs.child(1).context if self._inputs.num_children == 2 else None
        if wanted is not None and set(wanted) == set(named):
            named = {name: named[name] for name in wanted}
        leaves, structure = self._pytree.tree_flatten((tuple(arguments), dict(named)))
        if structure != self._inputs:
            raise InputError(
                "the arguments are not nested like the example inputs",
                hint=f"it takes {_spell(self._pytree, self._inputs, self._calling.arguments, self._signature)}",
            )
        values = []
        for leaf, value in zip(self._calling.arguments, leaves, strict=True):
            if leaf.tensor is not None:
                values.append(value)
            elif type(value) is not type(leaf.value) or repr(value) != repr(leaf.value):
                raise InputError(
                    f"{value!r} was given but the program was compiled for {leaf.value!r}",
                    hint="compile it again with example inputs that have the other value",
                )
        return values


def _to_tensor(value: Any) -> Any:
    """Returns an array as a tensor on the same memory."""
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        return value
    dtype = getattr(torch, value.dtype.name)
    if not value.size or value.dtype.itemsize > 8:
        return torch.from_numpy(np.array(value)).to(dtype)
    plain = np.require(value, requirements="W").view(f"i{value.dtype.itemsize}")
    return torch.from_numpy(plain).view(dtype)


def _spell(pytree: Any, structure: Any, leaves: Sequence[Leaf], signature: Signature) -> str:
    """Returns the arguments as text: "(x: float32[2x3], mask=None)"."""
    texts = [
        _Text(str(signature.inputs[leaf.tensor]) if leaf.tensor is not None else repr(leaf.value))
        for leaf in leaves
    ]
    arguments, named = pytree.tree_unflatten(texts, structure)
    parts = [repr(argument) for argument in arguments]
    parts += [f"{name}={value!r}" for name, value in named.items()]
    return f"({', '.join(parts)})"


class _Text(str):
    """A text whose representation is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

"""Calls of programs that were functions of JAX: nested arguments, and JAX's arrays through DLPack without a copy."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.errors import InputError, ProgramError
from tilewright.records.calling import Calling
from tilewright.records.signature import Array, Signature
from tilewright.records.trees import TreeError, leaves_of, rebuilt
from tilewright.runtime.cuda_session import CudaSession
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.nested import Cut
from tilewright.runtime.session import Session


class JaxCaller:
    """Calls a program with the arguments of the function that it was compiled from.

    The result is nested as the function's. Its leaves are arrays of JAX if any input is one, else numpy arrays, and JAX
    need not be installed.
    """

    def __init__(
        self, session: Session | DirectSession | CudaSession, signature: Signature, calling: Calling
    ) -> None:
        self._session, self._signature, self._calling = session, signature, calling
        self._inputs, self._outputs = json.loads(calling.inputs), json.loads(calling.outputs)

    def flatten(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Returns the arrays among the arguments that the program reads, in its order. Raises `InputError` if they are
        not nested like the example inputs."""
        try:
            leaves = list(leaves_of((tuple(arguments), dict(named)), self._inputs))
        except TreeError as error:
            inputs = ", ".join(map(str, self._signature.inputs))
            raise InputError(
                f"the arguments are not nested like the example inputs: {error}", hint=f"it takes {inputs}"
            ) from None
        pairs = zip(self._calling.arguments, leaves, strict=True)
        used = [(leaf.tensor, value) for leaf, value in pairs if leaf.tensor is not None]
        return [value for _, value in sorted(used, key=lambda pair: pair[0])]

    def run(self, values: Sequence[Any], cut: Cut = list) -> Any:
        """Runs the program on what `flatten` returned; `cut` changes its outputs. Raises `InputError` for arrays that
        do not fit it."""
        is_jax = [_is_jax(value) for value in values]
        arrays = [
            _as_array(value, spec.name) if ours else value
            for value, spec, ours in zip(values, self._signature.inputs, is_jax, strict=True)
        ]
        checked = self._signature.check_inputs(arrays)
        if isinstance(self._session, DirectSession | CudaSession):
            results = self._session(self._session.checked(checked))
        else:
            results = self._session(checked, self._signature)
        results = cut(results)
        leaves = [results[leaf.tensor] for leaf in self._calling.results if leaf.tensor is not None]
        return rebuilt(self._outputs, list(map(_to_jax, leaves)) if any(is_jax) else leaves)


def _is_jax(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _as_array(value: Any, name: str) -> Array:
    """Returns an array of JAX as a numpy array on the same memory. Raises `InputError` for one that is elsewhere."""
    import jax

    where = f"input '{name}'"
    if isinstance(value, jax.core.Tracer):
        raise InputError(
            "JAX traces it, and a program is no part of JAX's graphs",
            where=where,
            hint="call the program outside jax.jit, jax.grad and jax.vmap",
        )
    platforms = {device.platform for device in value.devices()}
    if platforms != {"cpu"} or len(value.devices()) > 1:
        raise InputError(
            f"it is on {', '.join(map(str, value.devices()))}, not in the memory of one CPU device",
            where=where,
            hint='pass jax.device_put(x, jax.devices("cpu")[0])',
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError):  # numpy takes no bfloat16 this way
        return np.asarray(value)


def _to_jax(array: Array) -> Any:
    """Returns an array as one of JAX, on the same memory if that is aligned as JAX needs it."""
    try:
        import jax
    except ImportError:
        raise ProgramError("JAX is not installed", hint="pip install 'tilewright[jax]'") from None
    try:
        return jax.dlpack.from_dlpack(array)
    except Exception:  # JAX raises several kinds for types and alignments that it does not take
        return jax.numpy.asarray(array)

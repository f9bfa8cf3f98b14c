"""JAX, compiled by XLA: the model as a function of `jax.numpy`, with weights as constants.

GPU times of XLA are not measured, so only whole calls are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper
from tilewright.runtime.cold import ColdCache
from tilewright.runtime.cuda import Cuda

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing, host_seconds, median_of
from benchmarks.peers import Array, UnsupportedError

Function = Callable[..., Any]


class Jax:
    """System that runs functions compiled by XLA."""

    def __init__(self) -> None:
        if jax.default_backend() != "gpu":
            raise ImportError("this JAX has no CUDA")
        jax.config.update("jax_enable_x64", True)  # ONNX has 64-bit integers
        jax.config.update(
            "jax_default_matmul_precision", "highest"
        )  # full f32 products, as in all other systems

    def versions(self) -> dict[str, Any]:
        """Returns the package's version."""
        return {"jax": jax.__version__}

    def prepare(self, case: Case) -> JaxProgram:
        """Compiles the model and moves weights and inputs to the GPU."""
        return JaxProgram(case)


class JaxProgram:
    """A compiled function with its inputs on the GPU."""

    def __init__(self, case: Case) -> None:
        self._function = jax.jit(to_function(case.model))
        self._inputs = [jnp.asarray(array) for array in case.inputs]
        self._results: Sequence[Any] = ()
        self._call()
        self._wait()

    def outputs(self) -> list[Array]:
        """Returns the outputs of one call."""
        self._call()
        return [np.asarray(result) for result in self._results]

    def time(self, *, seconds: float) -> Timing:
        """Returns times with a cold cache before every call."""
        cuda = Cuda()
        flush = ColdCache(cuda)

        def cool() -> None:
            flush()
            cuda.synchronize()

        call, samples = median_of(host_seconds(self._call, self._wait, cool), seconds=seconds)
        return Timing(kernel_s=None, call_s=call, samples=samples)

    def _call(self) -> None:
        self._results = self._function(*self._inputs)

    def _wait(self) -> None:
        jax.block_until_ready(self._results)


def to_function(model: ModelProto) -> Function:
    """Returns the model as a function of its inputs, in order."""
    initializers = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in initializers]
    unknown = {node.op_type for node in model.graph.node} - OPERATORS.keys()
    if unknown:
        raise UnsupportedError(f"the translation to JAX lacks {min(unknown)}")

    def function(*inputs: Any) -> tuple[Any, ...]:
        values: dict[str, Any] = {**initializers, **dict(zip(names, inputs, strict=True))}
        for node in model.graph.node:
            results = OPERATORS[node.op_type](*(values[n] for n in node.input if n), **_attributes(node))
            many = results if isinstance(results, list | tuple) else [results]
            values.update(zip(node.output, many, strict=True))
        return tuple(values[output.name] for output in model.graph.output)

    return function


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _ints(value: Any) -> list[int]:
    return [int(entry) for entry in np.ravel(value)]


def _reduction(reduce: Function) -> Function:
    def apply(x: Any, given: Any = None, axes: Any = None, keepdims: int = 1) -> Any:
        over = axes if axes is not None else _ints(given)
        return reduce(x, axis=tuple(over), keepdims=bool(keepdims))

    return apply


def _layer_norm(x: Any, gain: Any, bias: Any = None, axis: int = -1, epsilon: float = 1e-5) -> Any:
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(axis, keepdims=True)
    normal = centred * jax.lax.rsqrt((centred * centred).mean(axis, keepdims=True) + epsilon)
    return (normal * gain + (0 if bias is None else bias)).astype(x.dtype)


def _gelu(x: Any, approximate: bytes = b"none") -> Any:
    return jax.nn.gelu(x, approximate=approximate == b"tanh")


def _slice(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    along = _ints(axes) if axes is not None else list(range(len(starts)))
    by = _ints(steps) if steps is not None else [1] * len(along)
    cuts = [slice(None)] * x.ndim
    for axis, start, end, step in zip(along, _ints(starts), _ints(ends), by, strict=True):
        cuts[axis] = slice(start, end, step)
    return x[tuple(cuts)]


def _squeeze(x: Any, given: Any = None, axes: Any = None) -> Any:
    return jnp.squeeze(x, tuple(axes if axes is not None else _ints(given)))


def _unsqueeze(x: Any, given: Any = None, axes: Any = None) -> Any:
    return jnp.expand_dims(x, tuple(axes if axes is not None else _ints(given)))


def _split(x: Any, sizes: Any, axis: int = 0) -> list[Any]:
    return list(jnp.split(x, np.cumsum(_ints(sizes))[:-1].tolist(), axis))


def _gemm(a: Any, b: Any, c: Any = 0, **options: Any) -> Any:
    left = a.T if options.get("transA", 0) else a
    right = b.T if options.get("transB", 0) else b
    return options.get("alpha", 1.0) * (left @ right) + options.get("beta", 1.0) * c


def _cast(x: Any, to: int) -> Any:
    return jnp.asarray(x).astype(helper.tensor_dtype_to_np_dtype(to))


def _reshape(x: Any, shape: Any) -> Any:
    return jnp.reshape(x, [x.shape[i] if size == 0 else size for i, size in enumerate(_ints(shape))])


OPERATORS: Mapping[str, Function] = {
    "Add": jnp.add,
    "Sub": jnp.subtract,
    "Mul": jnp.multiply,
    "Div": jnp.divide,
    "Pow": lambda x, y: jnp.power(x, y).astype(x.dtype),
    "Max": jnp.maximum,
    "Min": jnp.minimum,
    "Neg": jnp.negative,
    "Abs": jnp.abs,
    "Exp": jnp.exp,
    "Log": jnp.log,
    "Sqrt": jnp.sqrt,
    "Reciprocal": jnp.reciprocal,
    "Tanh": jnp.tanh,
    "Sigmoid": jax.nn.sigmoid,
    "Erf": jax.scipy.special.erf,
    "Relu": jax.nn.relu,
    "Softplus": jax.nn.softplus,
    "Identity": lambda x: x,
    "Gelu": _gelu,
    "Softmax": lambda x, axis=-1: jax.nn.softmax(x, axis),
    "LogSoftmax": lambda x, axis=-1: jax.nn.log_softmax(x, axis),
    "LayerNormalization": _layer_norm,
    "ReduceMean": _reduction(jnp.mean),
    "ReduceSum": _reduction(jnp.sum),
    "ReduceMax": _reduction(jnp.max),
    "ReduceMin": _reduction(jnp.min),
    "ReduceL2": _reduction(lambda x, axis, keepdims: jnp.sqrt(jnp.sum(x * x, axis, keepdims=keepdims))),
    "ArgMax": lambda x, axis=0, keepdims=1: jnp.argmax(x, axis, keepdims=bool(keepdims)),
    "Cast": _cast,
    "Transpose": lambda x, perm: jnp.transpose(x, perm),
    "Reshape": _reshape,
    "Flatten": lambda x, axis=1: jnp.reshape(x, (int(np.prod(x.shape[:axis])), -1)),
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Expand": lambda x, shape: jnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_ints(shape)))),
    "Concat": lambda *parts, axis: jnp.concatenate(parts, axis),
    "Split": _split,
    "Slice": _slice,
    "Gather": lambda x, indices, axis=0: jnp.take(x, indices, axis),
    "Where": jnp.where,
    "MatMul": jnp.matmul,
    "Gemm": _gemm,
}
"""ONNX operators; each is called with a node's inputs and attributes."""

"""ONNX files that no exporter writes: broken bytes, and graphs that break the rules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from fuzz.graphs import random_graph
from fuzz.wide import random_wide

Mutation = Callable[[ModelProto, np.random.Generator], None]

_HUGE = (1 << 31, (1 << 62) + 1, 10**18, (1 << 63) - 1, -1, -(1 << 63), 0)
_DEPTH = 12
_CHAIN = 2000


def hostile_model(seed: int) -> tuple[str, bytes]:
    """Returns the mutation of a random graph, and the resulting file."""
    rng = np.random.default_rng([seed, 3])
    # Those of all operators reach more of the front end, and the other ones more of the passes.
    model = random_graph(seed) if rng.random() < 0.3 else random_wide(seed)
    kind = int(rng.integers(len(_BYTE_MUTATIONS) + len(_GRAPH_MUTATIONS)))
    if kind < len(_BYTE_MUTATIONS):
        damage = _BYTE_MUTATIONS[kind]
        return damage.__name__.strip("_"), damage(model.SerializeToString(), rng)
    mutation = _GRAPH_MUTATIONS[kind - len(_BYTE_MUTATIONS)]
    mutation(model, rng)
    return mutation.__name__.strip("_"), model.SerializeToString()


def _flip_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    damaged = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def _truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def _repeat_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    start, end = sorted(int(at) for at in rng.integers(len(data), size=2))
    return data[:end] + data[start:end] * int(rng.integers(1, 50)) + data[end:]


def _append_garbage(data: bytes, rng: np.random.Generator) -> bytes:
    return data + bytes(rng.integers(0, 256, int(rng.integers(1, 100_000)), dtype=np.uint8))


_BYTE_MUTATIONS = (_flip_bytes, _truncate, _repeat_bytes, _append_garbage)


def _a_node(model: ModelProto, rng: np.random.Generator) -> onnx.NodeProto:
    nodes = [node for node in model.graph.node if node.input]
    return nodes[int(rng.integers(len(nodes)))]  # type: ignore[no-any-return]


def _a_value(model: ModelProto, rng: np.random.Generator) -> onnx.ValueInfoProto:
    values = [*model.graph.input, *model.graph.output]
    return values[int(rng.integers(len(values)))]  # type: ignore[no-any-return]


def _a_size(rng: np.random.Generator) -> int:
    return _HUGE[int(rng.integers(len(_HUGE)))]


def _huge_dims(model: ModelProto, rng: np.random.Generator) -> None:
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if rng.random() < 0.5:
                dim.dim_value = _a_size(rng)


def _all_dims_alike(model: ModelProto, rng: np.random.Generator) -> None:
    """Sets all dims of inputs and outputs to one size. The model stays consistent, so it gets far; the number of
    elements overflows, or is zero."""
    size = _a_size(rng)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_value = size


def _other_rank(model: ModelProto, rng: np.random.Generator) -> None:
    shape = _a_value(model, rng).type.tensor_type.shape
    rank = int(rng.choice([0, 1, 20, 100]))
    del shape.dim[:]
    for _ in range(rank):
        shape.dim.add(dim_value=int(rng.integers(0, 3)))


def _other_type(model: ModelProto, rng: np.random.Generator) -> None:
    _a_value(model, rng).type.tensor_type.elem_type = int(rng.choice([0, 8, 10, 14, 15, 17, 21, 99, -1]))


def _no_type(model: ModelProto, rng: np.random.Generator) -> None:
    _a_value(model, rng).ClearField("type")


def _named_dims(model: ModelProto, rng: np.random.Generator) -> None:
    for dim in _a_value(model, rng).type.tensor_type.shape.dim:
        dim.dim_param = str(rng.choice(["batch", "", "a b", "\u0000", "N" * 10_000]))


def _dangling_name(model: ModelProto, rng: np.random.Generator) -> None:
    node = _a_node(model, rng)
    node.input[int(rng.integers(len(node.input)))] = str(rng.choice(["nobody", "", "\u2603", "x" * 100_000]))


def _dangling_output(model: ModelProto, rng: np.random.Generator) -> None:
    model.graph.output[0].name = "nobody"


def _cycle(model: ModelProto, rng: np.random.Generator) -> None:
    node = _a_node(model, rng)
    node.input[0] = model.graph.node[-1].output[0]


def _defined_twice(model: ModelProto, rng: np.random.Generator) -> None:
    _a_node(model, rng).output[0] = _a_node(model, rng).output[0]


def _output_is_input(model: ModelProto, rng: np.random.Generator) -> None:
    model.graph.output[0].CopyFrom(model.graph.input[0])


def _other_operator(model: ModelProto, rng: np.random.Generator) -> None:
    operators = ["", "Nonsense", "Conv", "LSTM", "NonZero", "If", "Einsum", "Resize", "TopK", "\u0000", "Add"]
    _a_node(model, rng).op_type = str(rng.choice(operators))


def _other_arity(model: ModelProto, rng: np.random.Generator) -> None:
    node = _a_node(model, rng)
    if rng.random() < 0.5:
        del node.input[int(rng.integers(len(node.input))) :]
    else:
        node.input.extend([node.input[0]] * int(rng.integers(1, 300)))


def _no_outputs(model: ModelProto, rng: np.random.Generator) -> None:
    del _a_node(model, rng).output[:]


def _other_attribute(model: ModelProto, rng: np.random.Generator) -> None:
    node = _a_node(model, rng)
    names = [attribute.name for attribute in node.attribute] or ["axis", "to", "perm", "keepdims"]
    del node.attribute[:]
    values = (_a_size(rng), 99, [_a_size(rng)] * 3, [0, 0], float("nan"), "text")
    value = values[int(rng.integers(len(values)))]
    node.attribute.append(helper.make_attribute(names[int(rng.integers(len(names)))], value))


def _changed_attribute(model: ModelProto, rng: np.random.Generator) -> None:
    """Changes a number or a text of one attribute, so that many models stay valid in form."""
    attributes = [attribute for node in model.graph.node for attribute in node.attribute]
    if not attributes:
        return
    attribute = attributes[int(rng.integers(len(attributes)))]
    number = _a_number(rng)
    match attribute.type:
        case AttributeProto.INT:
            attribute.i = number
        case AttributeProto.INTS if attribute.ints and rng.random() < 0.7:
            attribute.ints[int(rng.integers(len(attribute.ints)))] = number
        case AttributeProto.INTS:
            attribute.ints[:] = [number] * int(rng.integers(0, 6))
        case AttributeProto.FLOAT:
            attribute.f = float(rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e38]))
        case AttributeProto.STRING:
            attribute.s = bytes(rng.choice([b"", b"reflect", b"wrap", b"SAME_UPPER", b"\xff", b"x" * 10_000]))
        case AttributeProto.TENSOR:
            _spoil(attribute.t, rng)


def _changed_constant(model: ModelProto, rng: np.random.Generator) -> None:
    """Changes a number of a constant of integers, which axes, shapes, pads, slices and indices are."""
    integers = (TensorProto.INT64, TensorProto.INT32)
    held = [tensor for tensor in model.graph.initializer if tensor.data_type in integers]
    if held:
        _spoil(held[int(rng.integers(len(held)))], rng)


def _spoil(tensor: onnx.TensorProto, rng: np.random.Generator) -> None:
    """Sets one element, or all, to a number of the tensor's type, or changes the number of dims or elements."""
    array = numpy_helper.to_array(tensor).copy()
    if not np.issubdtype(array.dtype, np.integer):
        return
    ends = np.iinfo(array.dtype)
    number = min(max(_a_number(rng), int(ends.min)), int(ends.max))
    match int(rng.integers(4)):
        case 0:
            array[...] = number
        case 1:
            array = np.repeat(array.reshape(-1), int(rng.integers(0, 4)))
        case 2:
            array = array.reshape(1, *array.shape)
        case _ if array.size:
            array.reshape(-1)[int(rng.integers(array.size))] = number
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _a_number(rng: np.random.Generator) -> int:
    return int(rng.integers(-3, 9)) if rng.random() < 0.5 else _a_size(rng)


def _other_versions(model: ModelProto, rng: np.random.Generator) -> None:
    del model.opset_import[:]
    if rng.random() < 0.7:
        model.opset_import.add(domain="", version=int(rng.choice([-1, 0, 1, 6, 999, 1 << 62])))
    model.ir_version = int(rng.choice([0, 1, 3, 9, 99, 1 << 62]))


def _broken_initializer(model: ModelProto, rng: np.random.Generator) -> None:
    if not model.graph.initializer:
        model.graph.initializer.append(helper.make_tensor("c0", TensorProto.FLOAT, [1], [1.0]))
    tensor = model.graph.initializer[int(rng.integers(len(model.graph.initializer)))]
    match int(rng.integers(6)):
        case 0:
            tensor.dims[:] = [_a_size(rng) for _ in range(int(rng.integers(1, 4)))]
        case 1:
            tensor.raw_data = tensor.raw_data[:-1]
        case 2:
            tensor.data_type = int(rng.choice([0, 8, 10, 15, 21, 99]))
        case 3:
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="../../../../etc/passwd")
        case 4:
            tensor.dims[:] = [1] * 20
        case _:
            tensor.name = ""


def _shape_operand(model: ModelProto, rng: np.random.Generator) -> None:
    """Adds a Reshape or Expand to an impossible shape."""
    shape = [_a_size(rng) for _ in range(int(rng.choice([1, 3, 20])))]
    model.graph.initializer.append(helper.make_tensor("shape", TensorProto.INT64, [len(shape)], shape))
    op = str(rng.choice(["Reshape", "Expand", "Tile", "ConstantOfShape"]))
    first = model.graph.input[0]
    operands = ["shape"] if op == "ConstantOfShape" else [first.name, "shape"]
    model.graph.node.append(helper.make_node(op, operands, ["extra"]))
    dtype = TensorProto.FLOAT if op == "ConstantOfShape" else first.type.tensor_type.elem_type
    rank = len(first.type.tensor_type.shape.dim)
    ranks = {"Tile": rank, "Expand": max(rank, len(shape))}
    # Without a type and rank of its own, the value would be refused before its operand is looked at.
    unknown = [None] * ranks.get(op, len(shape))
    model.graph.output.append(helper.make_tensor_value_info("extra", dtype, unknown))


def _deep_nesting(model: ModelProto, rng: np.random.Generator) -> None:
    """Nests If within If within If."""
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], value_float=1.0)], "leaf", [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )  # fmt: skip
    for depth in range(int(rng.integers(1, _DEPTH))):
        node = helper.make_node("If", ["condition"], [f"y{depth}"], then_branch=inner, else_branch=inner)
        output = helper.make_tensor_value_info(f"y{depth}", TensorProto.FLOAT, [])
        inner = helper.make_graph([node], f"level{depth}", [], [output])
    model.graph.input.append(helper.make_tensor_value_info("condition", TensorProto.BOOL, []))
    model.graph.node.extend(inner.node)


def _long_chain(model: ModelProto, rng: np.random.Generator) -> None:
    last = model.graph.input[0].name
    op = str(rng.choice(["Neg", "Identity", "Not", "Exp"]))
    for link in range(int(rng.integers(1, _CHAIN))):
        model.graph.node.append(helper.make_node(op, [last], [f"link{link}"]))
        last = f"link{link}"
    model.graph.output.append(model.graph.input[0])
    model.graph.output[-1].name = last


def _without_graph(model: ModelProto, rng: np.random.Generator) -> None:
    for field in rng.permutation(["graph", "opset_import", "ir_version"])[: int(rng.integers(1, 3))]:
        model.ClearField(str(field))


def _without_part(model: ModelProto, rng: np.random.Generator) -> None:
    model.graph.ClearField(str(rng.choice(["node", "input", "output", "initializer", "name"])))


# What is repeated is drawn more often.
_GRAPH_MUTATIONS: tuple[Mutation, ...] = (
    _huge_dims,
    _all_dims_alike,
    _other_rank,
    _other_type,
    _no_type,
    _named_dims,
    _dangling_name,
    _dangling_output,
    _cycle,
    _defined_twice,
    _output_is_input,
    _other_operator,
    _other_arity,
    _no_outputs,
    _other_attribute,
    _changed_attribute,
    _changed_attribute,
    _changed_attribute,
    _changed_constant,
    _changed_constant,
    _changed_constant,
    _other_versions,
    _broken_initializer,
    _shape_operand,
    _deep_nesting,
    _long_chain,
    _without_graph,
    _without_part,
)

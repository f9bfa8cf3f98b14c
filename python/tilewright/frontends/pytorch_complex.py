"""Complex numbers of exported programs as pairs of real tensors, because IREE's importer refuses most ops on them, and
no kernel of ours has them.

Each op on complex tensors has a rule, which computes the real and the imaginary part by ops on real tensors. The rule
is traced, and its ops replace the node.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from tilewright.frontends.pytorch_complex_rules import CONSTANTS, find_rule
from tilewright.frontends.pytorch_pairs import Complex

Constants = dict[str, torch.Tensor]


def spell_out_complex(program: Any, table: dict[Any, Callable[..., Any]], *, name: str) -> Constants:
    """Replaces the complex values of an exported program, in place, and returns the tensors that it holds then
    in addition, by name.

    A program with complex inputs or outputs, or with an op without a rule, is left as it is. `table` spells out the
    ops of the rules. Raises `ModelError` for a Fourier transform that is too long.
    """
    has_complex = any(map(_is_complex, program.graph.nodes))
    return _Pass(program, table, name).run() if has_complex and _can_spell_out(program) else {}


def _can_spell_out(program: Any) -> bool:
    signature = program.graph_signature
    outside = {*signature.user_inputs, *signature.user_outputs}
    for node in program.graph.nodes:
        if node.name in outside and _is_complex(node):
            return False
        if _touches_complex(node) and find_rule(node.target) is None:
            return False
    return True


def _touches_complex(node: Node) -> bool:
    return node.op == "call_function" and any(map(_is_complex, [node, *node.all_input_nodes]))


def _is_complex(node: Node) -> bool:
    return any(_has_complex_type(value) for value in _pytree.tree_leaves(node.meta.get("val")))


def _has_complex_type(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


class _Pass:
    def __init__(self, program: Any, table: dict[Any, Callable[..., Any]], name: str) -> None:
        self._program, self._table, self._name = program, table, name
        self._graph: Graph = program.graph
        self._values: dict[Node, Any] = {}
        """Nodes of the parts of each complex node."""
        self._held: Constants = {}
        self._mode = next(
            node.meta["val"].fake_mode
            for node in self._graph.nodes
            if hasattr(node.meta.get("val"), "fake_mode")
        )

    def run(self) -> Constants:
        for node in list(self._graph.nodes):
            if node.op == "placeholder" and _is_complex(node):
                self._values[node] = self._split_held(node)
            elif _touches_complex(node):
                self._replace(node)
        for node in reversed(self._values):
            self._graph.erase_node(node)
        return self._held

    def _split_held(self, node: Node) -> Complex:
        """Splits a parameter, buffer or constant of the program."""
        specs = self._program.graph_signature.input_specs
        at = next(at for at, spec in enumerate(specs) if getattr(spec.arg, "name", None) == node.name)
        target = specs[at].target
        held = {**self._program.state_dict, **self._program.constants}[target]
        parts = [self._hold(f"{target}.{part}", getattr(held, part)) for part in ("real", "imag")]
        del specs[next(at for at, spec in enumerate(specs) if spec.target == target)]
        return Complex(*parts)

    def _hold(self, target: str, tensor: torch.Tensor) -> Node:
        """Returns a new input of the graph for a tensor that the program holds."""
        target = next(each for each in _names(target) if each not in self._held)
        self._held[target] = tensor.detach().contiguous()
        with self._graph.inserting_before(next(iter(self._graph.nodes))):
            node = self._graph.placeholder(target.replace(".", "_"))
        with self._mode:
            node.meta["val"] = torch.empty(tensor.shape, dtype=tensor.dtype)
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target)
        self._program.graph_signature.input_specs.insert(0, spec)
        return node

    def _replace(self, node: Node) -> None:
        rule = find_rule(node.target)
        assert rule is not None
        held = [self._hold(f"{node.name}.wave{i}", one) for i, one in enumerate(_constants(node, self._name))]
        arguments = ([*node.args, *held], dict(node.kwargs))
        leaves, tree = _pytree.tree_flatten(arguments, is_leaf=lambda leaf: isinstance(leaf, Node))
        leaves, tree = _pytree.tree_flatten(
            _pytree.tree_unflatten([self._parts(leaf) for leaf in leaves], tree)
        )
        nodes = [leaf for leaf in leaves if isinstance(leaf, Node)]

        def compute(*tensors: Any) -> Any:
            rest = iter(tensors)
            given = [next(rest) if isinstance(leaf, Node) else leaf for leaf in leaves]
            args, kwargs = _pytree.tree_unflatten(given, tree)
            # The tracer takes plain tuples only.
            return _pytree.tree_map(_as_tuple, rule(*args, **kwargs), is_leaf=_is_pair)

        with self._mode, torch.no_grad():
            traced = make_fx(compute, decomposition_table=self._table)(*(each.meta["val"] for each in nodes))
        result = self._inline(traced.graph, nodes, node)
        if _is_complex(node):
            is_single = isinstance(node.meta["val"], torch.Tensor)
            self._values[node] = Complex(*result) if is_single else [Complex(*each) for each in result]
        else:
            node.replace_all_uses_with(result)
            for spec in self._program.graph_signature.output_specs:
                if isinstance(spec.arg, TensorArgument) and spec.arg.name == node.name:
                    spec.arg = TensorArgument(result.name)
            self._graph.erase_node(node)

    def _parts(self, leaf: Any) -> Any:
        return self._values.get(leaf, leaf) if isinstance(leaf, Node) else leaf

    def _inline(self, traced: Graph, inputs: Sequence[Node], node: Node) -> Any:
        """Copies the ops of a traced rule before a node, and returns its results."""
        copies: dict[Node, Node] = dict(
            zip((each for each in traced.nodes if each.op == "placeholder"), inputs, strict=True)
        )
        with self._graph.inserting_before(node):
            for each in traced.nodes:
                if each.op == "call_function":
                    copies[each] = self._graph.node_copy(each, copies.__getitem__)
                    copies[each].meta = {**node.meta, "val": each.meta["val"]}
                    copies[each].meta.pop("tensor_meta", None)
        results = traced.output_node().args[0]
        return torch.fx.node.map_arg(results, copies.__getitem__)


def _is_pair(value: Any) -> bool:
    return isinstance(value, Complex)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, Complex) else value


def _constants(node: Node, name: str) -> Sequence[torch.Tensor]:
    make = CONSTANTS.get(node.target)
    if make is None:
        return ()
    x = node.args[0]
    assert isinstance(x, Node)
    return make(x.meta["val"], *node.args[1:], where=name)


def _names(base: str) -> Iterator[str]:
    return itertools.chain([base], (f"{base}.{count}" for count in itertools.count(1)))

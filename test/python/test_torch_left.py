"""Ops that the back end of torch.compile leaves to PyTorch: each is found, and the rest is ours."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from torch_cases import assert_close, compare
from torch_compile_cases import assert_ours, compiled, left

torch = pytest.importorskip("torch")


backend = pytest.importorskip("tilewright.torch.backend")


nn = torch.nn


pytestmark = pytest.mark.usefixtures("fresh_torch_backend")


def test_random_numbers_are_those_of_pytorch() -> None:
    def function(x: Any) -> Any:
        return nn.functional.dropout(torch.softmax(x @ x.T, -1), 0.5) @ x

    x = torch.randn(33, 40)
    with torch.no_grad():
        torch.manual_seed(3)
        result = compiled(function)(x)
        torch.manual_seed(3)
        expected = torch.compile(function, backend="aot_eager")(x)
    compare(result, expected.double())
    assert any("it draws random numbers" in note for note in left())


def test_complex_numbers_are_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return torch.fft.fft(torch.softmax(x, -1) * 3).abs() + x.square().sum(-1, keepdim=True)

    x = torch.randn(33, 40)
    with torch.no_grad():
        result = compiled(function)(x)
    assert_close(result, function, (x,))
    assert any("tensors of complex64 are not supported" in note or "fft" in note for note in left())


def test_shapes_that_depend_on_data_are_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return (x[x > 0] * 2).sum() + torch.softmax(x, -1).square().sum()

    x = torch.randn(33, 40)
    with torch.no_grad():
        assert_close(compiled(function)(x), function, (x,))
    reasons = importlib.import_module("torch._dynamo.utils").counters["graph_break"]  # of this process so far
    assert any(
        "aten.nonzero" in reason for reason in reasons
    )  # PyTorch runs it between two graphs, which are ours
    assert len(backend.reports) == 2
    assert_ours()


def test_bytes_without_a_sign_are_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return (x // 3).float().softmax(-1), x.max()

    x = torch.randint(0, 256, (33, 40), dtype=torch.uint8)
    with torch.no_grad():
        result, largest = compiled(function)(x)
    compare(result, (x // 3).double().softmax(-1))
    assert largest == x.max()
    assert any("tensors of uint8 are not supported" in note for note in left())


def test_memory_read_with_other_strides_is_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return torch.as_strided(x.softmax(-1), (31, 40), (40, 1), 80) * 2

    x = torch.randn(33, 40)
    with torch.no_grad():
        torch.testing.assert_close(compiled(function)(x), function(x))
    assert any("as_strided" in note for note in left())


def test_the_op_that_fails_is_found_where_the_error_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = importlib.import_module("tilewright.torch.graphs")
    original = graphs.compile_part

    def fail_without_a_place(module: Any, options: Any) -> Any:
        if name_remainder(module):
            raise graphs.CompileError("somewhere")
        return original(module, options)

    def name_remainder(module: Any) -> list[Any]:
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        return [(node, "alone, too") for node in nodes if "remainder" in str(node.target)]

    def function(x: Any) -> Any:
        return torch.remainder(x.softmax(-1) * 7, 2.0).tanh()

    monkeypatch.setattr(graphs, "compile_part", fail_without_a_place)
    monkeypatch.setattr(graphs, "failing_nodes", name_remainder)
    x = torch.randn(33, 40)
    with torch.no_grad():
        torch.testing.assert_close(compiled(function)(x), function(x))
    assert left() == ["remainder: alone, too"]


def test_ops_that_the_front_end_refuses_are_found() -> None:
    part = importlib.import_module("tilewright.torch.part")
    make_fx = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
    graph = make_fx(lambda x: (torch.fmod(x, 40), x.abs()), tracing_mode="fake")(torch.arange(35))
    assert [node.name for node, _ in part.failing_nodes(graph)] == ["fmod"]


def test_an_op_that_fails_to_compile_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = importlib.import_module("tilewright.torch.graphs")

    def function(x: Any) -> Any:
        return torch.cumsum(torch.softmax(x, -1), -1).tanh() + x

    original = graphs.compile_part

    def fail_on_cumsum(module: Any, options: Any) -> Any:
        for node in module.graph.nodes:
            if node.op == "call_function" and "cumsum" in node.name:
                error = graphs.CompileError("no such luck", location=f'loc("{node.name}")')
                raise error
        return original(module, options)

    monkeypatch.setattr(graphs, "compile_part", fail_on_cumsum)
    x = torch.randn(33, 40)
    with torch.no_grad():
        assert_close(compiled(function)(x), function, (x,))
    assert left() == ["cumsum: no such luck"]


def test_quantised_tensors_are_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        coarse = torch.quantize_per_tensor(x.softmax(-1), 0.01, 0, torch.quint8)
        return coarse.dequantize() * 2 + x

    x = torch.randn(33, 40)
    with torch.no_grad():
        torch.testing.assert_close(compiled(function)(x), function(x))


def test_an_unknown_op_is_left_to_pytorch() -> None:
    schema = "(Tensor x) -> Tensor"
    halve = torch.library.custom_op("tilewright_test::halve", lambda x: x / 2, mutates_args=(), schema=schema)
    halve.register_fake(torch.empty_like)

    def function(x: Any) -> Any:
        return halve(torch.softmax(x, -1)).tanh() @ x.T

    x = torch.randn(33, 40)
    with torch.no_grad():
        torch.testing.assert_close(compiled(function)(x), function(x))
    assert any("halve: the importer does not know it" in note for note in left())
    assert backend.reports[-1].kernels > 0


@pytest.mark.parametrize("is_changed", [False, True])
def test_inputs_that_share_memory_are_right(*, is_changed: bool) -> None:
    def function(x: Any, y: Any) -> Any:
        if is_changed:
            x.mul_(2.0)
        return torch.softmax(x @ y.T, -1) + y.sum()

    memory = torch.randn(34, 40)
    expected_memory = memory.clone()
    expected = function(expected_memory[:33], expected_memory[1:])
    with torch.no_grad():
        found = compiled(function)(memory[:33], memory[1:])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(memory, expected_memory)


def test_tensors_of_other_devices_are_left_to_pytorch() -> None:
    def function(x: Any) -> Any:
        return torch.softmax(x @ x.T, -1)

    with torch.no_grad():
        result = compiled(function)(torch.ones(33, 40, device="meta"))
    assert result.device.type == "meta" and result.shape == (33, 33)
    assert any("it is on meta" in note for note in left())


def test_another_stride_dtype_or_shape_at_a_later_call_is_right() -> None:
    def function(x: Any) -> Any:
        return torch.softmax(x @ x.transpose(0, 1), -1)

    run = compiled(function)
    wide = torch.randn(33, 80)
    with torch.no_grad():
        for x in (wide[:, :40], wide[:, ::2], torch.randn(40, 33).t(), wide[:, :40].double(), wide):
            torch.testing.assert_close(run(x), function(x))
    assert left() == []

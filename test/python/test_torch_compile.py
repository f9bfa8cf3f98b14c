"""The back end of torch.compile: inference, training, dynamic shapes, and what it leaves to PyTorch."""

from __future__ import annotations

import copy
import importlib
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from torch_cases import assert_close, compare

torch = pytest.importorskip("torch")
backend = pytest.importorskip("tilewright.torch.backend")
nn = torch.nn

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Makes the test independent of what was compiled before it."""
    torch._dynamo.reset()
    backend.reports.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=backend.tilewright, options={"threads": 1, **options})


def left() -> list[str]:
    """Returns the notes on what was left to PyTorch."""
    return [note for report in backend.reports for note in report.left]


def assert_ours() -> None:
    """Asserts that kernels of ours ran, and nothing was left to PyTorch, which agrees with itself on any question."""
    assert left() == []
    assert backend.reports and all(report.kernels for report in backend.reports)
    assert {report.runs_in for report in backend.reports} == {"tilewright"}


class Vision(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 9, 3)
        )
        self.head = nn.Linear(9, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.features(x).mean((2, 3)))


class Masked(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, x: Any, mask: Any) -> Any:
        mixed, weights = self.attention(x, x, x, attn_mask=mask)
        return {"mixed": mixed + x, "weights": weights}


def attend(q: Any, k: Any, v: Any) -> Any:
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


CASES: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "mlp": lambda: (
        nn.Sequential(nn.Linear(17, 33), nn.GELU(), nn.Linear(33, 9), nn.Softmax(-1)),
        (torch.randn(5, 17),),
    ),
    "norms": lambda: (
        nn.Sequential(nn.LayerNorm(19), nn.Linear(19, 40), nn.RMSNorm(40), nn.GroupNorm(5, 40)),
        (torch.randn(7, 19),),
    ),
    "attention": lambda: (attend, tuple(torch.randn(2, 3, 11, 16) for _ in range(3))),
    "attention with a mask": lambda: (
        Masked(),
        (torch.randn(2, 7, 24), torch.ones(7, 7, dtype=torch.bool).triu(1)),
    ),
    "encoder": lambda: (nn.TransformerEncoderLayer(24, 3, 40, batch_first=True), (torch.randn(2, 7, 24),)),
    "encoder, norm first": lambda: (
        nn.TransformerEncoderLayer(24, 3, 40, batch_first=True, norm_first=True, activation="gelu"),
        (torch.randn(2, 7, 24),),
    ),
    "vision": lambda: (Vision(), (torch.randn(2, 3, 13, 11),)),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(97, 31), nn.Linear(31, 13)),
        (torch.randint(0, 97, (3, 11)),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_inference(name: str) -> None:
    function, arguments = CASES[name]()
    if isinstance(function, nn.Module):
        function.eval()
    with torch.no_grad():
        result = compiled(function)(*arguments)
    assert_close(result, function, arguments)
    assert_ours()


@pytest.mark.parametrize("name", ["mlp", "norms"])
def test_bf16(name: str) -> None:
    function, arguments = CASES[name]()
    function, arguments = function.eval().bfloat16(), tuple(x.bfloat16() for x in arguments)
    with torch.no_grad():
        result = compiled(function)(*arguments)
    assert result.dtype == torch.bfloat16
    assert_close(result, function, arguments)
    assert_ours()


@pytest.mark.parametrize("name", ["mlp", "norms", "attention with a mask", "vision", "embedding"])
def test_gradients(name: str) -> None:
    function, arguments = CASES[name]()
    reference = copy.deepcopy(function).double()
    wide = tuple(x.double() if x.is_floating_point() else x for x in arguments)
    for model, given in ((compiled(function), arguments), (reference, wide)):
        result = model(*given)
        result = result["mixed"] if isinstance(result, dict) else result
        (result * torch.linspace(0.5, 1.5, result.shape[-1], dtype=result.dtype)).square().sum().backward()
    assert {report.kind for report in backend.reports} == {"forward", "backward"}
    # A bias in front of a norm has a gradient of zero but for rounding errors, so the largest gradient is the scale.
    largest = max(float(want.grad.abs().max()) for want in reference.parameters())
    for got, want in zip(function.parameters(), reference.parameters(), strict=True):
        compare(got.grad, want.grad, scale=largest)


def test_training_steps_see_updated_weights() -> None:
    module = nn.Sequential(nn.Linear(17, 33), nn.LayerNorm(33), nn.GELU(), nn.Linear(33, 9))
    reference = copy.deepcopy(module).double()
    x, y = torch.randn(5, 17), torch.randint(0, 9, (5,))
    for model, held, given in (
        (compiled(module), module, x),
        (reference, reference, x.double()),
    ):
        optimizer = torch.optim.SGD(held.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(given), y).backward()
            optimizer.step()
    for got, want in zip(module.parameters(), reference.parameters(), strict=True):
        compare(got, want)


def test_inference_sees_updated_weights() -> None:
    module = nn.Linear(33, 40).eval()
    x = torch.randn(5, 33)
    run = compiled(module)
    with torch.no_grad():
        run(x)
        module.weight.mul_(2.0)
        assert_close(run(x), module, (x,))
        module.weight.data = torch.randn(40, 33)
        assert_close(run(x), module, (x,))
    assert_ours()


def test_running_statistics_are_updated() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    reference = copy.deepcopy(module).double()
    x = torch.randn(4, 3, 9, 7)
    with torch.no_grad():
        compare(compiled(module)(x), reference(x.double()))
    for got, want in zip(module.buffers(), reference.buffers(), strict=True):
        compare(got, want)


def test_graph_breaks_give_several_graphs() -> None:
    def function(x: Any) -> Any:
        y = torch.softmax(x @ x.T, -1) @ x
        torch._dynamo.graph_break()
        return (y * 2).tanh() + y

    x = torch.randn(33, 41)
    with torch.no_grad():
        result = compiled(function)(x)
    assert_close(result, function, (x,))
    assert len(backend.reports) == 2


def test_every_dynamic_shape_is_compiled_once() -> None:
    def function(x: Any) -> Any:
        return torch.softmax(x @ x.transpose(-1, -2), -1) * x.shape[0]

    run = torch.compile(function, backend=backend.tilewright, dynamic=True, options={"threads": 1})
    with torch.no_grad():
        for rows in (33, 35, 33, 35):
            x = torch.randn(rows, 41)
            assert_close(run(x), function, (x,))
    assert [report.runs_in for report in backend.reports] == ["tilewright", "tilewright"]


def test_shapes_beyond_the_limit_run_in_eager_mode() -> None:
    def function(x: Any) -> Any:
        return torch.softmax(x * 2, -1)

    run = torch.compile(function, backend=backend.tilewright, dynamic=True, options={"most_shapes": 1})
    with torch.no_grad():
        for rows in (33, 35):
            x = torch.randn(rows, 41)
            assert_close(run(x), function, (x,))
    assert [report.runs_in for report in backend.reports] == ["tilewright", "eager"]


def test_gradients_of_dynamic_shapes() -> None:
    module = nn.Sequential(nn.Linear(17, 33), nn.GELU(), nn.Linear(33, 9))
    reference = copy.deepcopy(module).double()
    run = torch.compile(module, backend=backend.tilewright, dynamic=True, options={"threads": 1})
    for rows in (40, 41):
        x = torch.randn(rows, 17)
        run(x).square().sum().backward()
        reference(x.double()).square().sum().backward()
    for got, want in zip(module.parameters(), reference.parameters(), strict=True):
        compare(got.grad, want.grad)


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


def test_nan_stays_where_pytorch_keeps_it() -> None:
    def function(x: Any, y: Any) -> Any:
        z = x * 1.0
        return (
            torch.maximum(x, y),
            torch.minimum(y, x),
            x.clamp(-0.5, 0.5),
            z == z,
            x.relu(),
            nn.functional.relu6(x),
            x.argmax(1),
            y.argmin(),
        )

    x, y = torch.randn(33, 40), torch.randn(33, 40)
    x[::2, ::3], y[::5] = float("nan"), float("nan")
    with torch.no_grad():
        results = compiled(function)(x, y)
    for got, want in zip(results, function(x, y), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


def test_negative_indices_count_from_the_end() -> None:
    def function(x: Any, rows: Any, index: Any) -> Any:
        return torch.index_put(x, (index,), rows, accumulate=True) * 2, x[index] + rows

    x, rows, index = torch.randn(33, 40), torch.randn(5, 40), torch.tensor([-1, 0, -33, 7, -1])
    with torch.no_grad():
        results = compiled(function)(x, rows, index)
    for got, want in zip(results, function(x.double(), rows.double(), index), strict=True):
        compare(got, want)


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


def test_outputs_that_alias_inputs_stay_views() -> None:
    def function(x: Any) -> Any:
        return x.t(), torch.softmax(x, -1)

    x = torch.randn(33, 40)
    with torch.no_grad():
        turned, _ = compiled(function)(x)
    assert turned.data_ptr() == x.data_ptr()
    assert turned.stride() == x.t().stride()
    assert_ours()


def test_inputs_are_mutated() -> None:
    def function(x: Any) -> Any:
        x.mul_(2.0)
        return torch.softmax(x, -1)

    x = torch.randn(33, 40)
    before = x.clone()
    with torch.no_grad():
        result = compiled(function)(x)
    assert torch.equal(x, before * 2)
    compare(result, torch.softmax(before.double() * 2, -1))
    assert_ours()


def test_strides_are_those_of_pytorch() -> None:
    def function(x: Any) -> Any:
        return (x.t() * 2).tanh(), x.permute(1, 0).softmax(0)

    for x in (torch.randn(33, 40), torch.randn(40, 33).t()):
        with torch.no_grad():
            results = compiled(function)(x)
        for got, want in zip(results, function(x), strict=True):
            assert got.stride() == want.stride()
            torch.testing.assert_close(got, want)
    assert_ours()


def test_inductor_takes_graphs_that_are_not_ours_alone() -> None:
    def function(x: Any) -> Any:
        return torch.fft.fft(torch.softmax(x, -1)).abs()

    x = torch.randn(33, 40)
    with torch.no_grad():
        result = compiled(function, fallback="inductor")(x)
    assert_close(result, function, (x,))
    assert backend.reports[-1].runs_in == "inductor"


@pytest.mark.parametrize("options", [{"fallbck": "eager"}, {"fallback": "jit"}, {"most_shapes": -1}])
def test_unknown_options_are_refused_by_name(options: dict[str, Any]) -> None:
    [(name, _)] = options.items()
    with pytest.raises(Exception, match=rf"{name}.*|.*{name}"):
        torch.compile(torch.sin, backend=backend.tilewright, options=options)(torch.ones(3))


def test_explain_says_what_ran_where() -> None:
    with torch.no_grad():
        compiled(lambda x: torch.fft.fft(torch.softmax(x @ x.T, -1)).abs())(torch.randn(33, 40))
    [report] = backend.reports
    text = backend.explain()
    assert text.startswith("inference graph: ")
    assert f"{report.kernels} kernel" in text and report.kernels > 0
    assert report.left and all(note in text for note in report.left)


def test_pytorch_finds_the_back_end_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not installed here, so its entry points are put on the path as an installer would."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = tmp_path / "tilewright-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: tilewright\nVersion: 0\n")
    points = project["entry-points"]["torch_dynamo_backends"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (installed / "entry_points.txt").write_text("\n".join(["[torch_dynamo_backends]", *lines]) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = importlib.import_module("torch._dynamo.backends.registry")
    monkeypatch.setattr(registry, "_BACKENDS", dict(registry._BACKENDS))
    monkeypatch.setattr(registry, "_COMPILER_FNS", dict(registry._COMPILER_FNS))
    registry._discover_entrypoint_backends.cache_clear()
    registry._discover_entrypoint_backends()
    assert registry.lookup_backend("tilewright") is backend.tilewright

"""The back end of torch.compile: inference, and what stays as PyTorch has it."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest
from torch_cases import assert_close, compare
from torch_compile_cases import CASES, assert_ours, compiled

torch = pytest.importorskip("torch")


backend = pytest.importorskip("tilewright.torch.backend")


nn = torch.nn


ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.usefixtures("fresh_torch_backend")


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

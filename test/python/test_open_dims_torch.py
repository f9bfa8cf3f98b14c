"""PyTorch's modules and exported programs with open dims."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.errors import InputError, ModelError
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")
nn = torch.nn

WIDTH, HEADS = 24, 3
_LONGEST_SECONDS = 600.0  # that a compilation in the background may take on a busy machine


class Encoder(nn.Module):  # type: ignore[misc,name-defined]
    """Attention with an optional mask and a feed-forward part; small weights are constants of the module."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Any, mask: Any = None) -> dict[str, Any]:
        batch, length, _ = x.shape
        heads = self.project(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = heads[0] @ heads[1].transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None, :] < 0.5, -1e4)
        attended = (scores.softmax(-1) @ heads[2]).transpose(1, 2).reshape(batch, length, WIDTH)
        hidden = self.norm(x + self.out(attended))
        return {"hidden": hidden + self.mlp(hidden), "pooled": hidden.mean(1)}


def _inputs(batch: int, length: int) -> tuple[Any, Any]:
    torch.manual_seed(batch + length)
    return torch.randn(batch, length, WIDTH), torch.rand(batch, length).lt(0.7).float()


pytestmark = pytest.mark.usefixtures("full_priority")


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(0)
    return Encoder().eval()


@pytest.fixture(scope="module")
def exported(module: Any) -> Any:
    batch, seq = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("seq", max=64)
    shapes = {"x": {0: batch, 1: seq}, "mask": {0: batch, 1: seq}}
    return torch.export.export(module, _inputs(3, 7), dynamic_shapes=shapes)


def _input(program: tilewright.Program, position: int) -> str:
    assert program.signature is not None
    return str(program.signature.inputs[position])


def _settle(program: tilewright.Program) -> None:
    end = time.monotonic() + _LONGEST_SECONDS
    while any(shape.state in ("waiting", "compiling") for shape in program.shapes):
        assert time.monotonic() < end, program.explain()
        time.sleep(0.05)


def test_an_exported_program_gets_kernels_for_shapes(module: Any, exported: Any) -> None:
    program = tilewright.compile(exported, threads=1)
    assert _input(program, 0) == "x: float32[batchxseqx24]"
    for sizes in ((2, 5), (1, 9)):
        assert_close(program(*_inputs(*sizes)), module, _inputs(*sizes))
    _settle(program)
    for sizes in ((2, 5), (1, 9)):
        assert_close(program(*_inputs(*sizes)), module, _inputs(*sizes))
    assert [(shape.state, shape.kernels > 0) for shape in program.shapes] == [("ready", True)] * 2


def test_bounds_of_the_export_are_checked(exported: Any) -> None:
    program = tilewright.compile(exported, threads=1)
    with pytest.raises(InputError, match=r"dim 0 \('batch'\) is 9, but the program was compiled for 1 to 8"):
        program(*_inputs(9, 5))


def test_fixed_dims_make_a_static_program(module: Any, exported: Any) -> None:
    program = tilewright.compile(exported, threads=1, dims={"batch": 2, "seq": 5})
    assert program.kernels and _input(program, 0) == "x: float32[2x5x24]"
    assert_close(program(*_inputs(2, 5)), module, _inputs(2, 5))


def test_a_saved_export_goes_by_places(module: Any, exported: Any, tmp_path: Path) -> None:
    torch.export.save(exported, tmp_path / "encoder.pt2")
    program = tilewright.compile(tmp_path / "encoder.pt2", threads=1, dims={"mask.0": 2, "x.1": [5]})
    assert [dict(shape.sizes) for shape in program.metadata.shapes] == [{"x.1": 5}]
    loaded = tilewright.load(program.save(tmp_path / "encoder.vmfb"))
    for length in (5, 6):
        assert_close(loaded(*_inputs(2, length)), module, _inputs(2, length))


def test_a_module_names_its_open_dims(module: Any) -> None:
    dims = {"x.0": (1, 8), "x.1": (1, 64), "mask.0": (1, 8), "mask.1": (1, 64)}
    program = tilewright.compile(module, threads=1, example_inputs=_inputs(3, 7), dims=dims)
    assert _input(program, 1) == "mask: float32[x.0xx.1]"
    program.build({"x.0": 1, "x.1": 4})
    for sizes in ((1, 4), (2, 5)):
        assert_close(program(*_inputs(*sizes)), module, _inputs(*sizes))
    assert program.shapes[0].kernels


def test_weights_are_those_of_the_compilation(module: Any) -> None:
    """A shape that is compiled later must not see what training has changed meanwhile."""
    changing = Encoder().eval()
    changing.load_state_dict(module.state_dict())
    program = tilewright.compile(changing, threads=1, example_inputs=_inputs(3, 7)[:1], dims={"x.1": (1, 64)})
    with torch.no_grad():
        for weights in changing.parameters():
            weights.mul_(3.0)
    changing.half()  # gives it other memory
    program.build({"x.1": 4})
    assert_close(program(*_inputs(3, 4)[:1]), module, _inputs(3, 4)[:1])


def test_dims_that_a_module_does_not_have_are_refused(module: Any) -> None:
    with pytest.raises(ModelError, match=r"no dim of its inputs is called 'y\.0'; name an input and an axis"):
        tilewright.compile(module, example_inputs=_inputs(3, 7), dims={"y.0": 1})


def test_a_thread_of_ours_waits_for_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a module is exported, PyTorch keeps what it notes of ops in one table for all threads."""
    from tilewright.frontends import pytorch_dims

    graph = torch.export.export(module_of(torch.relu), (torch.ones(3),)).graph
    (name,) = (node.name for node in graph.nodes if node.op == "placeholder")
    pytorch_dims._run(graph, {name: [5]})  # the first time takes longer
    fixed: list[Any] = []
    thread = threading.Thread(target=lambda: fixed.append(pytorch_dims._run(graph, {name: [5]})))
    with monkeypatch.context() as exporting:
        exporting.setattr(torch.compiler, "_is_exporting_flag", True)
        thread.start()
        thread.join(1)
        assert not fixed
    thread.join(60)
    assert fixed

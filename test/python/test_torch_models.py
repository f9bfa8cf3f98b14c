"""Programs of PyTorch modules: compiled from modules, exported programs and .pt2 files, and called like the module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.errors import InputError, IreeError, ModelError
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")
nn = torch.nn

ROWS, COLUMNS, HIDDEN = 5, 17, 33


class Nested(nn.Module):  # type: ignore[misc,name-defined]
    """Takes a mapping, a flag and an optional mask; returns nested results with a constant, and one tensor twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.LayerNorm(HIDDEN), nn.GELU())
        self.register_buffer("shift", torch.arange(float(HIDDEN)))

    def forward(self, batch: dict[str, Any], *, scale: int = 2, mask: Any = None) -> dict[str, Any]:
        hidden = self.inner(batch["x"]) * scale + self.shift
        if mask is not None:
            hidden = hidden.masked_fill(mask, 0.0)
        return {"hidden": hidden, "rest": (hidden.sum(-1), None, scale), "again": hidden}


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(0)
    return Nested().eval()


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    torch.manual_seed(1)
    return {"batch": {"x": torch.randn(ROWS, COLUMNS)}, "scale": 2, "mask": torch.rand(ROWS, HIDDEN) < 0.3}


@pytest.fixture(scope="module")
def program(module: Any, examples: dict[str, Any]) -> tilewright.Program:
    return tilewright.compile(module, threads=1, example_inputs=examples)


def test_is_called_like_the_module(
    program: tilewright.Program, module: Any, examples: dict[str, Any]
) -> None:
    assert_close(program(**examples), module, (), examples)


def test_order_of_keywords_does_not_matter(program: tilewright.Program, examples: dict[str, Any]) -> None:
    turned = dict(reversed(examples.items()))
    assert torch.equal(program(**turned)["hidden"], program(**examples)["hidden"])


def test_has_the_names_of_the_module(program: tilewright.Program) -> None:
    assert program.signature is not None
    assert [spec.name for spec in program.signature.inputs] == ["batch_x", "mask"]
    assert [spec.name for spec in program.signature.outputs] == ["hidden", "rest.0", "again"]
    assert "inner.1/" in program.explain()


def test_weights_are_parameters_with_the_names_of_the_module(program: tilewright.Program) -> None:
    from iree import runtime

    index = runtime.ParameterIndex()
    index.load(str(program.parameter_paths["model"]))
    assert any("inner.0.weight" in name for name, _ in index.items())


def test_arrays_give_arrays(program: tilewright.Program, examples: dict[str, Any]) -> None:
    batch = {"x": examples["batch"]["x"].numpy()}
    result = program(batch=batch, scale=2, mask=examples["mask"].numpy())
    assert isinstance(result["hidden"], np.ndarray)
    np.testing.assert_array_equal(result["hidden"], program(**examples)["hidden"].numpy())


def test_results_do_not_share_memory(program: tilewright.Program, examples: dict[str, Any]) -> None:
    result = program(**examples)
    before = result["again"].clone()
    result["hidden"].zero_()
    assert torch.equal(result["again"], before)


def test_a_result_that_is_an_input_is_a_copy() -> None:
    class Same(nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x.clone(), x + 1

    x = torch.zeros(16, 16)
    program = tilewright.compile(Same(), threads=1, example_inputs=(x,))
    same, _ = program(x)
    same.fill_(7.0)
    assert x.max() == 0


def test_a_constant_result_survives_its_reader() -> None:
    class Constant(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(512.0))

        def forward(self, x: Any) -> Any:
            return self.table, x + self.table

    x = torch.zeros(512)
    program = tilewright.compile(Constant(), threads=1, example_inputs=(x,))
    program(x)[0].zero_()
    table, moved = program(x)
    assert torch.equal(table, torch.arange(512.0))
    assert torch.equal(moved, torch.arange(512.0))


@pytest.mark.parametrize(
    "change", [lambda x: x[:, ::2], lambda x: x.t().contiguous().t()[:, :9], lambda x: x[0:, 9:]]
)
def test_strided_and_unaligned_inputs_are_right(change: Any) -> None:
    class Twice(nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x * 2

    x = change(torch.randn(7, 18))
    program = tilewright.compile(Twice(), threads=1, example_inputs=(torch.zeros(7, 9),))
    assert torch.equal(program(x), x * 2)


def test_takes_an_exported_program_and_a_saved_one(
    module: Any, examples: dict[str, Any], tmp_path: Path
) -> None:
    exported = torch.export.export(module, (), examples)
    torch.export.save(exported, tmp_path / "model.pt2")
    for model in (exported, tmp_path / "model.pt2", str(tmp_path / "model.pt2")):
        assert_close(tilewright.compile(model, threads=1)(**examples), module, (), examples)


def test_saved_programs_keep_the_structure(
    program: tilewright.Program, module: Any, examples: dict[str, Any], tmp_path: Path
) -> None:
    loaded = tilewright.load(program.save(tmp_path / "model.vmfb"))
    assert_close(loaded(**examples), module, (), examples)


def test_tied_weights_are_stored_once() -> None:
    class Tied(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(97, 31)
            self.head = nn.Linear(31, 97, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: Any) -> Any:
            return self.head(self.embed(tokens))

    module = Tied().eval()
    tokens = torch.randint(0, 97, (3, 11))
    program = tilewright.compile(module, threads=1, example_inputs=(tokens,))
    assert_close(program(tokens), module, (tokens,))
    assert len(list(program.parameter_paths)) == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_types(dtype: str) -> None:
    kind = getattr(torch, dtype)
    module = nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.LayerNorm(HIDDEN), nn.SiLU()).eval().to(kind)
    x = torch.randn(ROWS, COLUMNS).to(kind)
    result = tilewright.compile(module, threads=1, example_inputs=(x,))(x)
    assert result.dtype == kind
    assert_close(result, module, (x,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, e: p(e["batch"]), "not nested like the example inputs"),
        (lambda p, e: p(**{**e, "scale": 3}), "3 was given but the program was compiled for 2"),
        (lambda p, e: p(**{**e, "mask": e["mask"].float()}), "dtype float32 was given but bool is needed"),
        (
            lambda p, e: p(**{**e, "mask": e["mask"][:3]}),
            r"shape \(3, 33\) was given but \(5, 33\) is needed",
        ),
        (lambda p, e: p(**{**e, "mask": e["mask"].to("meta")}), "it is on meta, not in CPU memory"),
    ],
)
def test_wrong_arguments_are_named(
    program: tilewright.Program, examples: dict[str, Any], call: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        call(program, examples)


def test_a_module_without_examples_is_refused(module: Any) -> None:
    with pytest.raises(ModelError, match="needs example inputs"):
        tilewright.compile(module)


def test_a_module_that_export_cannot_trace_is_refused() -> None:
    class Loop(nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(ModelError, match=r"torch.export cannot trace it.*torch.compile"):
        tilewright.compile(Loop(), example_inputs=(torch.ones(3),))


def test_a_module_that_changes_its_buffers_is_refused() -> None:
    module = nn.BatchNorm1d(7).train()
    with pytest.raises(ModelError, match=r"changes 'running_mean' .*module.eval\(\)"):
        tilewright.compile(module, example_inputs=(torch.ones(3, 7),))


class _Positions(nn.Module):  # type: ignore[misc,name-defined]
    """Normalises the sum of two embeddings, which IREE compiles without us."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(99, COLUMNS), nn.Embedding(40, COLUMNS)
        self.norm = nn.LayerNorm(COLUMNS)

    def forward(self, words: Any) -> Any:
        return self.norm(self.words(words) + self.places(torch.arange(words.shape[1])))


def test_what_only_a_check_of_its_type_reads_is_not_computed(tmp_path: Path) -> None:
    """`Tensor.to` leaves such a check in what is exported."""

    def keep(x: Any) -> Any:
        x.gather(1, x.topk(1)[1]).to(x.dtype)  # a model may make what it does not use
        return x * 2

    tilewright.compile(module_of(keep), threads=1, example_inputs=(torch.randn(5, 7),), dump_dir=tmp_path)
    assert "topk" not in (tmp_path / "1-input.mlir").read_text()


def test_small_weights_may_be_bf16() -> None:
    """IREE converts the type of a small constant to f32, and its elements, too, only if it can see them."""
    module, words = _Positions().bfloat16(), torch.randint(0, 99, (2, 13))
    program = tilewright.compile(module, threads=1, example_inputs=(words,))
    assert_close(program(words), module, (words,))


def test_an_op_of_another_library_is_refused_by_name() -> None:
    op = torch.library.custom_op(
        "someones::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    op.register_fake(torch.empty_like)
    with pytest.raises(ModelError, match=r"calls 'someones::twice'.*torch.compile"):
        tilewright.compile(module_of(op), example_inputs=(torch.ones(3),))


def test_ops_that_nobody_compiles_are_refused_by_name() -> None:
    x = torch.ones(3, 3)
    with pytest.raises(ModelError, match=r"calls 'aten::linalg_cholesky_ex'.*lacks; torch.compile"):
        tilewright.compile(module_of(torch.linalg.cholesky), example_inputs=(x,))
    with pytest.raises(
        ModelError, match=r"_fft_r2c'.*importer lacks; make complex .* real by torch.view_as_real"
    ):
        tilewright.compile(module_of(torch.fft.rfft), example_inputs=(x,))
    with pytest.raises(IreeError, match=r"linalg_qr.*; torch.compile"):
        tilewright.compile(module_of(torch.linalg.qr), example_inputs=(x,))


def test_a_damaged_pt2_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"no zip archive")
    with pytest.raises(ModelError, match="not a program of torch"):
        tilewright.compile(path)


def test_torch_is_not_imported_for_other_models() -> None:
    script = '''
import sys
import tilewright
text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
import numpy
tilewright.compile(text, threads=1)(numpy.ones(4, numpy.float32))
assert "torch" not in sys.modules
'''
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_a_missing_torch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"anything")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"PyTorch is not installed.*tilewright\[torch\]"):
        tilewright.compile(path)

"""IREE's lowering of ONNX without its inference of shapes, for modules whose types have all sizes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx.parser
import pytest
from tilewright.errors import CompileError, IreeError
from tilewright.frontends import ImportedModel, import_model
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.static_onnx import has_all_sizes, is_lowered, keeps_lowering
from tilewright.worker.process import Worker, WorkerDied, WorkerTooSlow

_FLAGS = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
_STATIC = """<ir_version: 8, opset_import: ["": 17]>
network (float[2, 3, 8, 8] x, float[4, 3, 3, 3] w, float[144, 5] m) => (float[2, 5] y) {
    image = Conv(x, w)
    positive = Relu(image)
    rows = Flatten(positive)
    product = MatMul(rows, m)
    y = Softmax(product)
}"""
_OPEN = _STATIC.replace("[2, 3, 8, 8]", "[N, 3, 8, 8]").replace("[2, 5]", "[N, 5]")
_UNKNOWN_OP = b"""
func.func @f(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
    attributes {torch.onnx_meta.opset_version = 17 : si64} {
  %y = torch.operator "onnx.NoSuchOp"(%x) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
  return %y : !torch.vtensor<[2],f32>
}"""


@pytest.fixture
def iree(tmp_path: Path) -> Iterator[IreeCompiler]:
    with Worker(tmp_path) as worker:
        yield IreeCompiler(worker)


def _imported(text: str, iree: IreeCompiler, folder: Path) -> ImportedModel:
    return import_model(onnx.parser.parse_model(text), compiler=iree, directory=folder)


def _lowered(source: bytes, iree: IreeCompiler, *, is_static: bool) -> str:
    return iree.compile_to(source, "preprocessing", flags=_FLAGS, is_static_onnx=is_static)


def test_a_model_whose_tensors_have_sizes_is_static(iree: IreeCompiler, tmp_path: Path) -> None:
    assert _imported(_STATIC, iree, tmp_path).is_static_onnx


def test_a_model_with_an_open_dim_is_not_static(iree: IreeCompiler, tmp_path: Path) -> None:
    assert not _imported(_OPEN, iree, tmp_path).is_static_onnx


@pytest.mark.parametrize("model", [_STATIC, _OPEN], ids=["static", "open"])
def test_the_result_is_that_of_the_whole_pipeline(model: str, iree: IreeCompiler, tmp_path: Path) -> None:
    """The open model is said to be static, so its result has open sizes, and the whole pipeline must follow."""
    source = _imported(model, iree, tmp_path).source
    assert _lowered(source, iree, is_static=True) == _lowered(source, iree, is_static=False)


_SHORT = """
import sys
from tilewright.iree import service, static_onnx
header = {"process_flags": [], "flags": sys.argv[2:], "name": "m", "from": None, "to": "preprocessing"}
source = open(sys.argv[1], "rb").read()
text = service._run_pipeline(header, source, [], verifies=True, first=static_onnx.PIPELINE)
assert text is not None and static_onnx.is_lowered(text)
"""


def test_a_static_model_needs_no_inference_of_shapes(iree: IreeCompiler, tmp_path: Path) -> None:
    """IREE's flags are global, so this runs in a process of its own."""
    (tmp_path / "model.mlirbc").write_bytes(_imported(_STATIC, iree, tmp_path).source)
    subprocess.run([sys.executable, "-c", _SHORT, str(tmp_path / "model.mlirbc"), *_FLAGS], check=True)


class _Dying:
    """A worker that dies of a lowering without a verifier, and answers the whole one with it."""

    def __init__(self, death: WorkerDied) -> None:
        self._death = death

    def ask(self, header: dict[str, Any], _blob: bytes, **_: Any) -> tuple[dict[str, Any], bytes, str]:
        if header["is_static_onnx"] or not header["verifies"]:
            raise self._death
        return {"ok": True}, b"whole", ""


@pytest.mark.parametrize("is_static", [True, False])
def test_a_death_of_the_quick_lowering_is_survived(*, is_static: bool) -> None:
    iree = IreeCompiler(_Dying(WorkerDied("died by SIGSEGV", "")))  # type: ignore[arg-type]
    assert _lowered(b"", iree, is_static=is_static) == "whole"


def test_a_module_that_no_parser_verifies_has_the_verifier() -> None:
    """Nothing parses a VM module as IR."""
    iree = IreeCompiler(_Dying(WorkerTooSlow("took too long", "")))  # type: ignore[arg-type]
    assert iree.compile(b"", flags=_FLAGS) == b"whole"


def test_a_lowering_beyond_the_time_limit_is_not_repeated() -> None:
    iree = IreeCompiler(_Dying(WorkerTooSlow("took too long", "")))  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="took too long"):
        _lowered(b"", iree, is_static=True)


def test_the_error_is_that_of_the_whole_pipeline(iree: IreeCompiler) -> None:
    messages = []
    for is_static in (True, False):
        with pytest.raises(IreeError) as caught:
            _lowered(_UNKNOWN_OP, iree, is_static=is_static)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "NoSuchOp" in messages[0]


@pytest.mark.parametrize("text", [b"tensor<2x3xf32>, vector<2xf32>", b"tensor<f32> to what?"])
def test_lowered_modules_have_sizes(text: bytes) -> None:
    assert is_lowered(text)


@pytest.mark.parametrize("text", [b"tensor<2x?xf32>", b"tensor<*xf32>"])
def test_modules_with_open_sizes_are_not_lowered(text: bytes) -> None:
    assert not is_lowered(text)


@pytest.mark.parametrize(
    "kind",
    [
        "!torch.vtensor<[2,?],f32>",
        "!torch.vtensor<*,f32>",
        "!torch.vtensor",
        "!torch.tensor<[?],f16>",
        "!torch.list<vtensor<[?],f32>>",
    ],
)
def test_types_that_lack_a_size(kind: str) -> None:
    assert has_all_sizes("(%x: !torch.vtensor<[2,3],f32>) -> !torch.list<vtensor>")
    assert not has_all_sizes(f"(%x: !torch.vtensor<[2,3],f32>) -> {kind} {{")


def test_flags_that_change_the_lowering_are_left_to_iree() -> None:
    assert keeps_lowering(["--iree-opt-data-tiling"])
    assert not keeps_lowering(["--iree-opt-data-tiling", "--iree-torch-decompose-complex-ops=false"])

"""The generator of `tilewright.passes`, tested on records in TableGen's format."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = Path(__file__).parents[2] / "python" / "bindings" / "generate_passes.py"
    spec = importlib.util.spec_from_file_location("generate_passes", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records(anchor: str, *options: dict[str, Any]) -> dict[str, Any]:
    named = {f"anonymous_{i}": o for i, o in enumerate(options)}
    thing = {
        "!name": "FoldHTTPThings",
        "argument": "fold-http-things",
        "summary": "Fold things",
        "description": "\n    Arrives: things.\n      Leaves: \\fewer.\n  ",
        "baseClass": f"::mlir::OperationPass<{anchor}>",
        "options": [{"def": name} for name in named],
    }
    return {"!instanceof": {"PassBase": ["FoldHTTPThings"]}, "FoldHTTPThings": thing, **named}


def option(
    argument: str, kind: str, default: str = "", *, kinds: tuple[str, ...] = ("Option",)
) -> dict[str, Any]:
    return {
        "argument": argument,
        "type": kind,
        "defaultValue": default,
        "description": "what it is",
        "!superclasses": list(kinds),
    }


def test_a_pass_becomes_a_documented_function(generator: ModuleType) -> None:
    text = generator.generate(records("::mlir::func::FuncOp"))
    assert "def fold_http_things(module: Module) -> list[Diagnostic]:" in text
    assert '"""Fold things.' in text
    assert "      Leaves: \\\\fewer." in text
    assert 'run_pass(module, "fold-http-things", anchor="func.func", options={})' in text
    compile(text, "generated", "exec")


def test_options_become_typed_keywords(generator: ModuleType) -> None:
    text = generator.generate(
        records(
            "",
            option("most-bytes", "int64_t", "1024"),
            option("share", "double", "0.5"),
            option("deep", "bool", "true"),
            option("path", "std::string", '""'),
            option("class", "std::string"),
            option("sizes", "int64_t", kinds=("Option", "ListOption")),
            option("scope", "::tilewright::tile::Scope", "Scope::block"),
        )
    )
    expected = (
        "module: Module, *, most_bytes: int = 1024, share: float = 0.5, deep: bool = True, "
        'path: str = "", class_: str | None = None, sizes: Sequence[int] = (), scope: str | None = None'
    )
    assert expected in text
    assert '"class": class_' in text
    compile(text, "generated", "exec")


@pytest.mark.parametrize(
    ("anchor", "name"),
    [
        ("", "builtin.module"),
        ("::mlir::ModuleOp", "builtin.module"),
        ("::tilewright::tile::SubprogramOp", "tile.subprogram"),
    ],
)
def test_the_anchor_is_the_name_of_the_op(generator: ModuleType, anchor: str, name: str) -> None:
    assert f'anchor="{name}"' in generator.generate(records(anchor))


def test_an_op_of_no_known_name_is_an_error(generator: ModuleType) -> None:
    with pytest.raises(generator.GenerationError, match="FoldHTTPThings"):
        generator.generate(records("::other::ThingOp"))

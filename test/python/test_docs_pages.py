"""The documentation as text: links, lengths, names, the site's navigation, generated pages, stored results."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from doc_pages import GENERATED, ROOT, anchors, blocks, pages, prose, text_of

from benchmarks.collected import MOST_FILES, load_runs, superseded

MOST_WORDS = 1500
README_WORDS = 600

_OUTSIDE_THE_SITE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/", "dialects/")


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    wrong = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", prose(page)):
        if path.startswith("http") or path.startswith("%"):  # `%a` is a value in an example of IR
            continue
        target = os.path.normpath(Path(page).parent / path) if path else page
        if not (ROOT / target).exists():
            wrong.append(path)
        elif anchor and target.endswith(".md") and anchor not in anchors(target):
            wrong.append(f"{path}#{anchor}")
    assert not wrong


@pytest.mark.parametrize("page", pages())
def test_a_page_is_short(page: str) -> None:
    """Everything counts, as `wc -w` does: code, tables and the targets of links."""
    assert len(text_of(page).split()) <= MOST_WORDS


def test_the_readme_fits_a_screen() -> None:
    assert len(text_of("README.md").split()) <= README_WORDS


@pytest.mark.parametrize("page", [page for page in pages() if page.startswith("docs/")])
def test_a_page_opens_with_its_answer(page: str) -> None:
    """The first paragraph has a sentence in bold: the answer, or the question of a reference page."""
    text = text_of(page)
    if page.startswith("docs/reference/") and text.startswith(GENERATED):
        pytest.skip("generated from tables that have no introduction")
    _, _, rest = text.partition("\n\n")
    assert rest.startswith("**")


def test_the_site_has_every_page() -> None:
    """mkdocs.yml is read as text, because YAML and mkdocs are not installed everywhere."""
    listed = set(re.findall(r"^\s+- (?:[^:\n]+: )?([\w/-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE))
    assert listed == {
        page.removeprefix("docs/") for page in pages() if not page.startswith(_OUTSIDE_THE_SITE)
    }


def test_the_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: scripts/site.sh")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr


def _reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


_REFERENCE = _reference()


@pytest.mark.parametrize("path", _REFERENCE.PAGES)
def test_a_generated_page_is_what_its_sources_say(path: str) -> None:
    if missing := _REFERENCE.missing_tools():
        pytest.skip(f"{', '.join(missing)} not at hand")
    assert text_of(path) == _REFERENCE.text_of(path), "run scripts/reference"


def test_every_pass_is_in_the_reference() -> None:
    contracts = "".join(path.read_text() for path in (ROOT / "passes").rglob("Passes.td"))
    defined = set(re.findall(r'Pass<"(tile-[a-z-]+)"', contracts))
    table = text_of("docs/reference/passes.md")
    assert set(re.findall(r"^\| \[`(tile-[a-z-]+)`", table, re.MULTILINE)) == defined


@pytest.mark.parametrize("page", pages())
def test_names_of_python_exist(page: str) -> None:
    """Every `tilewright.…` that a page names can be imported."""
    named = set(re.findall(r"`(tilewright(?:\.\w+)+)", prose(page)))
    assert not {name for name in named if not _exists(name)}


def _exists(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


@pytest.mark.parametrize("page", pages())
def test_names_of_passes_exist(page: str) -> None:
    contracts = "".join(path.read_text() for path in (ROOT / "passes").rglob("Passes.td"))
    defined = set(re.findall(r'Pass<"(tile-[a-z-]+)"', contracts))
    hidden = {"tile-inject-failure"}  # defined in C++ alone, because it serves tests
    assert set(re.findall(r"`(tile-[a-z-]+)[`{]", prose(page))) <= defined | hidden


def test_every_block_says_its_language() -> None:
    """Only blocks in a language can be run or checked; output and tables of numbers are `text`."""
    unknown = {
        (page, block.language)
        for page in pages()
        for block in blocks(page)
        if block.language not in ("python", "sh", "mlir", "c", "cpp", "cmake", "text", "")
    }
    assert not unknown


def test_results_are_the_newest_of_their_kind() -> None:
    runs = load_runs()
    assert not superseded(runs), "run benchmarks/report --prune"
    assert len(runs) <= MOST_FILES


def test_licence_is_named_and_there() -> None:
    assert 'license = "Apache-2.0 WITH LLVM-exception"' in text_of("pyproject.toml")
    licence = text_of("LICENSE")
    assert "Apache License" in licence and "LLVM Exceptions to the Apache 2.0 License" in licence


@pytest.mark.parametrize("name", ["souffle", "fusionstitching", "welder", "powerfusion", "chimera"])
def test_papers_are_cited(name: str) -> None:
    assert name in text_of("CITATION.cff").lower()
    assert name in text_of("docs/design/rationale.md").lower()


def test_scripts_that_documents_name_are_executable() -> None:
    named = {
        match
        for page in pages()
        for match in re.findall(r"\b(?:scripts|benchmarks|examples)/[\w-]+(?:\.sh)?(?![\w./])", text_of(page))
        if (ROOT / match).is_file()
    }
    assert {"scripts/demo.sh", "scripts/test.sh", "scripts/reference", "benchmarks/report"} <= named
    assert all(os.access(Path(ROOT / name), os.X_OK) for name in named)

"""A saved program runs with its own weights or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tilewright
from saved_programs import (
    Case,
    content_hash,
    flip,
)
from tilewright.runtime.held import PIECE_BYTES


def test_weights_of_another_program_are_refused(saved: Path, other: Case, tmp_path: Path) -> None:
    theirs = other.program.save(tmp_path / "theirs.vmfb")
    weights = saved.with_suffix(".irpa")
    expected, found = content_hash(weights), content_hash(theirs.with_suffix(".irpa"))
    assert theirs.with_suffix(".irpa").stat().st_size == weights.stat().st_size
    shutil.copy(theirs.with_suffix(".irpa"), weights)
    message = (
        rf"product\.irpa: it does not contain the weights of product\.vmfb: truncated, changed or replaced "
        rf"\(content hash {found[:12]}\.\.\. instead of {expected[:12]}\.\.\.\); put back the files that were saved"
    )
    with pytest.raises(tilewright.ProgramError, match=message):
        tilewright.load(saved)


def test_a_module_of_another_program_is_refused(small: Case, large: Case, tmp_path: Path) -> None:
    mine, theirs = small.program.save(tmp_path / "mine.vmfb"), large.program.save(tmp_path / "theirs.vmfb")
    shutil.copy(theirs, mine)
    with pytest.raises(
        tilewright.ProgramError, match=r"mine\.vmfb: it is not the module that mine\.json describes"
    ):
        tilewright.load(mine)


def test_a_description_of_another_program_is_refused(small: Case, large: Case, tmp_path: Path) -> None:
    mine, theirs = small.program.save(tmp_path / "mine.vmfb"), large.program.save(tmp_path / "theirs.vmfb")
    shutil.copy(theirs.with_suffix(".json"), mine.with_suffix(".json"))
    with pytest.raises(
        tilewright.ProgramError, match=r"mine\.vmfb: it is not the module that mine\.json describes"
    ):
        tilewright.load(mine)


def test_a_description_of_the_same_module_with_other_weights_is_refused(
    saved: Path, other: Case, tmp_path: Path
) -> None:
    theirs = other.program.save(tmp_path / "theirs.vmfb")
    shutil.copy(theirs, saved)
    shutil.copy(theirs.with_suffix(".json"), saved.with_suffix(".json"))
    with pytest.raises(
        tilewright.ProgramError, match=r"product\.irpa: it does not contain the weights of product\.vmfb"
    ):
        tilewright.load(saved)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_one_flipped_byte_of_the_weights_is_found(saved: Path, share: float) -> None:
    weights = saved.with_suffix(".irpa")
    flip(weights, int(share * (weights.stat().st_size - 1)))
    with pytest.raises(tilewright.ProgramError, match=r"product\.irpa: .* \(content hash"):
        tilewright.load(saved)


def test_a_changed_description_is_refused(saved: Path) -> None:
    path = saved.with_suffix(".json")
    path.write_text(path.read_text().replace('"threads": 1', '"threads": 2'))
    with pytest.raises(tilewright.ProgramError, match=r"product\.json: it was changed after it was saved"):
        tilewright.load(saved)


def test_a_description_without_hashes_is_refused(saved: Path) -> None:
    path = saved.with_suffix(".json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "format": 1, "module_sha256": data.pop("module")["sha256"]}))
    with pytest.raises(
        tilewright.ProgramError, match=r"format 1, this one reads 2.*; compile the model again"
    ):
        tilewright.load(saved)


def test_weights_without_a_description_are_not_taken_unseen(saved: Path, case: Case) -> None:
    saved.with_suffix(".json").unlink()
    missing = r"product\.json: it is missing, so nothing says whether product\.irpa holds the weights of product\.vmfb"
    with pytest.raises(tilewright.ProgramError, match=missing):
        tilewright.load(saved)
    case.check(tilewright.load(saved, verify=False))


def test_who_wants_no_hashing_still_gets_the_size_checked(saved: Path) -> None:
    weights = saved.with_suffix(".irpa")
    flip(weights, weights.stat().st_size - 1)
    tilewright.load(saved, verify=False)
    with weights.open("ab") as file:
        file.write(b"?")
    with pytest.raises(tilewright.ProgramError, match=r"product\.irpa: .* bytes instead of"):
        tilewright.load(saved, verify=False)


def test_the_content_hash_is_that_of_the_hashes_of_the_pieces(tmp_path: Path) -> None:
    data = np.random.default_rng().bytes(2 * PIECE_BYTES + 12345)
    for size in (0, 1, PIECE_BYTES, PIECE_BYTES + 1, len(data)):
        (tmp_path / "file").write_bytes(data[:size])
        pieces = [
            data[start : min(start + PIECE_BYTES, size)] for start in range(0, max(size, 1), PIECE_BYTES)
        ]
        hashes = [hashlib.sha256(piece).digest() for piece in pieces]
        expected = hashes[0] if len(hashes) == 1 else hashlib.sha256(b"".join(hashes)).digest()
        assert content_hash(tmp_path / "file") == expected.hex()

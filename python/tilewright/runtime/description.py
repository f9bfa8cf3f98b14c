"""The description that lies beside a saved module (.json): the program's metadata, and the hashes of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import ProgramError
from tilewright.records.encoding import check_kinds, parse_json
from tilewright.runtime.held import HeldFile
from tilewright.runtime.metadata import Metadata, check_metadata
from tilewright.system.version import package_version

FORMAT = 2
"""Version of the description's format. Format 1 did not say which weights belong to the module."""


@dataclass(frozen=True)
class FileRecord:
    """What a description records of one file: its size and the hash of its content."""

    bytes: int
    sha256: str

    def require(self, file: HeldFile, *, otherwise: str, verify: bool) -> None:
        file.expect(self.bytes, self.sha256, otherwise=otherwise, verify=verify)


@dataclass(frozen=True)
class FileRecords:
    """What a description records of the files that belong to it."""

    module: FileRecord
    parameters: Mapping[str, FileRecord]
    """Weights by scope."""


def read_description(path: Path) -> tuple[Metadata, FileRecords]:
    """Reads what `description_text` wrote; raises `ProgramError` if it was changed, or written by another version."""
    try:
        data = parse_json(path.read_text())
        if data["format"] != FORMAT:
            raise ProgramError(
                f"written by another version of Tilewright (format {data['format']}, this one reads {FORMAT})",
                where=str(path),
                hint="compile the model again",
            )
        if data != signed(data):
            raise ProgramError(
                "it was changed after it was saved",
                where=str(path),
                hint="put back the files that were saved together, or compile the model again",
            )
        metadata = Metadata.from_json(data)
        check_metadata(metadata)
        records = FileRecords(
            FileRecord(**data["module"]),
            {scope: FileRecord(**record) for scope, record in data["parameters"].items()},
        )
        check_kinds(FileRecords, records, "program")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ProgramError(
            f"malformed description: {error!r}", where=str(path), hint="compile the model again"
        ) from None
    return metadata, records


def description_text(metadata: Metadata, records: FileRecords) -> str:
    """Returns the content of the .json."""
    data = {
        "format": FORMAT,
        "tilewright": package_version(),
        **asdict(records),
        **metadata.to_json(),
    }
    return json.dumps(signed(json.loads(json.dumps(data))), indent=1)


def signed(description: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the description with a hash of its content, which shows that it is unchanged since it was saved."""
    rest = {name: value for name, value in description.items() if name != "sha256"}
    return {**rest, "sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}

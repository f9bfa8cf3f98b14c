"""The tuning database: an SQLite file that several processes may use at once.

Every measurement is written at once, so that an interrupted tuning continues where it stopped. A decision is the winner
among the measurements of one key (`subprograms.Setting.key`): those of a subprogram, or of a region. The plan of a
program follows from the decisions on its regions, and is stored with them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from tilewright.errors import PlanError, TuningError
from tilewright.records.encoding import parse_json
from tilewright.records.plan import Plan
from tilewright.records.report import Measured
from tilewright.system.outputs import refuse_special

_APPLICATION = 0x54574C54  # "TWLT", SQLite's application id of our databases
_VERSION = 3
_WAIT_SECONDS = 10.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS measurements (
    key TEXT NOT NULL, candidate TEXT NOT NULL, seconds REAL, problem TEXT NOT NULL, PRIMARY KEY (key, candidate)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decisions (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, plan TEXT NOT NULL,
    seconds REAL NOT NULL, unmeasured_seconds REAL NOT NULL, unfused_seconds REAL,
    ratio REAL NOT NULL, ratio_low REAL NOT NULL, ratio_high REAL NOT NULL,
    candidates INTEGER NOT NULL, machine TEXT NOT NULL, measured_at TEXT NOT NULL, region_ops INTEGER NOT NULL,
    form TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS programs (
    key TEXT PRIMARY KEY, target TEXT NOT NULL, plan TEXT NOT NULL, proofs TEXT NOT NULL, measured_at TEXT NOT NULL
) WITHOUT ROWID;
"""


_ADDED_COLUMNS = {
    1: "ALTER TABLE decisions ADD COLUMN region_ops INTEGER NOT NULL DEFAULT 0",
    2: "ALTER TABLE decisions ADD COLUMN form TEXT NOT NULL DEFAULT ''",
}
"""What each older version lacks."""


@dataclass(frozen=True, kw_only=True)
class Decision(Measured):
    """The plan that won for a subprogram, with its margin."""

    key: str
    name: str
    """Name of the kernel that it was measured in, for people."""
    target: str
    plan: Plan
    """Seconds of the subprogram alone."""

    @property
    def is_fused(self) -> bool:
        return len(self.plan.kernels) == 1


_COLUMNS = list(Decision.__dataclass_fields__)
_PROGRAM_COLUMNS = "key, target, plan, proofs, measured_at"

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_COLUMNS, str),
    **dict.fromkeys(("seconds", "unmeasured_seconds", "ratio", "ratio_low", "ratio_high"), float),
    "unfused_seconds": (float, NoneType),
    "candidates": int,
    "region_ops": int,
}
"""Types that SQLite returns for our columns; a foreign file may hold anything."""


@dataclass(frozen=True, kw_only=True)
class RegionProof:
    """The measurement behind the kernels of a region of a program."""

    ops: tuple[int, ...]
    """Numbers of the region's ops in the plan."""
    key: str
    """Key of the decision."""


@dataclass(frozen=True, kw_only=True)
class ProgramDecision:
    """The plan of a whole program with the kernels that won in its regions."""

    key: str
    target: str
    plan: Plan
    proofs: tuple[RegionProof, ...]
    """Measurements of kernels of the plan. Of several that a kernel is in, the first is about its fusion."""
    measured_at: str


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Seconds of a candidate, or the reason why there are none."""

    seconds: float | None
    problem: str = ""


class Database:
    """An open database. Raises `TuningError` if the file cannot be used because it is damaged, locked or foreign."""

    def __init__(self, path: Path, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self.path = path
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connection(path, wait_seconds)
            try:
                self._prepare(wait_seconds)
            except BaseException:
                self._connection.close()
                raise

    @staticmethod
    def existing(path: Path) -> Database:
        """Returns an existing database; raises `TuningError` if there is none."""
        if not path.is_file():
            raise TuningError("no such file", where=str(path), hint="`tilewright tune` makes one")
        if path.stat().st_size == 0:
            raise TuningError("is empty", where=str(path), hint="`tilewright tune` fills it")
        return Database(path)

    def _prepare(self, wait_seconds: float) -> None:
        run = self._connection.execute
        if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            _write_ahead(self._connection, wait_seconds)
            run("BEGIN IMMEDIATE")
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_VERSION}")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                run(statement)
            run("COMMIT")
        if run("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise TuningError("is not a tuning database", where=str(self.path), hint="name another file")
        if run("PRAGMA user_version").fetchone()[0] in _ADDED_COLUMNS:
            self._update()
        version = run("PRAGMA user_version").fetchone()[0]
        if version != _VERSION:
            raise TuningError(
                f"is a tuning database of version {version}, and this is version {_VERSION}",
                where=str(self.path),
                hint="name another file",
            )

    def _update(self) -> None:
        """Brings a database of an older version to this one."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            # Another process may have been first.
            for version in range(run("PRAGMA user_version").fetchone()[0], _VERSION):
                run(_ADDED_COLUMNS[version])
            for statement in filter(str.strip, _SCHEMA.split(";")):
                run(statement)
            run(f"PRAGMA user_version = {_VERSION}")
        except BaseException:
            run("ROLLBACK")
            raise
        run("COMMIT")

    def check(self) -> None:
        """Raises `DamagedError` if pages of the file are lost or out of order, which opening it may not notice."""
        [(found,), *_] = self._run("PRAGMA quick_check(1)")
        if found != "ok":
            raise DamagedError(f"is damaged ({' '.join(found.split())})", where=str(self.path))

    def check_writable(self) -> None:
        """Raises `TuningError` if nothing can be stored."""
        with _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                # SQLite begins a transaction even on a read-only file; only the first change shows that it is.
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            except sqlite3.OperationalError as error:
                if not _is_read_only(error):
                    raise
                problem = TuningError("is read-only", where=str(self.path), hint="name another file")
                raise problem from None
            finally:
                self._connection.execute("ROLLBACK")

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # Measurements

    def measurements(self, key: str) -> dict[str, Measurement]:
        """Returns the measurements of a subprogram's candidates."""
        rows = self._run("SELECT candidate, seconds, problem FROM measurements WHERE key = ?", [key])
        return {candidate: Measurement(seconds=s, problem=problem) for candidate, s, problem in rows}

    def keep_measurement(self, key: str, candidate: str, measurement: Measurement) -> None:
        self._run(
            "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?)",
            [key, candidate, measurement.seconds, measurement.problem],
        )

    # Decisions

    def decision(self, key: str) -> Decision | None:
        rows = self._run(f"SELECT {', '.join(_COLUMNS)} FROM decisions WHERE key = ?", [key])
        with _explained(self.path):
            return _decision(rows[0]) if rows else None

    def holds(self, target: str) -> bool:
        """True if there is a decision for a target of this name."""
        return bool(self._run("SELECT 1 FROM decisions WHERE target = ? LIMIT 1", [target]))

    def fingerprint(self, target: str) -> str:
        """Returns a hash of all decisions for a target of this name, those for programs included; "" if there are
        none."""
        columns = ", ".join(_COLUMNS)
        rows = self._run(f"SELECT {columns} FROM decisions WHERE target = ? ORDER BY key", [target])
        rows += self._run(f"SELECT {_PROGRAM_COLUMNS} FROM programs WHERE target = ? ORDER BY key", [target])
        return hashlib.sha256(json.dumps(rows, default=repr).encode()).hexdigest() if rows else ""

    def decisions(self) -> list[Decision]:
        """Returns all decisions, the latest first."""
        columns = ", ".join(_COLUMNS)
        rows = self._run(f"SELECT {columns} FROM decisions ORDER BY measured_at DESC, key")
        with _explained(self.path):
            return [_decision(row) for row in rows]

    def keep_decision(self, decision: Decision) -> None:
        values = [getattr(decision, name) for name in _COLUMNS]
        values[_COLUMNS.index("plan")] = json.dumps(decision.plan.to_json())
        marks = ", ".join("?" for _ in _COLUMNS)
        self._run(f"INSERT OR REPLACE INTO decisions ({', '.join(_COLUMNS)}) VALUES ({marks})", values)

    # Programs

    def program(self, key: str) -> ProgramDecision | None:
        rows = self._run(f"SELECT {_PROGRAM_COLUMNS} FROM programs WHERE key = ?", [key])
        with _explained(self.path):
            return _program(rows[0]) if rows else None

    def programs(self) -> list[ProgramDecision]:
        rows = self._run(f"SELECT {_PROGRAM_COLUMNS} FROM programs ORDER BY measured_at DESC, key")
        with _explained(self.path):
            return [_program(row) for row in rows]

    def keep_program(self, program: ProgramDecision) -> None:
        plan = json.dumps(program.plan.to_json())
        proofs = json.dumps([[list(proof.ops), proof.key] for proof in program.proofs])
        self._run(
            "INSERT OR REPLACE INTO programs VALUES (?, ?, ?, ?, ?)",
            [program.key, program.target, plan, proofs, program.measured_at],
        )

    # Import and export

    def export(self, path: Path) -> int:
        """Writes a complete and consistent copy, even while others write; returns the number of decisions."""
        if path.exists() and path.samefile(self.path):
            # Processes that have it open would continue to write to a deleted file.
            raise TuningError("is the database itself", where=str(path), hint="name another file")
        refuse_special(path)
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with _explained(path):
                temporary.unlink(missing_ok=True)
            self._copy(temporary, path)
            with _explained(path):
                temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return int(self._run("SELECT count(*) FROM decisions")[0][0])

    def _copy(self, temporary: Path, path: Path) -> None:
        with _explained(self.path):
            try:
                self._connection.execute("VACUUM INTO ?", [str(temporary)])
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    raise
                raise TuningError(f"cannot be written ({error})", where=str(path)) from None

    def take_from(self, path: Path) -> int:
        """Adds the decisions of another file; of two with one key, the later stays. Returns how many were added."""
        with Database.existing(path) as other:
            arriving, programs = other.decisions(), other.programs()
        latest = {program.key: program.measured_at for program in self.programs()}
        for program in programs:
            if program.measured_at > latest.get(program.key, ""):
                self.keep_program(program)
        return self.take(arriving)

    def take(self, arriving: Sequence[Decision]) -> int:
        """Stores those decisions that are later than the stored one of their key. Returns how many."""
        known = {decision.key: decision.measured_at for decision in self.decisions()}
        newer = [d for d in arriving if d.measured_at > known.get(d.key, "")]
        for decision in newer:
            self.keep_decision(decision)
        return len(newer)

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _explained(self.path):
            return self._connection.execute(statement, values).fetchall()


def _connection(path: Path, wait_seconds: float) -> sqlite3.Connection:
    """Opens a connection, also to a file in a read-only folder.

    SQLite cannot keep its lock files there, but there are no writers either, so the file is opened as immutable.
    """
    connection = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except BaseException as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError) or not _is_read_only(error) or not path.is_file():
            raise
        if path.with_name(f"{path.name}-wal").exists():
            raise  # The last writes are in the write-ahead log, which only a process with write access can merge.
        address = f"file:{urllib.parse.quote(str(path.absolute()))}?immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None)
    return connection


def _write_ahead(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Lets readers continue while one process writes (WAL mode).

    SQLite refuses this at once, without waiting, while another process is opening the file, so this retries.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _is_read_only(error: sqlite3.OperationalError) -> bool:
    # SQLite's extended error names begin with the name of their class.
    name: str = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))


def _decision(row: Sequence[Any]) -> Decision:
    values = dict(zip(_COLUMNS, row, strict=True))
    for name, value in values.items():
        if not isinstance(value, _KINDS[name]):
            raise sqlite3.DatabaseError(f"{name} of {values['name']} is {value!r}")
    return Decision(**{**values, "plan": _plan(values["name"], values["plan"])})


def _plan(name: str, text: str) -> Plan:
    try:
        return Plan.from_json(parse_json(text))
    except (ValueError, PlanError) as error:
        raise sqlite3.DatabaseError(f"the plan of {name}: {error}") from None


def _program(row: Sequence[Any]) -> ProgramDecision:
    if not all(isinstance(value, str) for value in row):
        raise sqlite3.DatabaseError("a program has members that are no text")
    key, target, plan, proofs, measured_at = row
    try:
        pairs = tuple(
            RegionProof(ops=tuple(int(op) for op in ops), key=str(own)) for ops, own in parse_json(proofs)
        )
    except (ValueError, TypeError) as error:
        raise sqlite3.DatabaseError(f"the proofs of a program: {error}") from None
    return ProgramDecision(
        key=key, target=target, plan=_plan("a program", plan), proofs=pairs, measured_at=measured_at
    )


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns SQLite's errors, including those from a damaged row, into `TuningError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        what = "is locked by another process" if "locked" in str(error) else f"cannot be used ({error})"
        raise TuningError(what, where=str(path)) from None
    except sqlite3.DatabaseError as error:
        raise DamagedError(f"is damaged ({error})", where=str(path)) from None
    except OSError as error:
        raise TuningError(f"cannot be used ({error.strerror})", where=str(path)) from None


class DamagedError(TuningError):
    """The file is not a database, or is a corrupt one."""


def open_for_tuning(path: Path) -> tuple[Database, str]:
    """Opens the database, or makes one, and returns a note: a damaged one is moved aside and replaced by a new one."""
    try:
        return _checked(path), ""
    except DamagedError as error:
        aside = _free_name(path)
        for suffix in ("", "-wal", "-shm"):
            old = path.with_name(path.name + suffix)
            if old.exists():
                old.rename(aside.with_name(aside.name + suffix))
        return Database(path), f"{error}; it is now {aside.name}, and a new one was made"


def _checked(path: Path) -> Database:
    database = Database(path)
    try:
        database.check()
        database.check_writable()
    except BaseException:
        database.close()
        raise
    return database


def _free_name(path: Path) -> Path:
    for number in range(1000):
        aside = path.with_name(f"{path.name}.damaged{number or ''}")
        if not aside.exists():
            return aside
    raise TuningError("is damaged, like many before it", where=str(path), hint="delete them")

"""Stock IREE on the same runtime as ours, with the fastest of the flags in `tilewright.compare.comparison`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tilewright.compare.comparison import IREE_CANDIDATES, count_dispatches
from tilewright.errors import IreeError
from tilewright.frontends import ImportedModel
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING
from tilewright.iree.flags import iree_flags
from tilewright.iree.versions import PINNED_IREE
from tilewright.records.signature import Signature
from tilewright.records.targets import resolve_targets
from tilewright.runtime.cuda_session import CudaCall
from tilewright.runtime.direct import DirectCall
from tilewright.runtime.session import BoundCall, Session
from tilewright.worker.process import Worker

from benchmarks.peers import Array, Facts, Settings, UnsupportedError
from benchmarks.peers.iree_source import import_repeated

_TRIALS = 5


class IreeAlone:
    def __init__(self, settings: Settings) -> None:
        self._threads = settings.threads
        host = resolve_targets("cpu", threads=settings.threads)[-1]
        self._flags = [flag for flag in iree_flags(host, host=True) if flag != DATA_TILING]

    def versions(self) -> dict[str, str]:
        return {"iree": PINNED_IREE}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> IreeProgram:
        described = cache / f"{repetitions}.json"
        if not described.exists():
            self._compile(model, inputs, repetitions, cache, described)
        return load_program(json.loads(described.read_text()), inputs, threads=self._threads)

    def _compile(
        self, model: Path, inputs: Sequence[Array], repetitions: int, cache: Path, described: Path
    ) -> None:
        with ExitStack() as stack:
            iree = IreeCompiler(stack.enter_context(Worker(cache)))
            weights = cache / str(repetitions)
            weights.mkdir()
            imported = import_repeated(model, iree=iree, folder=weights)
            best: tuple[float, dict[str, Any]] | None = None
            failure: IreeError | None = None
            for number, candidate in enumerate(self._candidates(cache)):
                module = cache / f"{repetitions}-{number}.vmfb"
                try:
                    flags = [*self._flags, *candidate]
                    module.write_bytes(iree.compile(imported.source, flags=flags, name=imported.name))
                except IreeError as error:
                    failure = error
                    continue
                description = _describe(imported, module, candidate, iree)
                seconds = quickest(load_program(description, inputs, threads=self._threads))
                if best is None or seconds < best[0]:
                    best = seconds, description
            if best is None:
                assert failure is not None
                raise UnsupportedError(str(failure))
            flags = [*self._flags, *best[1]["flags"]]
            stream = iree.compile_to(imported.source, "stream", flags=flags, name=imported.name)
            described.write_text(json.dumps({**best[1], "kernels": count_dispatches(stream)}))

    def _candidates(self, cache: Path) -> Sequence[Sequence[str]]:
        """Returns the candidate flags; repetitions are compiled with those that were best for the workload itself."""
        single = cache / "1.json"
        return [json.loads(single.read_text())["flags"]] if single.exists() else IREE_CANDIDATES


def _describe(
    imported: ImportedModel, module: Path, flags: Sequence[str], iree: IreeCompiler
) -> dict[str, Any]:
    signature = imported.signature or iree.signature(imported.source, imported.entry or "")
    assert signature is not None
    return {
        "module": str(module),
        "parameters": {scope: str(path) for scope, path in imported.parameters.items()},
        "entry": imported.entry,
        "signature": signature.to_json(),
        "flags": list(flags),
    }


class IreeProgram:
    """A call that is bound to inputs where the program reads them."""

    def __init__(self, call: BoundCall | DirectCall | CudaCall, facts: Facts) -> None:
        self.call, self.facts = call, facts

    def outputs(self) -> list[Array]:
        return self.call.outputs()


def load_program(description: dict[str, Any], inputs: Sequence[Array], *, threads: int) -> IreeProgram:
    """Loads a compiled module from its description."""
    parameters = {scope: Path(path) for scope, path in description["parameters"].items()}
    session = Session(Path(description["module"]), parameters, entry=description["entry"], threads=threads)
    signature = Signature.from_json(description["signature"])
    facts = Facts(
        kernels=description.get("kernels"), detail=" ".join(description["flags"]) or "default flags"
    )
    return IreeProgram(session.bind(signature.check_inputs(inputs), signature), facts)


def quickest(program: IreeProgram) -> float:
    """Returns the fastest time of a few calls."""
    program.call()
    seconds = []
    for _ in range(_TRIALS):
        started = time.perf_counter()
        program.call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)

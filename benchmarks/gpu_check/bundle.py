"""Collects in one folder what a machine with a GPU needs to check our kernels; `run.py` in it runs the check.

    python -m benchmarks.gpu_check.bundle OUT_DIR
    scp -r OUT_DIR there: && ssh there 'cd OUT_DIR && python3 run.py'

The bundle has no weights or inputs, which that machine draws from their seeds, and no packages that are installed
there.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import tilewright
from tilewright.errors import TilewrightError
from tilewright.iree.versions import PINNED_IREE
from tilewright.records.targets import resolve_targets
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs
from tilewright.runtime.stored import read_all
from tilewright.simulator.flow import launches_in
from tilewright.simulator.programs import describe_launches
from tilewright.simulator.traffic import compulsory_bytes
from tilewright.system.cores import available_cores
from tilewright.system.lifeline import end_with_parent
from tilewright.system.workfolder import WorkFolder

from benchmarks import machine
from benchmarks.client import ROOT
from benchmarks.gpu_check.case import SEED, build_model, digest, weights_of, write_weights
from benchmarks.gpu_check.run import MANIFEST, OPERATORS, PROGRAMS
from benchmarks.gpu_check.sketch import norm, sketch
from benchmarks.suites import SUITES, select
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.operators.reference import references

LIMIT_BYTES = 50_000_000
_PYTHON = "3.12"
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")
_WHEELS = {
    "iree-base-runtime": PINNED_IREE,
    # the other packages in the versions that the bundle is made with
    **dict.fromkeys(("onnx", "ml_dtypes", "protobuf", "typing_extensions", "msgspec")),
}


class BundleError(RuntimeError):
    """No bundle was made; the message gives the reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that makes a bundle."""
    options = _parser().parse_args(arguments)
    try:
        size = make_bundle(
            options.folder,
            target=options.target,
            names=[
                (w.name, w.dtype)
                for w in select(options.suites, dtypes=options.dtypes, pattern=options.workloads)
            ],
            wheels=options.wheels,
            runtime=options.runtime,
            jobs=options.jobs,
        )
    except (BundleError, TilewrightError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.folder}: {size / 1e6:.1f} MB; there, run: python3 run.py")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check.bundle", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder to make, or to fill if it is empty")
    parser.add_argument("--target", default="cuda:h200", help="target that kernels are compiled for")
    parser.add_argument(
        "--suites",
        type=lambda text: text.split(","),
        default=["stitch", "bandwidth", "gemm", "gemm-square", "chains", "convolutions", "models"],
        help=f"suites, of {','.join(SUITES)}",
    )
    parser.add_argument(
        "--workloads", default="*", metavar="PATTERN", help="names with * and ?, separated by commas"
    )
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=["f32", "f16"])
    parser.add_argument("--wheels", type=Path, help="folder of wheels to use instead of downloads by pip")
    parser.add_argument(
        "--runtime",
        type=Path,
        metavar="FILE",
        help="the module _runtime of a wheel for Python 3.12: programs then also run without IREE",
    )
    parser.add_argument("--jobs", type=int, default=available_cores())
    return parser


def make_bundle(
    folder: Path,
    *,
    target: str,
    names: Sequence[tuple[str, str]],
    wheels: Path | None,
    jobs: int,
    runtime: Path | None = None,
) -> int:
    """Makes the bundle and returns its size in bytes; `names` are workloads and dtypes."""
    if not names:
        raise BundleError("no workload has such a name")
    if (backend := resolve_targets(target, threads=1)[0].backend) != "cuda":
        raise BundleError(f"target {target} is for {backend}; name a GPU, as cuda:h200")
    if folder.exists() and any(folder.iterdir()):
        raise BundleError(f"{folder} is not empty; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as unfinished:
        made = Path(unfinished) / "bundle"
        made.mkdir()
        size = _fill(made, target=target, names=names, wheels=wheels, jobs=jobs)
        if runtime is not None:
            size += shutil.copyfile(runtime, made / "tilewright" / runtime.name).stat().st_size
        if size > LIMIT_BYTES:
            raise BundleError(
                f"{folder} would have {size / 1e6:.1f} MB, more than {LIMIT_BYTES / 1e6:.0f}; leave suites or types out"
            )
        made.replace(folder)
    return size


def _fill(
    folder: Path, *, target: str, names: Sequence[tuple[str, str]], wheels: Path | None, jobs: int
) -> int:
    _gather_wheels(folder / "wheels", wheels)
    _gather_sources(folder)
    entries = []
    with (
        zipfile.ZipFile(folder / PROGRAMS, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        ProcessPoolExecutor(max_workers=jobs, initializer=end_with_parent) as pool,
        WorkFolder("bundle") as work,
    ):
        compiled = pool.map(functools.partial(compile_workload, target=target, folder=work), names)
        for number, ((name, dtype), entry) in enumerate(zip(names, compiled, strict=True)):
            said = entry.get("refused", "")
            print(f"{number + 1}/{len(names)}: {name} {dtype} {said}".rstrip(), file=sys.stderr, flush=True)
            if said:
                continue
            entries.append(entry)
            for path in sorted((work / entry["folder"]).iterdir()):
                archive.write(path, f"{entry['folder']}/{path.name}")
                path.unlink()
    if not entries:
        raise BundleError(f"none of the workloads compiles for {target}")
    manifest = {
        "target": target,
        "revision": machine.revision(ROOT),
        "bundled": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "workloads": sorted(entries, key=_urgency),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest) + "\n")
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _urgency(entry: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """Sort key that puts the most important workloads first.

    These are models, chains and matmuls in f16, as GPUs are used, and other patterns in f32; then come the same in
    other types, and random graphs.
    """
    contracting = (
        "models", "recurrent", "networks", "convolutions", "convs", "chains", "gemm", "gemm-square",
    )  # fmt: skip
    order = (*contracting, "stitch", "bandwidth", OPERATORS, "random-stitch")
    first = "f16" if entry["suite"] in contracting else "f32"
    suite = order.index(entry["suite"])
    return suite == len(order) - 1, entry["dtype"] != first, suite


def compile_workload(name: tuple[str, str], *, target: str, folder: Path) -> dict[str, Any]:
    """Compiles a workload into a folder of its own and returns its entry in the manifest."""
    workload, dtype = name
    model = build_model(workload, dtype)
    inputs = random_inputs(model, SEED)
    home = folder / f"{workload}-{dtype}"
    home.mkdir()
    with WorkFolder("dump") as dump:
        try:
            program = tilewright.compile(model, target, tuning=False, dump_dir=dump)
        except TilewrightError as error:
            return {"refused": str(error)}
        launches = describe_launches(dump) if program.kernels else {"launches": []}
        recipes = _recipes(dump)
        if program.kernels:
            shutil.copyfile(dump / "kernels.ptx", home / "kernels.ptx")
    launches.pop("kernels", None)
    (home / "launches.json").write_text(json.dumps(launches))
    (home / "recipes.json").write_text(json.dumps(recipes))
    described = program.metadata.to_json()
    (home / "program.json").write_text(json.dumps({**described, "report": {}, "plan": None}))
    shutil.copyfile(program.module_path, home / "model.vmfb")
    weights = weights_of(model)
    _check_weights(program.parameter_paths, weights, recipes)
    predicted = {kernel.name: kernel.predicted_seconds for kernel in program.kernels}
    # A kernel with all steps of a loop has no prediction of its own: the plan has that of a step.
    launched = [launch["kernel"] for launch in launches_in(launches["launches"])]
    kernels = [{"name": name, "predicted_s": predicted.get(name)} for name in launched]
    suite = WORKLOADS[workload].suite
    results = (references if suite == OPERATORS else float64_reference)(model, inputs)
    signature = program.signature
    assert signature is not None
    likes = [np.empty(y.shape, spec.numpy_dtype) for y, spec in zip(results, signature.outputs, strict=True)]
    return {
        "suite": suite,
        "workload": workload,
        "dtype": dtype,
        "folder": home.name,
        "inputs_digest": digest(inputs),
        "weights_digest": digest(list(weights.values())),
        "outputs": [
            {"name": value.name, "shape": list(y.shape), "norm": norm(y), "sketch": sketch(y)}
            | ({"tolerance": 0.0} if suite == OPERATORS and y.dtype.kind in "biu" else {})
            for value, y in zip(model.graph.output, results, strict=True)
        ],
        "tolerance": model_tolerance(model),
        "predicted_s": sum(predicted[name] for name in launched)
        if predicted.keys() >= set(launched)
        else None,
        "kernels": kernels,
        "is_all_ours": program.runtime == "direct",
        "compulsory_bytes": compulsory_bytes(model, inputs, likes),
    }


def _recipes(dump: Path) -> dict[str, Any]:
    path = dump / "recipes.json"
    read: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return read


def _check_weights(
    archives: Mapping[str, Path], weights: Mapping[str, np.ndarray], recipes: Mapping[str, Any]
) -> None:
    """Checks that the weights that the GPU machine will draw are those of the program."""
    with WorkFolder("weights") as folder:
        written = write_weights(weights, recipes, folder)
        for scope, path in archives.items():
            again = read_all(written[scope]) if scope in written else {}
            for name, data in read_all(path).items():
                if name not in again or not np.array_equal(again[name], data):
                    raise BundleError(f"weight '{name}' of scope '{scope}' cannot be drawn again there")


def _gather_sources(folder: Path) -> None:
    """Copies the scripts, and those Python files of the package that run programs without the compiler."""
    for name, source in (
        ("tilewright", Path(tilewright.__file__).parent),
        ("benchmarks", ROOT / "benchmarks"),
    ):
        code = ("_native*", "_runtime*", "bin", "include", "lib")  # of this machine
        ignored = shutil.ignore_patterns("__pycache__", *code, "results", "*.md", "*.c")
        # A build folder keeps links to sources that have since moved.
        shutil.copytree(source, folder / name, ignore=ignored, ignore_dangling_symlinks=True)
    shutil.copyfile(ROOT / "benchmarks" / "gpu_check" / "start.py", folder / "run.py")


def _gather_wheels(folder: Path, given: Path | None) -> None:
    folder.mkdir()
    if given is not None:
        wheels = sorted(given.glob("*.whl"))
        if not wheels:
            raise BundleError(f"{given} has no wheels")
        for wheel in wheels:
            shutil.copyfile(wheel, folder / wheel.name)
        return
    wanted = [f"{name}=={version or metadata.version(name)}" for name, version in _WHEELS.items()]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", _PYTHON, "--implementation", "cp", "--dest", str(folder)]
    command += [f"--platform={platform}" for platform in _PLATFORMS]
    downloaded = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    if downloaded.returncode != 0:
        lines = [line for line in downloaded.stderr.splitlines() if line.startswith("ERROR")]
        raise BundleError(
            f"pip cannot download {', '.join(wanted)} ({lines[-1] if lines else 'no reason given'}); "
            "is there a network? --wheels takes a folder that has them"
        )


if __name__ == "__main__":
    sys.exit(main())

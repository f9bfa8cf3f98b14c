"""Requests that the judging process answers: see `fuzz.worker`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from fuzz.judge import judge, operators
from fuzz.kinds import KINDS


def judge_seeds(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Judges the random graphs of some seeds; the answer has the verdicts and the operators of the graphs."""
    kind = header["kind"]
    models = {f"g{seed}": KINDS[kind].graph(seed) for seed in header["seeds"]}
    seeds = {f"g{seed}": seed for seed in header["seeds"]}
    verdicts = judge(models, seeds, target=header["target"], kind=kind)
    return {
        "verdicts": {seeds[name]: verdict.to_json() for name, verdict in verdicts.items()},
        "operators": {seeds[name]: operators(model) for name, model in models.items()},
    }, b""


def judge_model(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Judges one given model."""
    dump = header.get("dump_dir")
    model = onnx.ModelProto.FromString(blob)
    seeds = {"model": header["seed"]}
    dump_dir = Path(dump) if dump else None
    verdicts = judge({"model": model}, seeds, target=header["target"], kind=header["kind"], dump_dir=dump_dir)
    return {"verdict": verdicts["model"].to_json()}, b""

"""The knowledge about a program besides its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tilewright.iree.versions import PINNED_IREE
from tilewright.records.calling import Calling
from tilewright.records.dims import Dim, spell_sizes
from tilewright.records.encoding import check_kinds
from tilewright.records.kinds import MachineKind, kind_of_device
from tilewright.records.report import Report
from tilewright.records.signature import Signature
from tilewright.runtime.launches import LaunchPlan
from tilewright.system.cores import MOST_THREADS
from tilewright.system.ptxas import KernelResources


@dataclass(frozen=True)
class ShapeReport:
    """What a program has for one shape of a dynamic model."""

    sizes: Mapping[str, int]
    report: Report

    def to_json(self) -> dict[str, Any]:
        return {"sizes": dict(self.sizes), "report": dict(self.report.raw)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ShapeReport:
        return ShapeReport(dict(data["sizes"]), Report.from_json(data["report"]))

    def __str__(self) -> str:
        return f"shape {spell_sizes(self.sizes)}: {len(self.report.kernels)} fused kernels"


@dataclass(frozen=True)
class Metadata:
    """Everything known about a program besides its code; saved beside it as JSON."""

    target: str
    threads: int
    entry: str
    signature: Signature | None
    """None for a module without a description, about which nothing is known."""
    device: str = "local"
    """Where the program runs: "local" (on processors) or "cuda"."""
    is_deployable: bool = True
    """False if its file is no module for IREE but the code of its kernels."""
    resources: Mapping[str, KernelResources] = field(default_factory=dict)
    """Resources of each kernel on a GPU, if ptxas was available."""
    capability: str = ""
    """Compute capability of the oldest GPU that runs all kernels, such as "sm_80"."""
    multiprocessors: int = 0
    """Number of SMs that kernels whose workgroups wait for each other need; 0 if there are none."""
    multiprocessor_threads: int = 0
    """Resident threads that each of these SMs must have room for."""
    multiprocessor_shared_bytes: int = 0
    """Bytes of shared memory that each of these SMs must have."""
    features: str = ""
    """Processor features that the code needs, in LLVM's spelling: "+avx2,+fma"."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Wider targets for which every kernel of ours has a variant, widest first, with the features that each needs."""
    calling: Calling | None = None
    """Calling convention of a program that was a PyTorch module."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Outputs that share the buffers of inputs, which are updated in place."""
    dims: Mapping[str, Dim] = field(default_factory=dict)
    """Sizes that calls may give to dims that are open."""
    shapes: tuple[ShapeReport, ...] = ()
    """Shapes for which the module has kernels of their own; its entry chooses between them and a dynamic program, which
    `report` is about."""
    report: Report = field(default_factory=Report)
    iree_seconds: float = 0.0
    """Lower bound of the seconds that ops left to IREE take, by their operations and bytes at the target's rates."""
    plan: dict[str, Any] | None = None
    launches: LaunchPlan | None = None
    """Launches of a program whose kernels are all ours, which can run without IREE."""
    iree_flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes on requests that the compiler could not fulfil."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of every step of the compilation, in seconds."""

    @property
    def kind(self) -> MachineKind:
        """Kind of the machines that the program runs on."""
        return kind_of_device(self.device)

    def __repr__(self) -> str:
        return (
            f"<Metadata of {self.entry}: target {self.target}, {len(self.report.kernels)} fused kernels, "
            f"{len(self.notes)} notes>"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "device": self.device,
            "is_deployable": self.is_deployable,
            "resources": {name: asdict(kernel) for name, kernel in self.resources.items()},
            "capability": self.capability,
            "multiprocessors": self.multiprocessors,
            "multiprocessor_threads": self.multiprocessor_threads,
            "multiprocessor_shared_bytes": self.multiprocessor_shared_bytes,
            "features": self.features,
            "variants": dict(self.variants),
            "threads": self.threads,
            "entry": self.entry,
            **(self.signature.to_json() if self.signature else {}),
            "calling": self.calling.to_json() if self.calling else None,
            "state": dict(self.state),
            "dims": {name: dim.to_json() for name, dim in self.dims.items()},
            "shapes": [shape.to_json() for shape in self.shapes],
            "notes": list(self.notes),
            "seconds": dict(self.seconds),
            "iree": PINNED_IREE,
            "iree_flags": list(self.iree_flags),
            "report": dict(self.report.raw),
            "iree_seconds": self.iree_seconds,
            "plan": self.plan,
            "launches": self.launches.to_json() if self.launches else None,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Metadata:
        return Metadata(
            target=data["target"],
            device=data.get("device", "local"),
            is_deployable=data.get("is_deployable", True),
            resources={name: KernelResources(**r) for name, r in data.get("resources", {}).items()},
            capability=data.get("capability", ""),
            multiprocessors=data.get("multiprocessors", 0),
            multiprocessor_threads=data.get("multiprocessor_threads", 0),
            multiprocessor_shared_bytes=data.get("multiprocessor_shared_bytes", 0),
            features=data.get("features", ""),
            variants=data.get("variants", {}),
            threads=data["threads"],
            entry=data["entry"],
            signature=Signature.from_json(data) if "inputs" in data else None,
            calling=Calling.from_json(data["calling"]) if data.get("calling") else None,
            state=data.get("state", {}),
            dims={name: Dim.from_json(dim) for name, dim in data.get("dims", {}).items()},
            shapes=tuple(ShapeReport.from_json(shape) for shape in data.get("shapes", ())),
            report=Report.from_json(data.get("report", {})),
            iree_seconds=data.get("iree_seconds", 0.0),
            plan=data.get("plan"),
            launches=LaunchPlan.from_json(data["launches"]) if data.get("launches") else None,
            iree_flags=tuple(data.get("iree_flags", ())),
            notes=tuple(data.get("notes", ())),
            seconds=data.get("seconds", {}),
        )


def check_metadata(metadata: Metadata) -> None:
    """Raises `ValueError` if a value has the wrong type, since JSON may hold anything anywhere."""
    check_kinds(Metadata, metadata, "program")
    if not 1 <= metadata.threads <= MOST_THREADS:
        raise ValueError(f"{metadata.threads} threads")
    if metadata.launches is not None:
        if metadata.signature is None:
            raise ValueError("launches without a signature")
        metadata.launches.check(metadata.signature)
    if not metadata.kind.has_capabilities and metadata.variants:
        names = metadata.target.split(",")
        if len(names) != len(metadata.variants) + 1:
            raise ValueError(f"{len(metadata.variants)} variants, but targets {names}")
    for spec in (*metadata.signature.inputs, *metadata.signature.outputs) if metadata.signature else ():
        spec.numpy_dtype  # noqa: B018 - raises for an unknown name

"""Runs our programs in IREE's runtime, as users do."""

from __future__ import annotations

from typing import Any

from tilewright.iree.versions import PINNED_IREE, check_iree
from tilewright.runtime.cold import ColdCache
from tilewright.runtime.cuda import Cuda

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.timing import Timing, host_seconds, median_of
from benchmarks.peers import Array


class ThroughIree:
    """System that runs programs in IREE's runtime, on its CUDA driver."""

    def __init__(self) -> None:
        check_iree("iree-base-runtime")
        self._cuda = Cuda()

    def versions(self) -> dict[str, Any]:
        """Returns the version of the runtime."""
        return {"iree-base-runtime": PINNED_IREE}

    def prepare(self, case: Case) -> IreeProgram:
        """Loads the module and its weights and moves the inputs to the GPU."""
        return IreeProgram(self._cuda, case)


class IreeProgram:
    """A loaded module. The runtime does not report GPU times; a call ends when the results are there."""

    def __init__(self, cuda: Cuda, case: Case) -> None:
        self._cuda, signature = cuda, case.program.signature
        checked = signature.check_inputs(case.inputs) if signature else case.inputs
        # The program may be able to run without IREE, which is not what this measures.
        self._call = case.program.session().bind(checked, signature)

    def outputs(self) -> list[Array]:
        """Returns the outputs of one call."""
        self._call()
        return self._call.outputs()

    def time(self, *, seconds: float) -> Timing:
        """Returns times with a cold cache before every call."""
        sample = host_seconds(self._call, self._cuda.synchronize, ColdCache(self._cuda))
        call, samples = median_of(sample, seconds=seconds)
        return Timing(kernel_s=None, call_s=call, samples=samples)

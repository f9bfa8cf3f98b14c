"""The simulated device refuses launches that no GPU can do, and instructions that it does not know."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from simulator_cases import CORRECT
from tilewright.simulator.device import simulate


def test_refuses_a_grid_that_cannot_be_resident() -> None:
    arrays = [np.zeros(133 * 128, np.float32) for _ in range(3)]
    with pytest.raises(tilewright.SimulationError, match="of its 133 blocks only 132 are sure to run"):
        simulate(CORRECT, "add_sum", (133,), arrays)


def test_refuses_huge_grids_and_blocks() -> None:
    x = np.zeros(32, np.float32)
    with pytest.raises(tilewright.SimulationError, match="more than 4000000 blocks"):
        simulate(CORRECT, "scale", (2**31 - 1, 2**31 - 1), [x, x], [1])
    with pytest.raises(tilewright.SimulationError, match="at most 1024 threads"):
        simulate(CORRECT, "scale", (1,), [x, x], [1], block=(1 << 16, 1 << 16))
    with pytest.raises(tilewright.SimulationError, match="a block of 256 threads is more than the 128"):
        simulate(CORRECT, "scale", (1,), [x, x], [1], block=(256,))


def test_refuses_more_shared_memory_than_there_is() -> None:
    with pytest.raises(
        tilewright.SimulationError, match="a block needs 300000 bytes of shared memory; cuda:h200 has"
    ):
        simulate(CORRECT, "banks", (1,), [np.zeros(32, np.int32)], [1, 1], dynamic_shared_bytes=300000)


def test_refuses_wrong_arguments() -> None:
    x = np.zeros(32, np.float32)
    with pytest.raises(
        tilewright.SimulationError, match="takes 2 buffers and 1 constants; the launch has 1 and 0"
    ):
        simulate(CORRECT, "scale", (1,), [x])
    with pytest.raises(tilewright.SimulationError, match="has no kernel 'scales'; it has scale, warp_sums"):
        simulate(CORRECT, "scales", (1,), [x])
    with pytest.raises(tilewright.SimulationError, match="several kernels, so one must be named"):
        simulate(CORRECT)
    with pytest.raises(tilewright.InputError, match="contiguous"):
        simulate(CORRECT, "scale", (1,), [x[::2], x], [1])
    with pytest.raises(tilewright.InputError, match="grid"):
        simulate(CORRECT, "scale", (0,), [x, x], [1])
    with pytest.raises(tilewright.InputError, match="does not fit 32 bits"):
        simulate(CORRECT, "scale", (1,), [x, x], [1 << 31])
    with pytest.raises(tilewright.TargetError, match="is not a GPU"):
        simulate(CORRECT, "scale", (1,), [x, x], [1], "x86-64-avx2")


def test_assembly_of_no_instruction_passes_its_operand_on() -> None:
    x = np.zeros(32, np.int32)
    simulate(
        """
llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %same = llvm.inline_asm has_side_effects "", "=r,0" %thread : (i32) -> i32
  %to = llvm.getelementptr %x[%same] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %same, %to : i32, !llvm.ptr<1>
  llvm.return
}""",
        arrays=[x],
    )
    assert (x == np.arange(32)).all()


def test_refuses_what_is_not_simulated() -> None:
    def kernel(body: str) -> str:
        return (
            "llvm.func @k(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {\n"
            f"  {body}\n  llvm.return\n}}\n"
        )

    x = np.zeros(32, np.float32)
    with pytest.raises(
        tilewright.SimulationError, match=r"kernel:2:3: 'nvvm.breakpoint' op is not simulated"
    ):
        simulate(kernel("nvvm.breakpoint"), arrays=[x])
    with pytest.raises(tilewright.SimulationError, match=r"'llvm.inline_asm' op is not simulated"):
        simulate(kernel('llvm.inline_asm "trap;", "" : () -> ()'), arrays=[x])
    with pytest.raises(tilewright.SimulationError, match=r"'gpu.barrier' op is not in the llvm or nvvm"):
        simulate(kernel("gpu.barrier"), arrays=[x])
    with pytest.raises(tilewright.SimulationError, match=r"kernel:2:3: invalid SSA name"):
        simulate(kernel("%"), arrays=[x])
    call = "%c = llvm.call @__nv_frob() : () -> f32"
    with pytest.raises(tilewright.SimulationError, match=r"'__nv_frob' is called, but has no body"):
        simulate("llvm.func @__nv_frob() -> f32\n" + kernel(call), arrays=[x])

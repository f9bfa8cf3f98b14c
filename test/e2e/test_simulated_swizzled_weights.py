"""Tests of weights in swizzled tiles, which bulk copies bring to shared memory, on the simulated device."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from assembled import check_warpgroups
from iree import runtime
from simulated_products import DTYPES, TYPES, assert_near
from tilewright.errors import PlanError
from tilewright.records.plan import LayoutStep, Plan
from tilewright.records.signature import Array
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.device import SimulationReport
from tilewright.simulator.programs import describe_launches, simulate_program

from benchmarks.workloads.builder import GraphBuilder, gelu_erf

pytestmark = pytest.mark.lands(one_in=9)


@dataclass(frozen=True, kw_only=True)
class Dense:
    """A model of x @ weight, followed by a bias and a GELU if `then` says so; the weight may be transposed."""

    shape: tuple[int, int, int]
    """M, K and N."""
    element: str = "f16"
    transposed: bool = False
    then: str = ""

    def build(self) -> onnx.ModelProto:
        rows, terms, columns = self.shape
        g, rng = GraphBuilder("dense"), np.random.default_rng(5)
        kind, dtype = TYPES[self.element], DTYPES[self.element]
        size = (columns, terms) if self.transposed else (terms, columns)
        weight = g.constant(rng.standard_normal(size).astype(dtype), "weight")
        if self.transposed:
            weight = g.op("Transpose", weight, perm=[1, 0])
        result = g.op("MatMul", g.input("x", (rows, terms), kind), weight)
        if self.then:
            result = gelu_erf(g, g.op("Add", result, g.input("bias", (columns,), kind)))
        g.output(result, (rows, columns), kind)
        return g.build()

    def inputs(self) -> list[Array]:
        rng, dtype = np.random.default_rng(7), DTYPES[self.element]
        shapes: list[tuple[int, ...]] = [self.shape[:2]]
        if self.then:
            shapes.append(self.shape[2:])
        return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def with_swizzled_weights(
    plan: Plan, *, tile: tuple[int, int], weight_is_first: bool = False, element_bytes: int = 2
) -> None:
    """Changes the only contraction of a plan to one of a warpgroup with these tiles, and its weight to swizzled
    tiles."""
    (part,) = (part for kernel in plan.kernels for part in kernel.groups)
    part.threads = 128
    for dim, size in zip(part.grid, tile, strict=True):
        part.tiles[dim] = min(size, part.extents[dim])
    part.workgroups = math.prod(-(-part.extents[dim] // part.tiles[dim]) for dim in part.grid)
    (contraction,) = (op for op in part.ops if op.micro_kernel)
    contraction.micro_kernel = "wgmma-64x8"
    contraction.gemm = None  # chosen for the new tile
    contraction.tilings = []  # they follow from the micro kernel and the tile
    _, columns, terms = (part.extents[dim] for dim in contraction.dims)
    size = part.tiles[part.grid[1]]
    lines = (-(-columns // size) - 1) * size + _power_of_two(size)
    step = min(128 // element_bytes, _power_of_two(terms))
    steps = -(-terms // step)
    padded = [lines, steps * step] if weight_is_first else [steps * step, lines]
    (weight,) = (tensor for tensor in part.tensors if tensor.tensor == "in1")
    weight.layout = [
        LayoutStep("pad", padded),
        LayoutStep("permute", [0, 1] if weight_is_first else [1, 0]),
        LayoutStep("split", [lines, steps, step]),
        LayoutStep("permute", [1, 0, 2]),
        LayoutStep("swizzle", [16 // element_bytes]),
    ]


def _power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length()


def planned(model: onnx.ModelProto) -> Plan:
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    return plan


def run(dense: Dense, plan: Plan | None, folder: Path) -> SimulationReport:
    """Runs the program's kernel, and checks its numbers."""
    model, inputs = dense.build(), dense.inputs()
    program = tilewright.compile(model, "cuda:h200", plan=plan, dump_dir=folder)
    ran = simulate_program(program, folder, inputs)  # raises if a kernel has a bug
    assert ran.invented == ()
    assert_near(ran.outputs, model, inputs, dense.element)
    (report,) = ran.kernels
    return report


_CASES = {
    "whole tiles": Dense(shape=(128, 128, 256)),
    "a weight that lies along its terms": Dense(shape=(128, 128, 256), transposed=True, then="gelu"),
    "tails": Dense(shape=(192, 72, 136), then="gelu"),
    "rows that are not aligned": Dense(shape=(100, 77, 190)),
    "more steps than stages": Dense(shape=(64, 584, 128), transposed=True),
    "lines of 64 bytes": Dense(shape=(64, 24, 72)),
    "lines of 32 bytes": Dense(shape=(64, 16, 40), transposed=True),
}


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("case", _CASES)
def test_products(case: str, element: str, tmp_path: Path) -> None:
    dense = replace(_CASES[case], element=element)
    plan = planned(dense.build())
    with_swizzled_weights(plan, tile=(64, 128))
    run(dense, plan, tmp_path)
    assert "cp.async.bulk.shared::cluster.global.mbarrier" in (tmp_path / "kernels.ptx").read_text()


_BYTES = """
util.global private @w = #stream.parameter.named<"model"::"w"> : tensor<72x140xi8>
func.func @product(%x: tensor<100x140xi8>) -> tensor<100x72xi32> {
  %w = util.global.load @w : tensor<72x140xi8>
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<100x72xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<100x72xi32>) -> tensor<100x72xi32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<100x140xi8>, tensor<72x140xi8>) outs(%init : tensor<100x72xi32>) {
  ^bb0(%u: i8, %v: i8, %s: i32):
    %ue = arith.extsi %u : i8 to i32
    %ve = arith.extsi %v : i8 to i32
    %p = arith.muli %ue, %ve : i32
    %n = arith.addi %s, %p : i32
    linalg.yield %n : i32
  } -> tensor<100x72xi32>
  return %y : tensor<100x72xi32>
}
"""


def test_bytes_are_multiplied_exactly(tmp_path: Path) -> None:
    """The weight is contiguous along K, in lines of 128 elements."""
    rng = np.random.default_rng(3)
    x, weight = (rng.integers(-128, 128, size).astype(np.int8) for size in ((100, 140), (72, 140)))
    index = runtime.ParameterIndex()
    index.add_buffer("w", weight)
    index.create_archive_file(str(tmp_path / "model.irpa"))
    parameters = {"model": tmp_path / "model.irpa"}
    plan = tilewright.compile(_BYTES, "cuda:h200", parameters=parameters).plan
    assert plan is not None
    with_swizzled_weights(plan, tile=(64, 64), weight_is_first=True, element_bytes=1)
    program = tilewright.compile(_BYTES, "cuda:h200", plan=plan, parameters=parameters, dump_dir=tmp_path)
    ran = simulate_program(program, tmp_path, [x])
    assert ran.outputs is not None
    np.testing.assert_array_equal(ran.outputs[0], x.astype(np.int64) @ weight.T.astype(np.int64))


def test_blocks_walk_several_tiles(tmp_path: Path) -> None:
    """The mbarriers of a tile are initialised again for the next one."""
    dense = Dense(shape=(256, 320, 256))
    plan = planned(dense.build())
    with_swizzled_weights(plan, tile=(64, 128))
    plan.kernels[0].groups[0].workgroups = 4
    run(dense, plan, tmp_path)


def test_copies_are_of_one_thread(tmp_path: Path) -> None:
    """One thread copies the same bytes for the same products, with fewer instructions."""
    dense = Dense(shape=(128, 128, 256))
    plan = planned(dense.build())
    with_swizzled_weights(plan, tile=(64, 128))
    swizzled = run(dense, plan, tmp_path / "swizzled")
    for tensor in plan.kernels[0].groups[0].tensors:
        tensor.layout = []
    plain = run(dense, plan, tmp_path / "plain")
    steps, of_step = 4 * 2, 128 * 128 // 512  # for all blocks; warps copy 16 bytes a thread
    assert plain.instructions.global_memory - swizzled.instructions.global_memory == steps * (of_step - 1)
    assert swizzled.instructions.integer < plain.instructions.integer
    assert swizzled.instructions.tensor == plain.instructions.tensor
    assert swizzled.global_reads.bytes == plain.global_reads.bytes


def test_the_planner_stores_swizzled_weights_by_itself(tmp_path: Path) -> None:
    model = Dense(shape=(2048, 512, 2048)).build()
    text = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path).explain()
    assert re.search(r"operand 1 copied \d+ bytes at a time, from a swizzled layout", text)
    check_warpgroups(tmp_path)


def test_a_layout_of_other_tiles_is_an_illegal_plan() -> None:
    dense = Dense(shape=(128, 128, 256))
    plan = planned(dense.build())
    with_swizzled_weights(plan, tile=(64, 128))
    (weight,) = (tensor for tensor in plan.kernels[0].groups[0].tensors if tensor.layout)
    weight.layout[-1].arguments = [4]
    with pytest.raises(
        PlanError, match="in1 in the layout that is given: it is not the swizzled layout that its tiles need"
    ):
        tilewright.compile(dense.build(), "cuda:h200", plan=plan)


@pytest.mark.parametrize(
    ("missing", "fault"),
    [
        ("nvvm.mbarrier.try_wait.parity", "unfinished: .*reads byte"),
        ("nvvm.mbarrier.arrive.expect_tx", "barrier: .*0 of 1 have arrived"),
        ("nvvm.fence.mbarrier.init", "unfenced: .*no fence lies between"),
        ("nvvm.cp.async.bulk", "barrier: .*16384 bytes are expected and copies bring 0"),
    ],
    ids=["wait", "expect_tx", "fence", "copy"],
)
def test_what_is_missing_is_found(missing: str, fault: str, tmp_path: Path) -> None:
    dense = Dense(shape=(64, 584, 128))
    plan = planned(dense.build())
    with_swizzled_weights(plan, tile=(64, 128))
    program = tilewright.compile(dense.build(), "cuda:h200", plan=plan, dump_dir=tmp_path)
    flow = describe_launches(tmp_path)
    text, count = re.subn(rf"\n.*{re.escape(missing)}.*(?=\n)", "", flow["kernels"])
    assert count >= 1
    (launch,) = flow["launches"]
    tensors = LaunchTensors(flow["tensors"], dense.inputs(), program.parameter_paths)
    arrays = [tensors.get(number) for number in launch["inputs"]]
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*arrays, *(tensors.new(number) for number in launch["outputs"])],
        target="cuda:h200",
        empty=[len(arrays)],
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    assert re.match(fault, str(report.faults[0])), str(report.faults[0])

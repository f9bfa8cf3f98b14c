// Every pass: its contract, options and statistics. Sections follow the folders.
#ifndef TILEWRIGHT_PASSES_TD
#define TILEWRIGHT_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// codegen/iree: the boundary
//===----------------------------------------------------------------------===//

def ImportIree : Pass<"tile-import-iree", "::mlir::ModuleOp"> {
  let summary = "Map IREE's functions to func.func";
  let description = [{
    Arrives: IREE's module at its `preprocessing` phase as MLIR 22 reads it,
    with `util.func` and `util.return` as unregistered ops. Leaves: the same
    module with each such function as `func.func`, so that ordinary passes see
    isolated functions; every attribute is kept for `tile-export-iree`.
    Functions without a body, and everything that is not a function, are left
    alone.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def ExportIree : Pass<"tile-export-iree", "::mlir::ModuleOp"> {
  let summary = "Map imported functions back to IREE's own";
  let description = [{
    The inverse of `tile-import-iree`: functions that it made become `util.func`
    again, attribute by attribute; others stay `func.func`.
  }];
}

def SpliceIree : Pass<"tile-splice-iree", "::mlir::ModuleOp"> {
  let summary = "Splice compiled kernels into IREE's module as dispatches";
  let description = [{
    Arrives: `tile.launch`es of kernels compiled to the object at `object`.
    Leaves: one `hal.executable.source` with an export and a static import shim
    per kernel in place of the kernel module, and a `flow.dispatch` per launch,
    as unregistered ops that IREE's parser knows. Of kernels in a `gpu.module`,
    `object` is PTX, and the exports name blocks and shared memory. With
    `variants`, it is a `hal.executable` with a variant for the capability of
    each target and one for that of `target`; the runtime takes the first that
    the device has, and refuses to load the module where it has none. Results
    above 64 MB are placed by an allocation in the module (ResultStorage), on
    CPUs. See test/codegen/splice-iree-cuda-variants.mlir.
  }];
  let options = [Option<"object", "object", "std::string", "\"\"",
                        "path of the ELF object, or the PTX, with the kernels; that of a variant has its number in it">,
                 Option<"target", "target", "std::string", "\"\"", "target name or JSON file; only for variants">,
                 ListOption<"variants", "variants", "std::string",
                            "GPUs of more capabilities, most capable first, each with PTX of its own">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"dispatches", "dispatches", "kernels launched">];
}

//===----------------------------------------------------------------------===//
// transforms: planned graph to tile program
//===----------------------------------------------------------------------===//

def LowerToProgram : Pass<"tile-lower-to-program", "::mlir::ModuleOp"> {
  let summary = "Lower each subprogram to a tile program with explicit movement";
  let description = [{
    Arrives: `tile.subprogram`s whose expressions are roots (thread edges have
    been composed away) placed in the index space. Leaves: a `tile.program` per
    kernel in the nested module `tilewright_kernels`, and a `tile.launch` in
    place of the subprograms. Roots of one phase with one domain share a loop
    nest and hand values over in registers; block edges become buffers; an
    input that several nests read is staged once per tile, one that every tile
    reads, once per workgroup; f16 and bf16 sums accumulate in f32. With the form
    `running maximum`, what is proportional to exp(-m) is computed in the nest
    that accumulates m, from references in its place, and corrected where later
    nests read it. A dim that tiles walk in blocks becomes a loop around the
    nests that have it; with the form `running maximum of blocks`, what was
    summed relative to m is rescaled whenever m has grown.
  }];
  let options = [Option<"workgroupStaging", "workgroup-staging", "int64_t", "131072",
                        "bytes of inputs that every tile reads that a workgroup keeps at most">,
                 Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
                        "target name or JSON file, whose registers say how many points share a reference">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let statistics = [Statistic<"programs", "programs", "tile programs made">];
}

def AllocateBuffers : Pass<"tile-allocate-buffers", "::tilewright::tile::ProgramOp"> {
  let summary = "Give each buffer of a tile program its place in the workgroup's memory";
  let description = [{
    Arrives: `tile.alloc` without offsets. Leaves: every one with an offset,
    aligned to 64 bytes, so that buffers that are live together do not overlap
    (best fit over live ranges, largest first). A buffer lives until the units
    of the block meet at a `tile.sync` after its last use; buffers of the
    preamble live throughout.
  }];
  let statistics = [Statistic<"bytes", "bytes", "block-space bytes over all programs">,
                    Statistic<"shared", "bytes-shared", "bytes saved by sharing between live ranges">];
}

def InsertSyncs : Pass<"tile-insert-syncs", "::tilewright::tile::ProgramOp"> {
  let summary = "Have the threads of a block meet where they must, no further out than they must";
  let description = [{
    PowerFusion 5.1, inside a tile. Arrives: tile programs for a GPU, whose parts
    may say how many threads a block has (`tile.threads`) and how many share a
    row (`tile.group`), with buffers that have places or do not; with syncs in
    their tiles, or without; those of a cluster stay. Leaves: a `tile.sync` in front of each op that
    touches what one before it wrote, or writes what one before it touched, if
    none stands between already, of the innermost scope at which those threads
    meet: `thread` where every element is its own thread's, which is no barrier
    at all, `warp`, else `block`. The last op of a tile of several is what its
    threads wait for before the next. Parts with buffers for all tiles, or with
    nests in loops, keep their syncs, with a missed remark.
    See test/passes/insert-syncs.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
  let statistics = [Statistic<"numThread", "thread", "hand-overs that stay with their thread">,
                    Statistic<"numWarp", "warp", "syncs of a warp">,
                    Statistic<"numBlock", "block", "syncs of a block">,
                    Statistic<"numLeft", "left", "parts left as they are, each with a missed remark">];
}

def PrintMovement : Pass<"tile-print-movement", "::tilewright::tile::ProgramOp"> {
  let summary = "Print what each access of a tile moves, and which threads move it";
  let description = [{
    PowerFusion 4. Changes nothing. A remark on every load, store and nest that
    accumulates: what a tile touches of the slice, as `num x width by stride`
    (segments of neighbouring elements, in elements), and for each bit of the
    index of a thread, the lowest first, which index of an element decides it:
    `d1/4` is the lowest bit of the second index divided by 4, `0` threads
    without the bit alone, `*` both, `?` unknown.
    See test/analysis/movement.mlir.
  }];
}

def RewriteMovement : Pass<"tile-rewrite-movement", "::mlir::ModuleOp"> {
  let summary = "Rewrite movement between the phases of tile programs to a fixed point";
  let description = [{
    PowerFusion's Algorithm 1. Arrives: tile programs, next to their launches or
    in a module nested beside them, whose phases hand tensors over through
    outputs; an output that no launch's user reads is a *hand-over* and may go.
    Leaves: programs to which no rule applies any more. `sync` works out where
    the threads of two phases meet: where that is inside a block, one part does
    both, with no barrier of the grid between, and what they alone hand over is a
    buffer of the block; where they do not meet at all, the barrier is gone.
    `swap` takes elementwise compute behind the movement that follows it. `merge`
    has a reader load what a hand-over was copied from (read after write), and
    loads one element once in a nest (read after read); what nobody reads then is
    neither stored nor computed, and its binding is gone. All are exact.

    Each rule can be run alone. A hand-over stays, with a missed remark that says
    why: a reduction writes it, its reader takes elements that are written in
    several ways, or more than once after arithmetic, and so on.
    See test/passes/rewrite-movement.mlir.
  }];
  let options = [ListOption<"rules", "rules", "std::string", "of sync, swap and merge; none given: all">,
                 Option<"target", "target", "std::string", "\"sm_80\"",
                        "target name or JSON file, whose blocks have memory for buffers">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRounds", "rounds", "rounds until nothing merged">,
                    Statistic<"numJoined", "joined", "barriers of the grid that became syncs in a block">,
                    Statistic<"numDropped", "dropped", "barriers of the grid between what is independent">,
                    Statistic<"numRaised", "raised", "hand-overs that became buffers of a block">,
                    Statistic<"numSwapped", "swapped", "elementwise computes swapped with movement">,
                    Statistic<"numReadAfterWrite", "read-after-write", "loads merged with the movement before">,
                    Statistic<"numReadAfterRead", "read-after-read", "loads merged with an equal one">,
                    Statistic<"numKept", "kept", "hand-overs that stay, each with a missed remark">];
}

def TieResults : Pass<"tile-tie-results", "::mlir::ModuleOp"> {
  let summary = "Let results take the memory of inputs that nobody reads any more";
  let description = [{
    Arrives: launches of tile programs in the nested module. Leaves: `tied` on a
    launch, and the same among its program's `in_place`, where an input comes
    from another launch, this launch alone reads it, and each tile has read all
    of its part of the input before it writes the same part of the output. The
    memory is in the caches then, and a chain of kernels needs one buffer.
  }];
  let statistics = [Statistic<"tied", "tied", "results that take the memory of an input">];
}

//===----------------------------------------------------------------------===//
// codegen/cpu
//===----------------------------------------------------------------------===//

def StageTransposes : Pass<"tile-stage-transposes", "::tilewright::tile::ProgramOp"> {
  let summary = "Turn tiles in registers where lanes are not neighbours in memory";
  let description = [{
    Arrives: tile programs. Where a nest reads, writes or accumulates memory across
    its lanes, and what lies next to each other in memory is next to each other along
    another dim of the tile: a buffer of the workgroup in which lanes are
    neighbours, and a copy between the two, which code generation turns in squares
    of registers. Where that other dim is the same for all that the nest touches, its
    lanes go along that instead. Where a copy turns what a micro kernel of several
    terms a step reads along its lanes, its buffer has these terms side by side, in
    groups that are turned as one; no tile has to put them so again. Left alone: what
    does not fit into the workgroup's memory beside what is there, tiles narrower
    than half a vector, guarded reads, other reads of micro kernels.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "of programs that do not say theirs">];
  let statistics = [
    Statistic<"turned", "turned", "accesses whose tiles are turned in registers">,
    Statistic<"grouped", "grouped", "buffers that have the terms of a step side by side">];
}

def ConvertToVector : Pass<"tile-convert-to-vector", "::mlir::ModuleOp"> {
  let summary = "Convert tile programs to functions over vectors and memrefs";
  let description = [{
    Arrives: `tile.program`s with allocated buffers, for `target` unless they say
    theirs; `scf.for` in a walk orders the nests of a tile. Leaves: a `func.func`
    of the same name per program, over its bindings, the workgroup's memory and
    the workgroup's index. Each loop nest advances along its vector dim by whole
    vectors with a masked tail; values are computed outside the loops they do
    not depend on; contiguous, uniform and irregular accesses become vector
    loads, scalar loads and gathers. Where a tile's last nest streams its results
    past the caches, it runs in the loops of the next tile's first nest
    (TilePipeline).
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect", "::mlir::affine::AffineDialect",
    "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect"];
}

def InstrumentBytes : Pass<"tile-instrument-bytes", "::mlir::func::FuncOp"> {
  let summary = "Count the bytes a kernel loads from and stores to its bindings";
  let description = [{
    Arrives: kernels as `tile-convert-to-vector` makes them. Leaves: the same
    with one more binding after their own, two `i64` counters (bytes loaded,
    bytes stored) that every access to a binding adds to. Masked accesses count
    their active lanes.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect",
    "::mlir::vector::VectorDialect"];
}

def TraceAccesses : Pass<"tile-trace-accesses", "::mlir::func::FuncOp"> {
  let summary = "Record the addresses that a kernel reads and writes";
  let description = [{
    Arrives: kernels as `tile-convert-to-vector` makes them. Leaves: the same
    with one more binding after their own, the trace: how many accesses there
    were, for how many there is room (set by the caller), then a record of each,
    `address << 16 | bytes << 1 | is_store`, and room for one more. Accesses to
    bindings and to the workgroup's memory are recorded alike, in order. See
    test/codegen/trace-accesses.mlir.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect",
    "::mlir::vector::VectorDialect"];
}

def MakeVariants : Pass<"tile-make-variants", "::mlir::ModuleOp"> {
  let summary = "Make one program per instruction set of each tile program";
  let description = [{
    Arrives: a module of `tile.program`s with allocated buffers. Leaves: with
    several `targets`, each program for the first, and a copy `<name>.<target>`
    for each further one; all say in `tile.target` what they are for and in
    `tile.variant_of` whose variants they are. The entry point takes the first
    whose features the processor has, so the widest comes first; a target that
    would never be chosen, and one with a vector extension that IREE's runtime
    does not report, are errors.
  }];
  let options = [ListOption<"targets", "targets", "std::string", "target names or JSON files, widest first">];
  let statistics = [Statistic<"copies", "copies", "programs added">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def EmulateInstructions : Pass<"tile-emulate-instructions", "::mlir::func::FuncOp"> {
  let summary = "Replace what a kernel's target has no instruction for";
  let description = [{
    Arrives: kernels over `arith` and `math`. Leaves: without `fma`, `math.fma`
    in f32 as a product and a sum in f64; without `f16c`, conversions between
    f16 and f32 as integer arithmetic; without `avx512bf16`, conversions between
    bf16 and f32 so too; bf16 as i16 wherever it is only moved. All else is left
    alone.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"",
                        "target name or JSON file, of kernels that do not say theirs">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LowerMath : Pass<"tile-lower-math", "::mlir::ModuleOp"> {
  let summary = "Replace transcendental functions by arithmetic, without libm";
  let description = [{
    Arrives: `math` ops on f32 scalars and vectors. Leaves: `arith`, and those
    `math` ops that are instructions on every CPU target (abs, floor, ceil,
    trunc, roundeven, sqrt, fma, copysign); an `scf.if` around what only huge
    arguments of sine and cosine need; and, where the target has AVX-512 VL, its
    scaling by a power of two as an `llvm.call_intrinsic`. Anything else that
    remains is an error at the op. docs/math.md has the error of each function.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];
}

def WrapCpuAbi : Pass<"tile-wrap-cpu-abi", "::mlir::ModuleOp"> {
  let summary = "Give each kernel an entry point with IREE's executable ABI";
  let description = [{
    Arrives: kernels as `llvm.func` with the bare pointers of their bindings, the
    workgroup's memory and index. Leaves: the kernel private and inlined, and
    under its name an entry `i32 (environment, dispatch state, workgroup state)`
    that reads them from IREE's structs. Of a kernel with variants, each has a
    private entry, and the kernel's own calls the first whose features are among
    those that the environment reports; without any it fails with status 1. A
    kernel that uses AMX's tile registers runs only where the operating system
    has granted them to the process: elsewhere the next variant is called, or
    the call fails. `assume-tiles` leaves that question out, for emulators.
  }];
  let options = [Option<"assumeTiles", "assume-tiles", "bool", "false",
                        "take it that every process may use tile registers; where it may not, kernels trap">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def EmitObject : Pass<"tile-emit-object", "::mlir::ModuleOp"> {
  let summary = "Compile the kernel module to an ELF object";
  let description = [{
    Arrives: the nested module `tilewright_kernels` in the LLVM dialect. Writes
    the object to `path` (under a temporary name first) and leaves the module
    unchanged. An object that would need symbols at load time (libm, memcpy) is
    an error, because IREE's loader has none to offer. Without kernels it
    writes nothing.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"path", "path", "std::string", "\"\"", "the object file to write">,
                 Option<"manifest", "manifest", "std::string", "\"\"",
                        "also write the kernels' names, workgroups and binding sizes to this file, as JSON">,
                 Option<"dumpAssembly", "dump-assembly", "std::string", "\"\"", "also write assembly to this file">];
  let statistics = [Statistic<"bytes", "bytes", "size of the object">];
}

//===----------------------------------------------------------------------===//
// codegen/gpu
//===----------------------------------------------------------------------===//

def PipelineLoads : Pass<"tile-pipeline-loads", "::tilewright::tile::ProgramOp"> {
  let summary = "Begin the copies for a contraction while the one before it is multiplied";
  let description = [{
    Arrives: `tile.program`s with allocated buffers. Leaves: on each contraction
    behind another one of its block, `tile.loads_ahead`: the operands ("rows",
    "lanes") whose first steps are copied to shared memory while the last steps
    of the one before are multiplied (Souffle 6.5); on the first contraction of a
    phase, before the barrier of the grid in front of it. Those are operands that
    come by `cp.async` and that nothing in the kernel writes, such as weights. The
    slots of both are live at once: a missed remark where a block has no room for
    that, or where fewer blocks would be resident. On a CPU nothing changes.
    See test/codegen/pipeline-loads.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numPipelined", "pipelined", "contractions whose copies begin ahead">,
                    Statistic<"numDeclined", "declined", "the same, for which there is no room">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def ConvertToGpu : Pass<"tile-convert-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Convert tile programs to functions that the threads of a block run";
  let description = [{
    Arrives: `tile.program`s with allocated buffers; a `tile.parallel` may say how
    many threads a block has (`tile.threads`) and how many share a row
    (`tile.group`), and how many blocks a cluster has (`tile.cluster`). Leaves:
    a `func.func` of the same name per program, over its
    bindings in global memory, the block's shared memory and the block's index.
    Loops are shared out to threads: neighbours take neighbouring vectors of up
    to 16 bytes, reductions end in shuffles and then in shared memory, and loops
    end where the extent does. Between phases is a call of `tile_grid_barrier`,
    which is put into the module with its counter. More bindings than IREE's CUDA
    driver takes, more shared memory or threads than the target has, phases with
    more blocks than are sure to be resident, clusters that the target does not
    have or that are not whole, and a target that is no GPU, are errors.
    See test/codegen/convert-to-gpu.mlir and test/codegen/clusters.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect", "::mlir::affine::AffineDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect"];
}

def StageTiles : Pass<"tile-stage-tiles", "::tilewright::tile::ProgramOp"> {
  let summary = "Let a block copy tiles that its threads would touch a few bytes at a time";
  let description = [{
    Arrives: `tile.program`s without places for buffers. Leaves: what a tile
    reads or writes of a binding, where that is one run of memory, copied as a
    whole between it and a buffer wherever the nests would touch more 32-byte
    sectors themselves: rows that are not aligned, rows of a few elements, inputs
    that several rows read. Buffers that held such an input before are dropped,
    and an output takes the buffer of an input that is read last at the same
    point. The buffer starts as many bytes past a multiple of 16 as the run does
    (`tile.aligned_as`), so that the copy is of whole vectors. On targets with
    clusters, what all blocks read is copied once a cluster, between two
    `tile.sync <cluster>`, if they would read too much again otherwise
    (`tile.cluster` on the part: of how many blocks). A missed remark
    where the block's memory does not suffice. On a CPU nothing is staged.
    See test/codegen/stage-tiles.mlir and test/codegen/clusters.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numStaged", "staged", "inputs and outputs that are copied as a whole">,
                    Statistic<"numDeclined", "declined", "the same, for which there is no memory">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def PartitionAtGridSync : Pass<"tile-partition-at-grid-sync", "::mlir::ModuleOp"> {
  let summary = "Cut tile programs at barriers of the grid that are not safe or do not pay";
  let description = [{
    Arrives: `tile.program`s with allocated buffers, in a module of their own
    next to their launches or alone, whose parts are phases with
    `tile.sync <grid>` between them. Leaves: programs whose phases share a kernel
    only where the blocks of all of them are sure to be resident at once on every
    device that the target stands for, by threads, shared memory and registers
    (`tile.registers` on a part, as `ptxas` says, else a bound that launch bounds
    enforce), and, with `by-cost`, where the evaluator predicts no more time than
    for two launches (Souffle 5.4: breadth first, greedily). Every other barrier
    becomes a launch: a program of its own, with a missed remark that says why,
    and what the phases hand over is a result of one and an input of the other.
    Workgroups of phases that stay are no more than can be resident. Without
    `grid-sync`, and on targets without a barrier, all barriers are cut.
    See test/codegen/partition-at-grid-sync.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "whether kernels may wait at a barrier of the grid">,
                 Option<"byCost", "by-cost", "bool", "true", "also cut where a barrier is predicted not to pay">];
  let statistics = [Statistic<"numKept", "kept", "barriers kept">,
                    Statistic<"numCut", "cut", "barriers that became launches, each with a missed remark">];
}

def WrapCudaAbi : Pass<"tile-wrap-cuda-abi", "::mlir::ModuleOp"> {
  let summary = "Give each kernel the parameters that IREE's CUDA driver passes";
  let description = [{
    Arrives: kernels as `llvm.func` with the pointers of their bindings, the
    block's shared memory and the block's index. Leaves: a `gpu.module` with the
    kernels, over their bindings alone, with launch bounds; the block's index is
    read from its register. Up to 48 KiB of shared memory are a global of the
    kernel, more is the dynamic memory of the launch.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::gpu::GPUDialect"];
}

def EmitPtx : Pass<"tile-emit-ptx", "::mlir::ModuleOp"> {
  let summary = "Compile the kernel module to PTX";
  let description = [{
    Arrives: the nested module `tilewright_kernels` with a `gpu.module` of kernels
    in the NVVM dialect. Writes PTX to `path` (under a temporary name first) and
    leaves the module unchanged. A kernel that calls a function which PTX has not
    is an error. Without kernels it writes nothing.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"path", "path", "std::string", "\"\"", "the PTX file to write">,
                 Option<"manifest", "manifest", "std::string", "\"\"",
                        "also write the kernels' names, launch shapes and binding sizes to this file, as JSON">];
  let statistics = [Statistic<"bytes", "bytes", "size of the PTX">];
}

//===----------------------------------------------------------------------===//
// analysis: what the analyses know, as remarks
//===----------------------------------------------------------------------===//

def PrintTensorGraph : Pass<"tile-print-tensor-graph", "::mlir::func::FuncOp"> {
  let summary = "Print the tensor dependence graph";
  let description = [{
    Souffle 5.1: on each op its expression, edges and live ranges; where a
    tensor is defined that several expressions read, whether the reuse is
    spatial or temporal. Changes nothing. See test/analysis/tensor-graph.mlir.
  }];
}

def PrintElementDependence : Pass<"tile-print-element-dependence", "::mlir::func::FuncOp"> {
  let summary = "Print which input elements each output element relies on";
  let description = [{
    Souffle 5.2: one-relies-on-one with its matrix where the map is affine,
    one-relies-on-many with the ranges of the reduction variables. Changes
    nothing. See test/analysis/element-dependence.mlir.
  }];
}

def PrintComputeRatio : Pass<"tile-print-compute-ratio", "::mlir::func::FuncOp"> {
  let summary = "Print arithmetic per element moved";
  let description = [{
    Souffle 5.3. Changes nothing. See test/analysis/compute-ratio.mlir.
  }];
  let options = [Option<"threshold", "threshold", "double", "3.0",
                        "operations per element from which an op is compute-intensive">];
}

def PrintPropagation : Pass<"tile-print-propagation", "::mlir::func::FuncOp"> {
  let summary = "Print the tiles that an output tile needs, their footprint and their traffic";
  let description = [{
    Welder 3.1: the tile of the first returned value, carried to every input and
    on to the other outputs; an output that cannot be aligned is named with the
    reason. Changes nothing. See test/analysis/propagation.mlir.
  }];
  let options = [
    ListOption<"outputTile", "output-tile", "int64_t", "elements per dim of the first returned value; missing: all">,
    Option<"reductionTile", "reduction-tile", "int64_t", "0",
           "elements of a reduced dim that are resident at once; 0: all">,
    Option<"connect", "connect", "bool", "true", "connect every edge; false: every op alone">];
}

//===----------------------------------------------------------------------===//
// transforms: tensor expressions
//===----------------------------------------------------------------------===//

def NormalizeExprs : Pass<"tile-normalize", "::mlir::func::FuncOp"> {
  let summary = "Erase operands and results of linalg.generic that nothing uses";
  let description = [{
    Arrives and leaves: any function. A result nobody reads (the index half of
    a maximum) would otherwise be computed and written by the kernel. Assertions
    inside bodies go too. A linalg operation of any kind one of whose loops has
    length zero is replaced by what its results begin with: a matmul along such
    a dim is its zeros. A contraction that kernels can take reads past the
    reshapes that lay batch dims of both operands together, and becomes a
    linalg.generic with a loop for each, so that it has the dims of what is
    around it: an attention of several batches and heads is one chain then. A
    number that a body takes from a tensor of one element, at most computed on from
    there, becomes an operand, and integers are padded with such a number by a
    constant pad of differences to it. Apart from that, contractions and everything
    that is not linalg.generic are left alone.
    See test/passes/normalize.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandArgCompare : Pass<"tile-expand-arg-compare", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's arg_compare into reductions that fuse";
  let description = [{
    Arrives: any function, with `iree_linalg_ext.arg_compare` as an unregistered
    op. Leaves: for each whose comparison is strict, a reduction to the extremum,
    one to the least index at which it stands, and a choice of the initial index
    where no element wins over the initial value. All others are left alone.
    See test/passes/expand-arg-compare.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExpandQuantization : Pass<"tile-expand-quantization", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's quantisations into arithmetic that fuses";
  let description = [{
    Arrives: any function, with `iree_linalg_ext.quantize_affine` and
    `iree_linalg_ext.dequantize_affine` as unregistered ops. Leaves: for each in
    f32 a `linalg.generic` with what ONNX says of it: x / scale, rounded to the
    even one of two, plus the zero point, cut off at the bounds, of which a NaN
    gives the lower; (q - zero point) * scale. All others are left alone.
    See test/passes/expand-quantization.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def ShiftMoments : Pass<"tile-shift-moments", "::mlir::func::FuncOp"> {
  let summary = "Sum squared differences in one pass where a workgroup cannot keep what it reduces";
  let description = [{
    Arrives: any function. A sum of `(x - b)^2`, with b the same for all that is
    summed and made of the sum of x, most often the mean, reads x again when b is
    known. Leaves: where x does not fit the target's memory for a workgroup, the
    sums of parts of x that do, those of `x - c` and of its square, c being the
    part's mean, and what b makes of all parts' sums. Its relative error is that
    of two passes. Where no whole dims cut x into such parts, and narrow floats,
    it is left alone, and so are all others.
    See test/passes/shift-moments.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DelayDivisions : Pass<"tile-delay-divisions", "::mlir::func::FuncOp"> {
  let summary = "Divide after a contraction instead of before it where that is less work";
  let description = [{
    Arrives: any function. Leaves: where a contraction reads exponentials divided
    by their own sum (a softmax), at most rounded, moved about and read by it
    alone, and its result is smaller than they are, it reads the exponentials,
    and its result is divided. All others, exponentials of what its own maximum was not
    taken off, and contractions that round their sums or do not start from zero,
    are left alone. Exponentials of f32 that are read only rounded to bf16 and by
    that sum, and the sum by that division, have the form `exponentials within 2^-13`
    and the attribute `tile.for_bf16`. See test/passes/delay-divisions.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"delayed", "delayed", "divisions moved behind their contraction">];
}

def RunMaxima : Pass<"tile-run-maxima", "::mlir::func::FuncOp"> {
  let summary = "Name the maxima of rows that may be used while they are accumulated";
  let description = [{
    Arrives: any function. A maximum m of long rows of f32 whose `exp(x - m)` is
    summed over the same rows reads each row twice: x again when m is known.
    Leaves: the form `running maximum` on such a maximum, by which planning and
    lowering find both in one pass. Where a contraction multiplies with such
    exponentials, the form is `running maximum of blocks`: the plan may have tiles
    walk the rows, of whatever length, in blocks. Where a mask hides what is beyond
    some point of each row, the form is `running maximum of counted blocks`, and the
    attribute `tile.counted` says where. All others are left alone: short
    rows, maxima across rows, narrow floats, maxima that nothing is taken relative
    to, or something else than what they are the maximum of.
    See test/passes/run-maxima.mlir and run-maxima-counted.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numNamed", "named", "maxima named">];
}

def SplitReductions : Pass<"tile-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reduce in two phases where the results are too few to fill the GPU";
  let description = [{
    Arrives: any function. A reduction of few results keeps few blocks busy.
    Leaves: where two phases are predicted to take clearly less time, a reduction
    of parts of the reduced elements into partial results, from a neutral start,
    and one of those into the results. Both have the form `two-phase reduction`,
    with both predictions; sums are regrouped by it, and those of f16 and bf16
    keep partial results in f32. Which dims are cut into how many parts is
    predicted as the planner predicts kernels, with a barrier of the grid between
    the phases (`grid-sync`) or else a launch; of contractions, a launch. Left
    alone are contractions that no micro kernel computes, reductions whose body is
    not a sum, product, extremum or bit operation per result, inits that are no
    constants, and targets that are no GPUs; a missed remark says why. Sums of
    exponentials relative to a maximum along the same dim (a softmax and what it
    is multiplied with) are cut together with the maximum, and with what their
    exponents are computed from: each part is relative to a maximum of its own.
    See test/passes/split-reductions.mlir and split-keys.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "whether kernels may wait at a barrier of the grid">];
  let statistics = [Statistic<"numSplit", "split", "reductions in two phases">,
                    Statistic<"numDeclined", "declined", "reductions of GPUs left in one, each with a missed remark">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RaiseTensorExprs : Pass<"tile-raise", "::mlir::func::FuncOp"> {
  let summary = "Raise tensor ops to tile.expr";
  let description = [{
    Arrives: linalg and tensor ops. Leaves: a `tile.expr` for each that is a
    static tensor expression and no contraction; accumulators and padding values
    are constants, splat constants are scalars of the body. Reshapes, slices,
    pads and concats become maps and guards. Others are left, with a missed
    remark that says why. See test/passes/raise.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRaised", "raised", "ops raised">,
                    Statistic<"numLeft", "left", "ops left as they were, each with a missed remark">];
}

def ComposeExprs : Pass<"tile-compose", "::mlir::func::FuncOp"> {
  let summary = "Fold producers into their consumers by composing index maps";
  let description = [{
    Souffle's vertical transformation (section 6.2). Inside a `tile.subprogram`
    it carries out exactly the `tile.connect` edges of scope `thread`; a
    reduction behind such an edge is an error. Outside subprograms it folds every
    one-relies-on-one producer whose folding repeats no arithmetic: movement
    always, arithmetic when its one reader reads each element at most once.
    Always exact. See test/passes/compose.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numInlined", "inlined", "producers folded into a consumer">,
                    Statistic<"numKept", "kept", "producers kept, each with a missed remark">];
}

def ApplyNumerics : Pass<"tile-apply-numerics", "::tilewright::tile::SubprogramOp"> {
  let summary = "Make the roundings and freedoms of a subprogram's numerics explicit in its bodies";
  let description = [{
    Arrives: expressions whose bodies compute with bf16 and f16 as such. Leaves:
    arithmetic in f32 alone, with an `arith.truncf` after each operation that
    rounds and an `arith.extf` where a stored value is read. Where `numerics`
    relaxes roundings, one that only arithmetic of the same body reads is gone;
    the `unrounded` edges are `tile-compose`'s to carry out. Where math is fast,
    divisions allow reciprocals (`arcp`). A subprogram without `numerics` is
    taken as relaxed and fast. See test/passes/apply-numerics.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numLeftOut", "left-out", "roundings left out inside bodies">];
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

def PrintPlan : Pass<"tile-print-plan", "::mlir::func::FuncOp"> {
  let summary = "Print the plan of each function as remarks, or as JSON";
  let description = [{
    Changes nothing. A remark on the function for every kernel (its index space,
    tiles and prediction), on every tensor expression (its place in a kernel, or
    why it is left to IREE) and on the consumer of every edge (its scope and
    why). With `json` the plan goes to the standard output instead.
    See test/passes/print-plan.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
                 Option<"json", "json", "bool", "false", "print JSON to the standard output">];
}

def PrintSchemes : Pass<"tile-print-schemes", "::mlir::func::FuncOp"> {
  let summary = "Print how blocks of threads could compute each part of a kernel, and which way is chosen";
  let description = [{
    FusionStitching 4. Changes nothing. Remarks on the last op of each part of the
    plan: the scheme that is chosen (thread, warp or block composition, or tiles
    of points), and for every scheme its quickest launch dimensions with what the
    latency evaluator says of them term by term, or why it was discarded. With
    `all` every candidate is printed. See test/passes/print-schemes.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"all", "all", "bool", "false", "print every candidate">];
}

def PrintBlockOrder : Pass<"tile-print-block-order", "::mlir::func::FuncOp"> {
  let summary = "Print chains of contractions, their best block order, and what it moves";
  let description = [{
    Chimera 4. Changes nothing. Remarks on the last contraction of every chain:
    its loops and accesses; per memory level the order and tiles that move least,
    outermost loop first, with what they move into the level and keep in it, and
    what bounds the whole; the same for each contraction by itself; and why
    contractions that feed one another form no chain.
    See test/analysis/block-order.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
                 Option<"online", "online", "bool", "false",
                        "reductions between contractions go on from block to block, as an online softmax does">];
}

class PlanningPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  list<Option> planning = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "what kernels may do to numbers: default, strict">,
    Option<"output", "output", "std::string", "\"-\"", "the file to write; -: the standard output">];
}

def PrintLaunches : Pass<"tile-print-launches", "::mlir::ModuleOp"> {
  let summary = "Print which kernels a module runs on which tensors, as JSON";
  let description = [{
    Changes nothing. Of the one function that launches kernels: its launches in
    order with numbers of the tensors that they read and make, the results, and
    for every tensor its shape, element type, and where it comes from: an
    argument, a global, a constant, a launch, or an op that is not ours; and the
    text of the kernel module.
  }];
  let options = [Option<"output", "output", "std::string", "", "the JSON file to write">];
}

def PrintSubprograms : PlanningPass<"tile-print-subprograms"> {
  let summary = "Print the plan, and each part of it as a function of its own, as JSON";
  let description = [{
    Changes nothing. Arrives: a module with one function that holds tensor
    expressions. For every part of its plan there is a module with a function
    that computes the same from what the part reads: parts that are equal but
    for names and places, as those of repeated layers, give the same text. See
    test/passes/print-subprograms.mlir.
  }];
  let options = planning;
}

def PrintCandidates : PlanningPass<"tile-print-candidates"> {
  let summary = "Print the plans worth measuring for a function that is one kernel, as JSON";
  let description = [{
    Changes nothing. Arrives: a module with one function that holds tensor
    expressions, all of which make one kernel, as `tile-print-subprograms`
    prints it. The first plan is the planner's own; then come those with other
    tiles, workgroups and scopes, the one that is predicted quickest first, and
    last those that cut the function into several kernels. Each of them can be
    carried out with `plan-in`. See test/passes/print-candidates.mlir.
  }];
  let options = planning # [Option<"count", "count", "unsigned", "20", "the most plans to print">];
}

//===----------------------------------------------------------------------===//
// transforms/FormSubprograms: the plan carried out
//===----------------------------------------------------------------------===//

def NarrowProducts : Pass<"tile-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "Multiply quantised bytes as bytes, and apply zero points and scales to the sums";
  let description = [{
    Arrives: expressions as the front end leaves them: matmuls of i8 that was
    widened and had zero points taken off before, `linalg.quantized_matmul`, and
    matmuls in f32 of dequantised i8, all of them also behind movement. Leaves:
    sums of products of bytes in i32, less what the zero points add to them:
    sum((a - za)(b - zb)) = sum(ab) - za sum(b) - zb sum(a) + K za zb. Zero points
    and scales may differ along whatever is not summed. Sums in i64 and f32 are
    taken only where i32 holds every one of them; those in f32 are multiplied by
    both scales, and are left alone in strict numerics, which round each term.
    See test/passes/narrow-products.mlir.
  }];
  let options = [Option<"numerics", "numerics", "std::string", "\"default\"",
                        "default; strict: sums in f32 stay what they are">];
  let statistics = [Statistic<"numNarrowed", "narrowed", "matmuls of quantised numbers">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def UnfoldContractions : Pass<"tile-unfold-contractions", "::mlir::func::FuncOp"> {
  let summary = "Make convolutions contractions of matrices, and what no register block computes reductions";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: for a convolution
    of static shape that sums over input channels, a movement that lays every
    window of the image in a row (im2col), a contraction of those rows with the
    weights, and what the convolution starts from added at the end. The movement
    is for the planner to fold into whoever reads it. Of quantised bytes the zero
    points are taken off before, for `tile-narrow-products`. A convolution with a filter
    for each channel becomes products and a reduction, and so does a contraction
    with both factors or none along the innermost dim of its result; a pool
    becomes the windows and a reduction.
    See test/passes/unfold-contractions.mlir.
  }];
  let statistics = [Statistic<"numUnfolded", "unfolded", "convolutions, pools and contractions">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def MergeContractions : Pass<"tile-merge-contractions", "::mlir::func::FuncOp"> {
  let summary = "Make independent contractions that share an input one, their weights side by side";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: contractions that
    multiply one tensor with weights or constants, and agree in all but their
    numbers of columns, as one (Souffle 6.1: horizontal transformation), with
    the columns split into heads, slots and width: one dim where each part has
    one slot, so that a tile holds the same columns of every part. Elementwise
    ops that follow each part alike, such as biases, are one as well. Readers
    get their part as a slice. Nothing is added in another order.

    Weights that are computed in each call, other dims, orders of elements or
    types, and columns that would fill up more register blocks of `target` than
    a launch is worth keep contractions apart; a missed remark says which.
    See test/passes/merge-contractions.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numMerged", "merged", "contractions that became part of one">,
                    Statistic<"numDeclined", "declined", "pairs that share an input and stay apart">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def PackWeights : Pass<"tile-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Lay constant operands of contractions out as the micro kernel reads them";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: every contraction
    that a register block can compute, and whose lane operand depends on weights
    and constants alone, reading that operand as blocks of lanes, one block
    after another, each with the reduced dims outside and its lanes inside,
    filled up with zeros (Chimera 5: packing); where a step of the micro kernel
    takes several terms, those of a lane lie side by side. Whatever order the
    weights came in, the kernel then reads them from first to last. Where any
    other operand lies across the lanes (the keys of an attention), the
    contraction reads a copy of it with the lanes innermost, for the planner to
    place.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "default or strict: which micro kernels there are">];
  let statistics = [Statistic<"packed", "packed", "operands packed">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def StoreWeights : Pass<"tile-store-weights", "::mlir::ModuleOp"> {
  let summary = "Have weights stored in the parameter file as tile-pack-weights laid them out";
  let description = [{
    Arrives: functions whose weights `tile-pack-weights` laid out. Leaves: every
    one that movement alone makes of parameters of `scopes` as a parameter of its
    own, which is loaded, and mapped, as it lies in the file; globals of
    parameters that nothing reads then are gone. Equal ones are one parameter.
    `recipes` says, as JSON, how each new parameter is made of the ones there
    were, and which of those nobody needs: who writes the file carries it out,
    and without `recipes` nothing is changed. What is made of other weights, or
    by arithmetic, IREE computes whenever the program is loaded, and a missed
    remark says so.
    See test/passes/store-weights.mlir.
  }];
  let options = [
    ListOption<"scopes", "scopes", "std::string", "parameter files that can be written anew, by scope">,
    Option<"recipes", "recipes", "std::string", "\"\"", "write what to store as JSON">];
  let statistics = [Statistic<"numStored", "stored", "parameters to be stored packed">,
                    Statistic<"numDeclined", "declined", "packed weights that are computed at load">];
}

def FormSubprograms : Pass<"tile-form-subprograms", "::mlir::ModuleOp"> {
  let summary = "Plan which ops share a kernel, and put each kernel into a tile.subprogram";
  let description = [{
    Arrives: `func.func`s of one block with linalg and tensor ops, and any other
    ops between them. Leaves: per part of the plan a `tile.subprogram` that
    holds its expressions, raised, with a `tile.connect` on every edge between
    them that names its scope; domain dims of one point are gone. Parts packed
    into one kernel stand next to each other under one name. Ops of the block
    are put into an order that allows it; ops with effects, unregistered ones
    among them, keep theirs.

    The plan is made for `target`, or read from `plan-in`, checked, and carried
    out as it is; one that is not legal is an error at the function. With
    `plan-in`, `plan-out` and `report` the module may hold one function with
    tensor expressions. Every edge left at scope `launch` and every op left to
    IREE gets a missed remark with the reason.
    See test/passes/form-subprograms.mlir.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"policy", "policy", "std::string", "\"greedy\"", "how to plan: greedy">,
    Option<"takeSingles", "take-singles", "bool", "true", "take what IREE would run as one dispatch too">,
    Option<"pack", "pack", "bool", "true", "pack small independent parts into one kernel">,
    Option<"gridSync", "grid-sync", "bool", "true",
           "join kernels by barriers of the grid, where the target has them">,
    Option<"numerics", "numerics", "std::string", "\"default\"",
           "what kernels may do to numbers: default, or strict: every rounding as in the graph">,
    Option<"planIn", "plan-in", "std::string", "\"\"", "JSON plan to carry out instead of planning">,
    Option<"planOut", "plan-out", "std::string", "\"\"", "write the plan as JSON">,
    Option<"report", "report", "std::string", "\"\"", "write what was built, and why, as JSON">];
  let statistics = [Statistic<"numKernels", "kernels", "kernels formed">,
                    Statistic<"numTaken", "taken", "ops taken into kernels">,
                    Statistic<"numLeft", "declined", "ops left to IREE, each with a missed remark">,
                    Statistic<"numLaunch", "launch-edges", "edges left at scope launch, each with a missed remark">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

//===----------------------------------------------------------------------===//
// verify
//===----------------------------------------------------------------------===//

def VerifyPrograms : Pass<"tile-verify-programs", "::tilewright::tile::ProgramOp"> {
  let summary = "Check a tile program before target code is made of it";
  let description = [{
    Arrives and leaves: tile programs with allocated buffers. Refuses, with an
    error at the op: (R1) a write to an input; (R2) a read of a buffer that
    nothing wrote before the last `tile.sync`; (R3) an unguarded access that may
    leave its binding; (R4) buffers without a place, or two that overlap while
    both are live; (R5) a read of what another part of the phase writes. See
    test/passes/verify-programs-errors.mlir.
  }];
}

def VerifyPlanned : Pass<"tile-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the planned graph before it is lowered";
  let description = [{
    Arrives and leaves: `tile.subprogram`s. Refuses, with an error at the op:
    (G1) an edge between two expressions without a connect; (G2) a scope that
    cannot be carried out, or `thread` out of a reduction; (G3) a root without
    `dims`; (G4) a grid dim that some root lacks or reduces; (G5) a block edge
    that is read across tiles of the grid. See test/passes/verify-planned-errors.mlir.
  }];
}

#endif

// Passes of passes/codegen/cpu: tile programs into object files.
#ifndef TILEWRIGHT_CODEGEN_CPU_PASSES_TD
#define TILEWRIGHT_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

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
    test/passes/codegen/cpu/trace-accesses.mlir.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect",
    "::mlir::vector::VectorDialect"];
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
    writes nothing. Masked loads and stores of functions for AVX and AVX2 become
    that instruction set's own, because LLVM 22.1 selects wrong ones.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"path", "path", "std::string", "\"\"", "the object file to write">,
                 Option<"manifest", "manifest", "std::string", "\"\"",
                        "also write the kernels' names, workgroups and binding sizes to this file, as JSON">,
                 Option<"dumpAssembly", "dump-assembly", "std::string", "\"\"", "also write assembly to this file">];
  let statistics = [Statistic<"bytes", "bytes", "size of the object">];
}

#endif

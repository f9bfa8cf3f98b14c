// Passes of passes/codegen/cpu, which compile tile programs to object files.
#ifndef TILEWRIGHT_CODEGEN_CPU_PASSES_TD
#define TILEWRIGHT_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def MakeVariants : Pass<"tile-make-variants", "::mlir::ModuleOp"> {
  let summary = "Make one program per instruction set of each tile program";
  let description = [{
    Arrives: a module of `tile.program`s with allocated buffers. Leaves: if there
    are several `targets`, each program is for the first one, and a copy
    `<name>.<target>` is for each further one. The attribute `tile.target` names
    a program's target, and `tile.variant_of` names the program of which it is a
    variant. The entry point calls the first variant whose features the processor
    has, so the widest target must come first. A target that would never be
    chosen is an error, and so is one with a vector extension that IREE's runtime
    does not report.
  }];
  let options = [ListOption<"targets", "targets", "std::string", "target names or JSON files, widest first">];
  let statistics = [Statistic<"copies", "copies", "programs added">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def ConvertToVector : Pass<"tile-convert-to-vector", "::mlir::ModuleOp"> {
  let summary = "Convert tile programs to functions over vectors and memrefs";
  let description = [{
    Arrives: `tile.program`s with allocated buffers. They are for `target`, unless
    they name a target of their own. An `scf.for` in a walk orders the nests of a
    tile. Leaves: one `func.func` of the same name per program, with its bindings,
    the workgroup's memory and the workgroup's index as arguments. Each loop nest
    advances along its vector dim by whole vectors with a masked tail. Values are
    computed outside the loops that they do not depend on. Contiguous, uniform and
    irregular accesses become vector loads, scalar loads and gathers. If a tile's
    last nest stores its results with non-temporal stores, it runs in the loops of
    the next tile's first nest (TilePipeline).
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
    kernels with one more binding after their own. It holds two `i64` counters,
    the bytes loaded and the bytes stored, to which every access to a binding
    adds. A masked access counts its active lanes.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect",
    "::mlir::vector::VectorDialect"];
}

def TraceAccesses : Pass<"tile-trace-accesses", "::mlir::func::FuncOp"> {
  let summary = "Record the addresses that a kernel reads and writes";
  let description = [{
    Arrives: kernels as `tile-convert-to-vector` makes them. Leaves: the same
    kernels with one more binding after their own, which holds the trace. It
    begins with the number of accesses and the number of records for which there
    is room, which the caller sets. One record per access follows, `address << 16
    | bytes << 1 | is_store`, and room for one more. Accesses to bindings and to
    the workgroup's memory are recorded in order. See
    test/passes/codegen/cpu/trace-accesses.mlir.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect",
    "::mlir::vector::VectorDialect"];
}

def WrapCpuAbi : Pass<"tile-wrap-cpu-abi", "::mlir::ModuleOp"> {
  let summary = "Give each kernel an entry point with IREE's executable ABI";
  let description = [{
    Arrives: kernels as `llvm.func`s, whose arguments are the bare pointers of
    their bindings and of the workgroup's memory, and the workgroup's index.
    Leaves: the kernel, private and inlined, and an entry point of the same name,
    `i32 (environment, dispatch state, workgroup state)`, which reads the
    arguments from IREE's structs. If a kernel has variants, each variant has a
    private entry, and the entry point calls the first one whose features the
    environment reports. If there is none, it fails with status 1. A kernel that
    uses AMX's tile registers runs only if the operating system has granted them
    to the process; otherwise the next variant is called, or the call fails. The
    option `assume-tiles` omits that check, for emulators.
  }];
  let options = [Option<"assumeTiles", "assume-tiles", "bool", "false",
                        "assume that every process may use tile registers; in a process that may not, kernels trap">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def EmitObject : Pass<"tile-emit-object", "::mlir::ModuleOp"> {
  let summary = "Compile the kernel module to an ELF object";
  let description = [{
    Arrives: the nested module `tilewright_kernels` in the LLVM dialect. Leaves:
    the same module. The pass writes the object to `path`, under a temporary name
    first. Kernels are compiled in parallel, each to an object of its own; if
    there are several, the file is an archive of them, which linkers take in the
    place of an object (with `--whole-archive` if they make a library of it
    alone). An object that needs symbols at load time (libm, memcpy) is an error,
    because IREE's loader does not provide any. A module without kernels writes
    nothing. Masked loads and stores in functions for AVX and AVX2 use those
    instruction sets' own instructions, because LLVM 22.1 selects wrong ones.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"path", "path", "std::string", "\"\"", "the object file to write">,
                 Option<"manifest", "manifest", "std::string", "\"\"",
                        "also write the kernels' names, workgroups and binding sizes to this file, as JSON">,
                 Option<"dumpAssembly", "dump-assembly", "std::string", "\"\"", "also write assembly to this file">];
  let statistics = [Statistic<"bytes", "bytes", "size of the object">];
}

#endif

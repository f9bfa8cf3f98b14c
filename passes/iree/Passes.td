// Passes of passes/iree, the interface to IREE.
#ifndef TILEWRIGHT_IREE_PASSES_TD
#define TILEWRIGHT_IREE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ImportIree : Pass<"tile-import-iree", "::mlir::ModuleOp"> {
  let summary = "Map IREE's functions to func.func";
  let description = [{
    The input is IREE's module at its `preprocessing` phase as MLIR 22 reads it,
    with `util.func` and `util.return` as unregistered ops. Each such function
    becomes a `func.func`, so that ordinary passes see isolated functions; all
    attributes are kept for `tile-export-iree`. Functions without a body, and
    everything that is not a function, are left alone. A module in the module is
    refused, unless it is `tilewright_kernels` with tile programs only.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def ComputeAtLoad : Pass<"tile-compute-at-load", "::mlir::ModuleOp"> {
  let summary = "Compute what kernels read of constants and weights alone when the module is loaded";
  let description = [{
    The input has `tile.launch`es of compiled kernels among ops that stay with
    IREE. Every tensor of fixed shape that a launch reads or the function returns,
    and that pure ops compute from constants and weights alone, is computed by an
    initializer instead, which stores it in a global. A function whose name is that
    of the program with `$at_load` behind it returns all of them, in order.

    Tensors that only arrange elements of constants and weights differently stay,
    because a runtime can do that without IREE (see `tile-print-launches`), and so
    do those that only ops of IREE read. See test/passes/iree/compute-at-load.mlir.
  }];
  let statistics = [Statistic<"numMoved", "moved", "tensors that the initializer computes">];
}

def GuardDivisions : Pass<"tile-guard-divisions", "::mlir::ModuleOp"> {
  let summary = "Have IREE divide integers without traps";
  let description = [{
    The input is ops that stay with IREE. Divisions and remainders of integers in
    the bodies of `linalg.generic` divide by 1 where the divisor is zero, and where the
    least signed number is divided by -1: IREE pads some kernels with zeros, and a
    division by zero ends the process on x86. Divisors that are constants other
    than these stay, and so do indices. See test/passes/iree/guard-divisions.mlir.
  }];
  let statistics = [Statistic<"numGuarded", "guarded", "divisions whose divisor is checked">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def HideConstants : Pass<"tile-hide-constants", "::mlir::ModuleOp"> {
  let summary = "Have IREE read sliced constants from memory";
  let description = [{
    The input is ops that stay with IREE. A constant of up to 256 bytes is put
    behind an optimization barrier if a slice reads it, or reads what elementwise
    ops compute from it. IREE would put the constant and the slice into one kernel,
    which its back end for CUDA refuses. See test/passes/iree/hide-constants.mlir.
  }];
  let statistics = [Statistic<"numHidden", "hidden", "constants that kernels read from memory">];
}

def PrintLaunches : Pass<"tile-print-launches", "::mlir::ModuleOp"> {
  let summary = "Print which kernels a module runs on which tensors, as JSON";
  let description = [{
    Changes nothing. Prints, for the only function that launches kernels, its
    launches in order with the numbers of the tensors that they read and write,
    and its results with their shapes. Every tensor has its shape, its element
    type and its source: an argument, a global, a constant, a launch, a result of
    the function of `tile-compute-at-load`, or another op. Another op has its location and, if it depends only on tensors, a function
    that computes it from them. The text of the kernel module is printed as well.
    A loop that launches kernels is printed with its steps, the tensors that it
    carries, and its body, in which slices that move with the step are printed
    between launches. One whose steps are not known has its name only.

    With `for-runtime`, neither that text nor those functions are printed, but what
    a runtime needs: the functions that the executable will export, the inputs
    whose memory results take, the bytes of local or shared memory, the threads of
    a block, and whether blocks wait for each other, on a GPU, and on a CPU the bits
    by which kernels know features of the processor.
  }];
  let options = [Option<"output", "output", "std::string", "", "path of the JSON file to write">,
                 Option<"forRuntime", "for-runtime", "bool", "false", "print what a runtime for CPUs needs">];
}

def RepeatLaunches : Pass<"tile-repeat-launches", "::mlir::ModuleOp"> {
  let summary = "Put loops over launches of one kernel into the kernel";
  let description = [{
    The input has `scf.for`s that the plan puts into a kernel (`tile.one_kernel`),
    each with one launch of a compiled kernel for a GPU. Such a loop becomes one
    launch of a new kernel, which runs all steps, with a barrier between two of
    them: of the grid, or of the block if there is only one. States alternate
    between two tensors, parts of sequences are addresses that move with the
    step, and what does not change in the loop is computed in front of it.

    A loop stays as it is, with a missed remark, if its kernel would have too many
    bindings or blocks that are not proved to be resident at once, or if the loop
    carries anything but results of the kernel. See
    test/passes/iree/repeat-launches.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cuda:h200\"", "target name or JSON file">];
  let statistics = [Statistic<"numRepeated", "repeated", "loops that became part of a kernel">,
                    Statistic<"numDeclined", "declined",
                              "loops that launch a kernel in every step, each with a missed remark">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::tensor::TensorDialect"];
}

def AlignBindings : Pass<"tile-align-bindings", "::mlir::ModuleOp"> {
  let summary = "Have IREE copy tensors that it would bind to kernels at unaligned addresses";
  let description = [{
    The input has `tile.launch`es of compiled kernels among ops that stay with
    IREE. IREE binds a contiguous slice of a tensor to a kernel without a copy,
    and has a kernel write its result into a concatenation or an insertion. The
    pass puts an optimization barrier, at which IREE copies, between those ops
    and a launch if the byte offset is not a multiple of 16 on a GPU, or of 64
    for results of kernels that store past the caches on a CPU, or if it is known
    only at run time.
  }];
  let statistics = [Statistic<"numCopied", "copied", "bindings that IREE copies">];
}

def WidenConvolutions : Pass<"tile-widen-convolutions", "::mlir::ModuleOp"> {
  let summary = "Have IREE compute convolutions of narrow floats in f32";
  let description = [{
    The input is ops that stay with IREE, whether their functions are imported or
    not. Every convolution with an operand in f16, bf16 or a narrower float is
    computed in f32: named or `linalg.generic`, grouped or not, of any rank and
    shape, static or dynamic. So are contractions that read a strided slice, which
    IREE makes of some convolutions. Inputs are extended behind an optimization
    barrier, initial accumulators are extended as well, and the sum is rounded to
    its original type. Pools, elementwise ops and contractions without windows are
    left alone. See test/passes/iree/widen-convolutions.mlir.
  }];
  let options = [Option<"record", "record", "std::string", "\"\"",
                        "write the number of widened convolutions as JSON: {\"widened\": N}">];
  let statistics = [Statistic<"numWidened", "widened", "convolutions that IREE computes in f32">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SpliceIree : Pass<"tile-splice-iree", "::mlir::ModuleOp"> {
  let summary = "Splice compiled kernels into IREE's module as dispatches";
  let description = [{
    The input has `tile.launch`es of kernels compiled to the object at `object`.
    The kernel module is replaced by a `hal.executable.source` with an export and
    a static import shim per kernel, and each launch by a `flow.dispatch`. These
    are unregistered ops that IREE's parser knows. For kernels in a `gpu.module`,
    `object` is PTX, and the exports state block sizes and shared memory. With
    `variants`, the executable is a `hal.executable` with a variant for the
    compute capability of each target and one for that of `target`. The runtime
    takes the first that the device supports, and refuses to load the module if
    there is none. On CPUs, the module itself allocates results above 64 MB
    (ResultStorage). See test/passes/iree/splice-iree-cuda-variants.mlir.
  }];
  let options = [Option<"object", "object", "std::string", "\"\"",
                        "path of the kernels' ELF object or PTX; the path of a variant contains its number">,
                 Option<"target", "target", "std::string", "\"\"", "target name or JSON file; only for variants">,
                 ListOption<"variants", "variants", "std::string",
                            "GPUs with other compute capabilities, most capable first, each with its own PTX">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"dispatches", "dispatches", "kernels launched">];
}

def ExportIree : Pass<"tile-export-iree", "::mlir::ModuleOp"> {
  let summary = "Map imported functions back to IREE's own";
  let description = [{
    The inverse of `tile-import-iree`. Functions that it made become `util.func`
    again with all their attributes; others stay `func.func`.
  }];
}

#endif

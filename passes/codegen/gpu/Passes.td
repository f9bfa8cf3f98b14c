// Passes of passes/codegen/gpu: tile programs into PTX.
#ifndef TILEWRIGHT_CODEGEN_GPU_PASSES_TD
#define TILEWRIGHT_CODEGEN_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

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
    which is put into the module with its counter. More shared memory or threads
    than the target has, phases with more blocks than are sure to be resident,
    clusters that the target does not have or that are not whole, and a target
    that is no GPU, are errors.
    See test/passes/codegen/gpu/convert-to-gpu.mlir and test/passes/codegen/gpu/clusters.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect", "::mlir::affine::AffineDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect"];
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

def ShareBindings : Pass<"tile-share-bindings", "::mlir::ModuleOp"> {
  let summary = "Let tensors share a binding where a kernel has more than the driver passes";
  let description = [{
    Arrives: a module with `tile.launch`es, and a `gpu.module` of kernels over a
    pointer for each tensor. A kernel with more of them than the target has
    bindings leaves over fewer: weights of one element type, which lie behind one
    another in a tensor that its launch is given (for `tile-store-weights` to
    store), small constants of one type likewise, and what none but the kernel
    reads, which are places in one result of bytes. Launches that differ in what
    is a weight get copies of the kernel where they cannot have it in common. A
    kernel that has too many bindings even so is an error.
    See test/passes/codegen/gpu/share-bindings.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numShared", "shared", "kernels whose tensors share bindings">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
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

#endif

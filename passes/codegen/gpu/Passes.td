// Passes that compile tile programs to PTX.
#ifndef TILEWRIGHT_CODEGEN_GPU_PASSES_TD
#define TILEWRIGHT_CODEGEN_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertToGpu : Pass<"tile-convert-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Convert tile programs to functions that every thread of a block executes";
  let description = [{
    Input: `tile.program`s with allocated buffers; a `tile.parallel` may state the
    threads of a block (`tile.threads`), how many of them share a row (`tile.group`),
    and the blocks of a cluster (`tile.cluster`). Output: a `func.func` of the same
    name per program, over its bindings in global memory, the block's shared memory
    and the block's index. Loops are divided among threads: neighbouring threads take
    neighbouring vectors of up to 16 bytes, reductions end in shuffles and then in
    shared memory, and loops end at the extent. Between phases there is a call of
    `tile_grid_barrier`, which is added to the module with its counter.

    Errors: more shared memory or threads than the target has, phases with more blocks
    than are certain to be resident, clusters that the target does not support or that
    are incomplete, and a target that is not a GPU.
    See test/passes/codegen/gpu/convert-to-gpu.mlir and test/passes/codegen/gpu/clusters.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect", "::mlir::affine::AffineDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect"];
}

def WrapCudaAbi : Pass<"tile-wrap-cuda-abi", "::mlir::ModuleOp"> {
  let summary = "Give kernels the parameters that IREE's CUDA driver passes";
  let description = [{
    Input: kernels as `llvm.func` with the pointers of their bindings, the block's
    shared memory and the block's index. Output: a `gpu.module` with the kernels, over
    their bindings alone, with launch bounds; the block's index is read from its
    register. Up to 48 KiB of shared memory are a global of the kernel; more is the
    dynamic memory of the launch.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::gpu::GPUDialect"];
}

def ShareBindings : Pass<"tile-share-bindings", "::mlir::ModuleOp"> {
  let summary = "Let tensors share a binding if a kernel has more than the driver passes";
  let description = [{
    Input: a module with `tile.launch`es, and a `gpu.module` of kernels with one pointer
    per tensor. A kernel with more tensors than the target has bindings gets fewer
    parameters: weights of one element type are concatenated to one tensor that its
    launch passes (`tile-store-weights` stores it), small constants of one type
    likewise, and tensors that only the kernel itself reads become offsets in one
    result of bytes. Launches that differ in which tensors are weights get copies of
    the kernel if they cannot share it. A kernel that still has too many bindings is
    an error. See test/passes/codegen/gpu/share-bindings.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numShared", "shared", "kernels whose tensors share bindings">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def EmitPtx : Pass<"tile-emit-ptx", "::mlir::ModuleOp"> {
  let summary = "Compile the kernel module to PTX";
  let description = [{
    Input: the nested module `tilewright_kernels` with a `gpu.module` of kernels in
    the NVVM dialect. The pass writes PTX to `path` (under a temporary name first) and
    leaves the module unchanged. A kernel that calls a function that PTX lacks is an
    error. Without kernels, nothing is written.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"path", "path", "std::string", "\"\"", "the PTX file to write">,
                 Option<"manifest", "manifest", "std::string", "\"\"",
                        "also write the kernels' names, launch shapes and binding sizes to this file, as JSON">];
  let statistics = [Statistic<"bytes", "bytes", "size of the PTX">];
}

#endif

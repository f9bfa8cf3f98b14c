// Puts the loop around a kernel into the kernel: it runs all steps, with a barrier of its blocks between two of them.
#ifndef TILEWRIGHT_CODEGEN_GPU_REPEATKERNEL_H
#define TILEWRIGHT_CODEGEN_GPU_REPEATKERNEL_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/ADT/ArrayRef.h"

#include <limits>

namespace tilewright {

/// Where a tensor of the kernel lies in each step. In step 0 it begins `firstOffset` bytes behind the binding `first`
/// of the repeated kernel, in every other step i `offset + i * stride` bytes behind `even` or `odd`. It stays where it
/// is up to step `from`, and from step `to` on.
struct StepAddress {
  unsigned first = 0, even = 0, odd = 0;
  int64_t firstOffset = 0, offset = 0, stride = 0;
  int64_t from = 0, to = std::numeric_limits<int64_t>::max();

  bool moves() const { return first != even || even != odd || firstOffset != offset || stride != 0; }
};

/// Adds a kernel `name` that runs `steps` steps of a finished kernel, whose blocks are all resident at once. Its
/// bindings have these bytes, and the last `outputs` are results; `addresses` has an entry for each binding of the
/// kernel.
mlir::LLVM::LLVMFuncOp repeatKernel(mlir::LLVM::LLVMFuncOp kernel, llvm::StringRef name,
                                    llvm::ArrayRef<int64_t> bindingBytes, unsigned outputs,
                                    llvm::ArrayRef<StepAddress> addresses, int64_t steps);

} // namespace tilewright

#endif

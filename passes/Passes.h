#ifndef TILEWRIGHT_PASSES_H
#define TILEWRIGHT_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

/// The nested module that holds the tile programs, and later their target code.
inline constexpr llvm::StringLiteral kKernelModule = "tilewright_kernels";

/// Inside it, the module of kernels for a GPU.
inline constexpr llvm::StringLiteral kGpuModule = "kernels";

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace tilewright

#endif

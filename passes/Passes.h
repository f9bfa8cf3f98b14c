// Declares every pass, with its options and its registration, and the modules that passes agree on.
#ifndef TILEWRIGHT_PASSES_H
#define TILEWRIGHT_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

/// Name of the nested module that holds the tile programs, and later their target code.
inline constexpr llvm::StringLiteral kKernelModule = "tilewright_kernels";

/// Name of the `gpu.module` inside it that holds kernels for a GPU.
inline constexpr llvm::StringLiteral kGpuModule = "kernels";

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace tilewright

#endif

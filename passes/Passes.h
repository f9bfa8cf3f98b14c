#ifndef TILEWRIGHT_PASSES_H
#define TILEWRIGHT_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

/// The nested module that holds the tile programs, and later their target code.
inline constexpr llvm::StringLiteral kKernelModule = "tilewright_kernels";

/// What a kernel function remembers of its tile program: workgroups, outputs, bytes of workgroup memory and of each
/// binding.
inline constexpr llvm::StringLiteral kWorkgroupsAttr = "tile.workgroups";
inline constexpr llvm::StringLiteral kOutputsAttr = "tile.outputs";
inline constexpr llvm::StringLiteral kBlockBytesAttr = "tile.block_bytes";
inline constexpr llvm::StringLiteral kBindingBytesAttr = "tile.binding_bytes";

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace tilewright

#endif

#ifndef TILEWRIGHT_PASSES_H
#define TILEWRIGHT_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

/// The nested module that holds the tile programs, and later their target code.
inline constexpr llvm::StringLiteral kKernelModule = "tilewright_kernels";

/// Inside it, the module of kernels for a GPU.
inline constexpr llvm::StringLiteral kGpuModule = "kernels";

/// What a kernel function remembers of its tile program: workgroups, outputs, bytes of workgroup memory and of each
/// binding.
inline constexpr llvm::StringLiteral kWorkgroupsAttr = "tile.workgroups";
inline constexpr llvm::StringLiteral kOutputsAttr = "tile.outputs";
inline constexpr llvm::StringLiteral kBlockBytesAttr = "tile.block_bytes";
inline constexpr llvm::StringLiteral kBindingBytesAttr = "tile.binding_bytes";

/// Of a kernel function: how launches let outputs take the memory of inputs, as in the tile program's `in_place`.
inline constexpr llvm::StringLiteral kInPlaceAttr = "tile.in_place";

/// On a GPU, of a part of a kernel: the threads of a block, and how many of them share a point of the grid dims (0: the
/// grid cuts the vector dim).
inline constexpr llvm::StringLiteral kThreadsAttr = "tile.threads";
inline constexpr llvm::StringLiteral kGroupAttr = "tile.group";
/// The same, where workgroups share tiles: in how many steps a tile adds up its terms.
inline constexpr llvm::StringLiteral kStepsAttr = "tile.steps";

/// On a part of a kernel with phases: what blocks keep of its bindings for a later phase, or find kept, as pairs of a
/// number and a binding.
inline constexpr llvm::StringLiteral kResidentAttr = "tile.resident";

/// On programs and functions that are one of several variants: its target, and the name of the kernel. Without them a
/// kernel is for the target that the passes are told.
inline constexpr llvm::StringLiteral kTargetAttr = "tile.target";
inline constexpr llvm::StringLiteral kVariantOfAttr = "tile.variant_of";

/// Name or file of the target that a program or function is for.
inline std::string targetOf(mlir::Operation *op, const std::string &otherwise) {
  auto own = op->getAttrOfType<mlir::StringAttr>(kTargetAttr);
  return own ? own.getValue().str() : otherwise;
}

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace tilewright

#endif

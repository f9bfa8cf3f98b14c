// Names of the discardable attributes that passes put on ops. Each comment states which op carries the attribute, its
// type, and what it means. The dialect verifies them by the table in DiscardableAttrs.cpp and refuses all others.
#ifndef TILEWRIGHT_DIALECTS_TILE_TILEATTRIBUTENAMES_H
#define TILEWRIGHT_DIALECTS_TILE_TILEATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace tilewright {

//===----------------------------------------------------------------------===//
// Ops of the graph
//===----------------------------------------------------------------------===//

/// On an op of the graph: a string, the name of the form that computes it (tile::Form).
inline constexpr llvm::StringLiteral kFormAttr = "tile.form";

/// On a function: an array of `#tile.form`, the choices of forms that passes have made so far (graph/FormChoice.h).
inline constexpr llvm::StringLiteral kFormsAttr = "tile.forms";

/// On a function: an array of `#tile.form`, choices that a plan from a file requests of the passes that follow.
inline constexpr llvm::StringLiteral kRequestedFormsAttr = "tile.requested_forms";

/// On a maximum that is causally bounded, and on the `tile.subprogram` that skips blocks beyond the bound: an affine
/// map to the end of the points that count along the reduced dim. Its dims are those of the maximum's domain, or of the
/// subprogram's iteration space.
inline constexpr llvm::StringLiteral kCountedAttr = "tile.counted";

/// On a `math.exp` of x - max(x) in f32: a unit. Its results are rounded to bf16, or summed to divide results that are,
/// so an approximation within 2^-13 suffices.
inline constexpr llvm::StringLiteral kForBf16Attr = "tile.for_bf16";

/// On a `math.exp` whose argument is at most 89, or NaN, so that it cannot overflow: a unit.
inline constexpr llvm::StringLiteral kSmallArgumentAttr = "tile.small_argument";

/// On an op that loads a constant of two values, one on either side of a diagonal: an array `[diagonal, below, above]`
/// (graph/Triangles.h).
inline constexpr llvm::StringLiteral kTrianglesAttr = "tile.triangles";

/// On an op whose result is a weight in the layout that a kernel reads: a unit.
inline constexpr llvm::StringLiteral kPackedWeightAttr = "tile.packed_weight";

/// On a `linalg.generic` that swizzles the lines of its last two dims: an i64, the elements that a swizzle moves as a
/// unit.
inline constexpr llvm::StringLiteral kSwizzleAttr = "tile.swizzle";

/// On a contraction (an op of the graph, a `tile.expr` or a `tile.compute`) whose rhs is stored in a swizzled layout:
/// an i64 array `[lines, K per step]` (graph/SwizzledLayout.h).
inline constexpr llvm::StringLiteral kSwizzledAttr = "tile.swizzled";

/// On a contraction (an op of the graph, a `tile.expr` or a `tile.compute`) whose lhs is a constant M x K matrix: a dense
/// tensor of f32, the matrix. Code generation need not load it, nor multiply with zeros and ones.
inline constexpr llvm::StringLiteral kFactorsAttr = "tile.factors";

/// On a contraction (a `tile.expr` or a `tile.compute`) for a processor: a `#tile.blocking`. Without it, code
/// generation takes what the planner would choose (layout/Blocking.h).
inline constexpr llvm::StringLiteral kBlockingAttr = "tile.blocking";

/// On a convolution in the form `winograd`: an i64, the lines of tiles whose sums lie together
/// (normalize/Winograd.h).
inline constexpr llvm::StringLiteral kTileLinesAttr = "tile.tile_lines";

//===----------------------------------------------------------------------===//
// Subprograms, parts of tile programs, and their ops
//===----------------------------------------------------------------------===//

/// On a `tile.subprogram` or `tile.parallel` for a GPU, and on its kernel function: an i64, threads per block.
inline constexpr llvm::StringLiteral kThreadsAttr = "tile.threads";

/// On a `tile.subprogram` or `tile.parallel` for a GPU: an i64, the number of threads that share one point of the grid
/// dims. With 0, the grid cuts the vector dim.
inline constexpr llvm::StringLiteral kGroupAttr = "tile.group";

/// On an scf.for: a unit. The loop is to become part of the kernel of its body.
inline constexpr llvm::StringLiteral kOneKernelAttr = "tile.one_kernel";

/// On such a loop, and on a `tile.subprogram` and its program: a unit. A plan says so that was given, not made, so it is
/// an error if code cannot carry it out.
inline constexpr llvm::StringLiteral kGivenAttr = "tile.given";

/// The symbol of a copy of the module in which a choice of forms is tried.
inline constexpr llvm::StringLiteral kTrialModule = "tile.trial";

/// On a tile.program: an i64 array, the inputs that are the same in all steps of the loop that launches it. The loop is
/// to become part of the kernel, with a grid barrier per step.
inline constexpr llvm::StringLiteral kRepeatedAttr = "tile.repeated";

/// On a `tile.subprogram` whose workgroups share tiles (stream-K): an i64, the steps along K per tile.
inline constexpr llvm::StringLiteral kStepsAttr = "tile.steps";

/// On a `tile.subprogram` or `tile.parallel` of a kernel with phases: an i64 array of pairs (number, binding). A block
/// keeps a tile of the binding in shared memory for later phases, or finds it there; equal numbers are one resident
/// tile. The tensors of a subprogram are numbered as its operands, then as its results.
inline constexpr llvm::StringLiteral kResidentAttr = "tile.resident";

/// On a `tile.subprogram` for a GPU: an array of `#tile.access`, for its inputs, then its results. On a `tile.parallel`:
/// the same for the bindings of its program. Without it, all are derived.
inline constexpr llvm::StringLiteral kAccessesAttr = "tile.accesses";

/// On a `tile.subprogram`: an array with a `#tile.lifetime` for each input, which says whether a block copies it to its
/// own memory. Without it, all are read where they are.
inline constexpr llvm::StringLiteral kStagedAttr = "tile.staged";

/// On a `tile.parallel` and its kernel function: an i64, the number of neighbouring blocks that form a cluster. On a
/// `tile.copy`: the same number, for a tile whose copy the cluster shares.
inline constexpr llvm::StringLiteral kClusterAttr = "tile.cluster";

/// On a `tile.alloc` inside a walk: an affine map from the tile's offsets to the tensor element that the buffer's first
/// element holds (dialects/tile/BufferOffsets.h).
inline constexpr llvm::StringLiteral kAlignedAsAttr = "tile.aligned_as";

/// On a `tile.alloc` inside a walk: an i64, the number of the resident tile that the buffer holds. Buffers with the
/// same number share their memory.
inline constexpr llvm::StringLiteral kResidentTileAttr = "tile.resident_tile";

/// On a `tile.compute` with a contraction, in a program that is repeated: a unit. Blocks copy its rhs to shared memory
/// in the first step of the loop only.
inline constexpr llvm::StringLiteral kResidentWeightAttr = "tile.resident_weight";

//===----------------------------------------------------------------------===//
// Functions of IREE's modules
//===----------------------------------------------------------------------===//

/// On a `func.func` that was a `util.func`: dictionaries of the properties and the discardable attributes of that op.
inline constexpr llvm::StringLiteral kUtilPropertiesAttr = "tile.util_properties";
inline constexpr llvm::StringLiteral kUtilAttributesAttr = "tile.util_attributes";

//===----------------------------------------------------------------------===//
// Programs and kernel functions
//===----------------------------------------------------------------------===//

/// On a `tile.program` or kernel function that is one of several variants: a string, the name or file of its target.
/// Without it, a kernel is for the target that the passes are given (dialects/tile/TargetOf.h).
inline constexpr llvm::StringLiteral kTargetAttr = "tile.target";

/// On a `tile.program` or kernel function that is one of several variants: a string, the name of the kernel.
inline constexpr llvm::StringLiteral kVariantOfAttr = "tile.variant_of";

/// On a kernel function: an i64, the workgroups that a launch starts.
inline constexpr llvm::StringLiteral kWorkgroupsAttr = "tile.workgroups";

/// On a kernel function: an i64, the number of outputs, which are its last bindings.
inline constexpr llvm::StringLiteral kOutputsAttr = "tile.outputs";

/// On a kernel function: an i64, the bytes of workgroup memory that a launch provides.
inline constexpr llvm::StringLiteral kBlockBytesAttr = "tile.block_bytes";

/// On a kernel function: an i64 array, the bytes of each binding.
inline constexpr llvm::StringLiteral kBindingBytesAttr = "tile.binding_bytes";

/// On a kernel function: the array `in_place` of its `tile.program`, the outputs that may take the memory of inputs.
inline constexpr llvm::StringLiteral kInPlaceAttr = "tile.in_place";

/// On a `tile.subprogram` or `tile.program` for a GPU, and on its kernel function: an i64, how many blocks are to be
/// resident on an SM at once, for which the registers of threads are bounded.
inline constexpr llvm::StringLiteral kResidentBlocksAttr = "tile.resident_blocks";

/// On a kernel function for a GPU: a unit. Its blocks wait for each other at grid barriers.
inline constexpr llvm::StringLiteral kGridSyncAttr = "tile.grid_sync";

/// On a variant of a kernel function: a unit. It uses AMX's tile registers, which a process may lack.
inline constexpr llvm::StringLiteral kUsesTilesAttr = "tile.uses_tile_registers";

/// On inline assembly: a string, the name of the micro kernel that it comes from.
inline constexpr llvm::StringLiteral kMicroKernelAttr = "tile.micro_kernel";

} // namespace tilewright

#endif

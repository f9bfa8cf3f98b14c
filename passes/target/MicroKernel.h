// Micro kernels: what one step of a contraction's register block is made of (Chimera 5). A micro kernel is data and a
// step; loops, packing, masks and remainders are the same for all of them. Planning, packing and code generation choose
// through the registry, so they agree. Others add theirs with registerMicroKernel(), or as part of a target's data:
// docs/extending.md.
#ifndef TILEWRIGHT_TARGET_MICROKERNEL_H
#define TILEWRIGHT_TARGET_MICROKERNEL_H

#include "passes/target/ProductTypes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct Target;

/// Rows and vectors of the block of sums that stays in registers.
struct RegisterBlock {
  int64_t rows, vectors;
};

/// Registers that a block takes besides its sums.
struct BlockRegisters {
  int64_t perVector = 1; ///< of the operand that lies along the lanes
  int64_t fixed = 2;     ///< broadcast elements of the other, two so that loads overlap with arithmetic; constants
};

/// Register blocking by arithmetic intensity (Chimera 5.B): of the blocks that fit, the one that does most
/// multiply-adds for each register loaded, and of those the one with fewest registers. Rows come in pairs, as they are
/// loaded; vectors are a power of two, so that a panel packed for wide registers holds whole blocks of narrow ones. 32
/// registers give 6 x 4, 16 give 6 x 2.
constexpr RegisterBlock registerBlock(int64_t registers, BlockRegisters besides = {}) {
  RegisterBlock best{1, 1};
  double most = 0;
  for (int64_t rows = 2; rows < registers; rows += 2)
    for (int64_t vectors = 1; vectors * (rows + besides.perVector) + besides.fixed <= registers; vectors *= 2) {
      double intensity = static_cast<double>(rows * vectors) / static_cast<double>(rows + vectors);
      bool smaller = rows * vectors + vectors < best.rows * best.vectors + best.vectors;
      if (intensity > most || (intensity == most && smaller)) {
        most = intensity;
        best = {rows, vectors};
      }
    }
  return best;
}

/// sums + row * lanes: a vector of sums with one lane each; `row` and `lanes` hold `depth` successive terms for each
/// lane, those of one lane side by side, in `row` the same for all. Whether an integer is signed is in the kernel's
/// types.
using MicroKernelStep = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &builder, mlir::Value sums,
                                                  mlir::Value row, mlir::Value lanes)>;

/// What does a step: a vector register of a CPU, a thread or a warp of a GPU, or a block of tile registers of a CPU.
enum class StepUnit { vector, thread, warp, tiles };

/// A tile register (AMX): rows of so many bytes. A step multiplies tiles of 16 rows by 16 groups of terms with tiles of
/// 16 groups by 16 lanes.
inline constexpr int64_t kTileRows = 16, kTileRowBytes = 64;

struct MicroKernel {
  std::string name;   ///< letters, digits and underscores
  ProductTypes types; ///< "float" or "integer" thrice: any, the factors widened to the type of the sums before the step
  int64_t depth = 1;  ///< terms of a sum that a step adds; the lane operand is packed with them side by side
  int64_t vectorBytes = 0;           ///< of the register that it is written for; 0: any
  std::vector<std::string> features; ///< of the processor, as LLVM spells them
  double speed = 1;                  ///< multiply-adds in the time of one in f32
  bool strict =
      true; ///< each product is added by itself, rounded once and not flushed: may be used with strict numerics
  bool hasOffset = false; ///< the step adds something also where the row is zero, which is taken off at the end
  BlockRegisters besides; ///< for the register block
  /// A thread's step is over scalars. What a warp does is code generation's (`mma`): there is no step, and the block is
  /// the instruction's, rows by lanes. Neither is there one of tiles: the block is four of them, two by two.
  StepUnit unit = StepUnit::vector;
  RegisterBlock block{0, 0}; ///< 0 x 0: by arithmetic intensity
  MicroKernelStep step;
  std::string body; ///< instead of `step`: a func.func over the three vectors, which is inlined

  /// What is wrong with it; empty if nothing is.
  std::string verify() const;
  bool runsOn(const Target &target) const;
  bool takes(const ProductTypes &types) const;
  /// Whether it is one for all floats, or all integers.
  bool isGeneric() const { return types.rows == "float" || types.rows == "integer"; }
  /// Terms of a sum that all lanes take at once: what is packed for it has whole steps of them.
  int64_t stepK() const { return unit == StepUnit::tiles ? depth * kTileRows : depth; }
  RegisterBlock blockFor(const Target &target) const;
  /// Lanes of a register block, for sums of so many bytes.
  int64_t width(const Target &target, int64_t accumulatorBytes) const;
  /// As plans name it: "fma-6x4".
  std::string label(const Target &target) const;
};

/// Adds a micro kernel to those of this process; one of the same name and types is replaced. Returns what is wrong.
std::string registerMicroKernel(MicroKernel kernel);

/// How the operand along the lanes lies: rows of lanes one after another, or `packedDepth` terms of each lane side by
/// side; 0: it is yet to be packed, as the kernel likes.
struct LaneLayout {
  int64_t packedDepth;
  bool tiles = false; ///< tile registers can load both operands, or may be able to once this one is packed
};

/// The quickest micro kernel for the contraction: of the target's own, of registered ones, and of those of the library.
/// Nothing if none reads the layout.
std::optional<MicroKernel> chooseMicroKernel(const Target &target, const ProductTypes &types, LaneLayout layout,
                                             bool strict);

/// The one that a plan names by its label, if it is for the contraction, reads the layout and runs on the target.
std::optional<MicroKernel> findMicroKernel(const Target &target, const ProductTypes &types, LaneLayout layout,
                                           llvm::StringRef label);

} // namespace tilewright

#endif

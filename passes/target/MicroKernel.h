// Micro kernels: the code for one step of a contraction's register block (Chimera 5). A micro kernel is data and a
// step; all of them share loops, packing, masks and remainders. Planning, packing and code generation choose through
// the same registry, so they agree. registerMicroKernel() or a target's data add new ones: docs/guide/micro-kernels.md.
//
// "Rows" are M, "lanes" are N, "terms" are K and "sums" are the accumulators.
#ifndef TILEWRIGHT_TARGET_MICROKERNEL_H
#define TILEWRIGHT_TARGET_MICROKERNEL_H

#include "passes/target/NumericsMode.h"
#include "passes/target/ProductTypes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct Target;

/// The rows and vectors of the block of accumulators that stays in registers.
struct RegisterBlock {
  int64_t rows, vectors;
};

/// The registers that a block needs besides its accumulators.
struct BlockRegisters {
  int64_t perVector = 1; ///< for each vector of rhs
  int64_t fixed = 2;     ///< two broadcast elements of lhs, so that loads overlap with arithmetic; constants
};

/// Chooses a register block by arithmetic intensity (Chimera 5.B): of the blocks that fit, the one that does most
/// multiply-adds per register loaded, and of those the one with the fewest registers. Rows come in pairs, as they are
/// loaded; the number of vectors is a power of two, so that a panel packed for wide registers holds whole blocks of
/// narrow ones. 32 registers give 6 x 4, and 16 give 6 x 2.
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

/// Computes accumulators + lhs * rhs, where `accumulators` is a vector with one accumulator per lane. `lhs` and `rhs`
/// hold `depth` successive K of each lane side by side; in `lhs` they are the same for all lanes. The kernel's types
/// say whether an integer is signed.
using MicroKernelStep = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &builder, mlir::Value accumulators,
                                                  mlir::Value lhs, mlir::Value rhs)>;

/// The unit that does a step: a vector register of a CPU, a thread or a warp of a GPU, or a block of a CPU's tile
/// registers.
enum class StepUnit { vector, thread, warp, tiles };

/// The size of a tile register (AMX). A step multiplies tiles of 16 rows by 16 groups of K with tiles of 16 groups by
/// 16 lanes.
inline constexpr int64_t kTileRows = 16, kTileRowBytes = 64;

struct MicroKernel {
  std::string name;                  ///< letters, digits and underscores
  ProductTypes types;                ///< "float" or "integer" three times: any such type; operands are widened first
  int64_t depth = 1;                 ///< K per step; rhs is packed with these side by side
  int64_t vectorBytes = 0;           ///< width of the register it is written for; 0: any
  std::vector<std::string> features; ///< required features of the processor, in LLVM's spelling
  double speed = 1;                  ///< multiply-adds in the time of one in f32
  /// True if each product is added separately, rounded once and not flushed, so that strict numerics may use it.
  bool strict = true;
  /// True if it rounds f32 operands to tf32, so that only numerics of that name may use it.
  bool roundsToTf32 = false;
  /// True if the step adds an offset even where lhs is zero; the offset is subtracted at the end.
  bool hasOffset = false;
  BlockRegisters besides; ///< for the register block
  /// A step of `thread` works on scalars. Code generation emits the instructions of `warp` (mma) and `tiles`, which
  /// therefore have no step: the block of `warp` is that of the instruction, M by N, and the block of `tiles` is
  /// two by two tiles.
  StepUnit unit = StepUnit::vector;
  RegisterBlock block{0, 0}; ///< 0 x 0: chosen by arithmetic intensity
  MicroKernelStep step;
  std::string body; ///< replaces `step`: a func.func of the three vectors, which is inlined

  /// Returns an error, or an empty string if the micro kernel is valid.
  std::string verify() const;
  bool runsOn(const Target &target) const;
  bool takes(const ProductTypes &types) const;
  bool isAllowedBy(NumericsMode numerics) const;
  /// Returns true if threads of a block do its steps, and false if a core does them with its registers.
  bool isOfThreads() const { return unit == StepUnit::thread || unit == StepUnit::warp; }
  /// Returns true if it takes all floats or all integers.
  bool isGeneric() const { return types.lhs == "float" || types.lhs == "integer"; }
  /// Returns the K that all lanes take at once; operands packed for it have whole steps of that length.
  int64_t stepK() const { return unit == StepUnit::tiles ? depth * kTileRows : depth; }
  RegisterBlock blockFor(const Target &target) const;
  /// Returns the lanes of a register block, for accumulators of this size.
  int64_t width(const Target &target, int64_t accumulatorBytes) const;
  /// Returns its name in plans: "fma-6x4".
  std::string label(const Target &target) const;
};

/// Adds a micro kernel to the registry of this process, replacing one of the same name and types. Returns an error or
/// an empty string.
std::string registerMicroKernel(MicroKernel kernel);

/// The layout of rhs in memory: 1 for plain rows along N, otherwise `packedDepth` successive K of each N side by
/// side. 0: not packed yet, so any layout can be chosen.
struct RhsLayout {
  int64_t packedDepth;
  bool tiles = false; ///< tile registers can load both operands, or may once rhs is packed
};

/// Returns the fastest micro kernel for the contraction that the numerics allow, among those of the target, of the
/// registry and of the library, or nothing if none can read the layout.
std::optional<MicroKernel> chooseMicroKernel(const Target &target, const ProductTypes &types, RhsLayout layout,
                                             NumericsMode numerics);

/// Returns the micro kernel that a plan's label names, if it fits the contraction, reads the layout and runs on the
/// target.
std::optional<MicroKernel> findMicroKernel(const Target &target, const ProductTypes &types, RhsLayout layout,
                                           llvm::StringRef label);

} // namespace tilewright

#endif

// The register blocks of a contraction on a processor: what is chosen about them, and what can be emitted. The planner
// chooses for the contractions of a plan, and code generation for programs that state nothing. All functions are pure.
#ifndef TILEWRIGHT_LAYOUT_BLOCKING_H
#define TILEWRIGHT_LAYOUT_BLOCKING_H

#include "passes/layout/BlockingChoice.h"
#include "passes/layout/OperandAccess.h"
#include "passes/target/CostParameters.h"
#include "passes/target/MicroKernel.h"
#include <optional>
#include <string>

namespace tilewright {

/// Independent accumulators that keep the units of a core busy: the cycles of a multiply-add times the units, about
/// eight.
inline constexpr int64_t kIndependentAccumulators = 8;

/// Returns true if a register block has too few accumulators to keep the units busy.
constexpr bool leavesIdle(int64_t rows, int64_t vectors) { return rows * vectors < kIndependentAccumulators; }

/// A contraction as a core computes it. Its operands are accesses over the dims of one loop nest.
struct BlockedContraction {
  OperandAccess lhs, rhs;
  int64_t m, n, k; ///< dims of the nest; M is -1 for a vector times a matrix, and K is the one of the innermost loop
  bool reducesOneDim;
  bool rhsInMemory;       ///< true if rhs is a tensor, and false if another nest leaves it in a buffer
  bool keepsAccumulators; ///< true if accumulators may go to memory and back without being rounded
  int64_t packedDepth;    ///< K that lie side by side in rhs; 1: rows along N
  int64_t accumulatorBytes;
  int64_t lanes; ///< lanes of a vector of accumulators
  MicroKernel kernel;
  RegisterBlock block; ///< the micro kernel's register block on this target
  int64_t kBlock;      ///< block of K that the micro kernel's label names; 0: all of K
  CpuCosts costs;
  /// True if lhs is a matrix that is known (`tile.factors`) and all of which is multiplied with each vector of rhs: rhs
  /// is read once, in place.
  bool hasFactors = false;

  int64_t rows() const { return m < 0 ? 1 : rhs.sizes[m]; }
  /// Returns true if all rows of the tile use a block of K before the next one.
  bool blocksK() const;
  /// Returns the bytes of one step of a panel that is copied. With one K per step, elements are widened.
  int64_t copiedStepBytes(int64_t vectors) const;
  /// Returns the most steps of a panel, for `all` elements of K.
  int64_t panelSteps(const BlockingChoice &choice, int64_t all) const;
};

/// Returns true if a matrix that lhs is known to be is multiplied as a whole with each vector of rhs.
bool multipliesFactors(const BlockedContraction &contraction, mlir::Attribute factors);

BlockingChoice chooseBlocking(const BlockedContraction &contraction);

/// The columns of rhs that a tile has.
struct TileColumns {
  int64_t size, extent;          ///< of the tile, and of all tiles
  std::optional<int64_t> packed; ///< width of the panels that rhs is packed in
};

/// Returns the vectors along N of a register block that computes `rows` rows of a tile. `block` is the micro kernel's
/// on the target.
int64_t chooseVectors(const MicroKernel &kernel, RegisterBlock block, int64_t rows, int64_t lanes,
                      const TileColumns &columns, const CpuCosts &costs);

/// Returns the rows of a tile from which it pays off to copy panels of rhs whose steps are `stepBytes` long and lie
/// apart. With `blocksK`, a panel has a block of K.
int64_t leastRowsToCopy(const MicroKernel &kernel, RegisterBlock block, int64_t stepBytes, bool blocksK,
                        const CpuCosts &costs);

/// Returns why no contraction can have the choice, with the field that is wrong; or an empty string.
std::string whyNoBlocking(const BlockingChoice &choice);

/// Returns why no code can be emitted for the choice, with the field that is wrong; or an empty string.
std::string whyNotBlocked(const BlockedContraction &contraction, const BlockingChoice &choice);

/// Returns the width of the panels that an operand is packed in along a dim, or nothing if it is not packed.
std::optional<int64_t> panelWidth(mlir::AffineMap map, int64_t n);

} // namespace tilewright

#endif

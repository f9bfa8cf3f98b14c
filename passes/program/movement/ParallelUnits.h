// Computes which parallel units touch an element, and the scope at which its writers and readers synchronise
// (PowerFusion 4 and 5.1). Units are numbered consecutively: the lanes of a warp, the warps of a block and the blocks
// of a cluster have neighbouring numbers. Two units therefore synchronise at the innermost level at which their
// numbers, divided by the size of the level, agree. Pure.
//
// The paper considers warps, and says scope lane if one warp writes and reads with the same pattern. Here every thread
// has a number, and that case is the one of equal numbers.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_PARALLELUNITS_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_PARALLELUNITS_H

#include "passes/program/gpu/ThreadMapping.h"

namespace tilewright {

/// Number of units of each level that make up one unit of the next.
struct UnitLevels {
  int64_t lanes = int64_t(1) << kWarpBits; ///< threads per warp
  int64_t warps = 1;                       ///< warps per block
  int64_t blocks = 1;                      ///< blocks per cluster; 1 without clusters

  /// Returns an error, or an empty string if every level has units.
  std::string verify() const;
};

/// Returns the innermost scope that contains both threads.
tile::Scope scopeOfThreads(int64_t a, int64_t b, const UnitLevels &levels);

/// The threads that touch an element of a slice, described bit by bit of the thread's index in the block.
struct ElementUnits {
  struct Bit {
    enum Kind {
      index,  ///< the bit is the lowest bit of (element's index along `dim` - origin) / divisor
      zero,   ///< only threads with the bit clear touch the element
      both,   ///< threads touch the element with the bit set and clear
      unknown ///< one of the above
    };
    Kind kind = unknown;
    unsigned dim = 0; ///< dim of the slice
    int64_t divisor = 1;
    mlir::Value origin; ///< null means zero

    bool operator==(const Bit &other) const {
      return kind == other.kind && kind != unknown && dim == other.dim && divisor == other.divisor &&
             origin == other.origin;
    }
  };
  llvm::SmallVector<Bit> bits;

  void print(llvm::raw_ostream &os) const;
};

enum class AccessKind { load, store, accumulator };

/// Returns the threads of a block that touch an element at `map`, of a slice in any space, in a nest with this mapping.
ElementUnits unitsOf(tile::ComputeOp compute, const NestMapping &mapping, mlir::AffineMap map, AccessKind kind);

/// Returns the scope at which the threads of one access must synchronise with those of another that touch the same
/// element of a block.
tile::Scope handoverScope(const ElementUnits &before, const ElementUnits &after, const UnitLevels &levels);

} // namespace tilewright

#endif

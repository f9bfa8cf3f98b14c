// Which parallel units of a machine touch an element, and at which scope those meet that write it and those that read
// it (PowerFusion 4 and 5.1). Units are numbered through: the lanes of a warp, the warps of a block and the blocks of a
// cluster have neighbouring numbers, so that units meet at the innermost level at which their numbers, divided by its
// size, agree. Pure.
//
// The paper looks at warps and calls it the scope of a lane where one warp writes and reads in one pattern; here every
// thread has a number, and that is the case of equal numbers.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_PARALLELUNITS_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_PARALLELUNITS_H

#include "passes/program/gpu/ThreadMapping.h"

namespace tilewright {

/// How many units of a level make one of the next.
struct UnitLevels {
  int64_t lanes = int64_t(1) << kWarpBits; ///< threads of a warp
  int64_t warps = 1;                       ///< of a block
  int64_t blocks = 1;                      ///< of a cluster; 1: the machine has none

  /// Empty if every level has units.
  std::string verify() const;
};

/// The innermost scope at which two threads meet.
tile::Scope scopeOfThreads(int64_t a, int64_t b, const UnitLevels &levels);

/// The threads that touch an element of a slice, bit by bit of their index in the block.
struct ElementUnits {
  struct Bit {
    enum Kind {
      index,  ///< (element's index along `dim` - origin) / divisor, its lowest bit
      zero,   ///< threads without it alone
      both,   ///< threads with it and threads without it touch the element
      unknown ///< one of the above
    };
    Kind kind = unknown;
    unsigned dim = 0; ///< of the slice
    int64_t divisor = 1;
    mlir::Value origin; ///< null: zero

    bool operator==(const Bit &other) const {
      return kind == other.kind && kind != unknown && dim == other.dim && divisor == other.divisor &&
             origin == other.origin;
    }
  };
  llvm::SmallVector<Bit> bits;

  void print(llvm::raw_ostream &os) const;
};

enum class AccessKind { load, store, accumulator };

/// The threads of a block that touch an element at `map`, of a slice in any space, in a nest mapped so.
ElementUnits unitsOf(tile::ComputeOp compute, const NestMapping &mapping, mlir::AffineMap map, AccessKind kind);

/// The scope at which the threads of one access meet those of another that touch the same element, in one block.
tile::Scope handoverScope(const ElementUnits &before, const ElementUnits &after, const UnitLevels &levels);

} // namespace tilewright

#endif

// Estimates what a block gains if each step of an operand arrives by one bulk copy from a packed tile instead of by
// asynchronous copies of its threads: the instructions saved against the bytes of padding added. Everything here is a
// pure function.
#ifndef TILEWRIGHT_COST_BULKCOPIES_H
#define TILEWRIGHT_COST_BULKCOPIES_H

#include "passes/layout/GemmTiling.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The N operand (rhs) of a contraction, over all tiles.
struct CopiedOperand {
  int64_t tiles = 1;      ///< tiles of the contraction; each reads its own columns of the operand
  int64_t steps = 1;      ///< steps per tile
  int64_t copyBytes = 16; ///< bytes per copy of a thread
  double plainBytes = 0;  ///< bytes that all tiles copy if the operand stays unpacked
};

struct BulkCopyGain {
  int64_t copies = 0, waits = 0; ///< warp instructions over all tiles: copies saved, waits added
  double addedBytes = 0;
  double savedSeconds = 0, addedSeconds = 0;

  bool pays() const { return savedSeconds > addedSeconds; }
};

BulkCopyGain bulkCopyGain(const CopiedOperand &operand, const GemmTiling &tiling, int64_t threads,
                          const Target &target);

} // namespace tilewright

#endif

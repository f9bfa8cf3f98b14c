// What a block gains where the steps of an operand come by one bulk copy each, out of images of its tiles, instead of
// by asynchronous copies of its threads: instructions that nobody issues, against the bytes by which an image is filled
// up. Pure.
#ifndef TILEWRIGHT_COST_BULKCOPIES_H
#define TILEWRIGHT_COST_BULKCOPIES_H

#include "passes/cost/GemmTiling.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A contraction's operand along the lanes, over all tiles.
struct CopiedOperand {
  int64_t tiles = 1;      ///< of the contraction; each reads its lanes of the operand
  int64_t steps = 1;      ///< of a tile
  int64_t copyBytes = 16; ///< of a copy of a thread
  double plainBytes = 0;  ///< that all tiles copy of the operand as it is
};

struct BulkCopyGain {
  int64_t copies = 0, waits = 0; ///< of warps, in all tiles: instructions that are gone, and that come instead
  double addedBytes = 0;
  double savedSeconds = 0, addedSeconds = 0;

  bool pays() const { return savedSeconds > addedSeconds; }
};

BulkCopyGain bulkCopyGain(const CopiedOperand &operand, const GemmTiling &tiling, int64_t threads, const Target &target);

} // namespace tilewright

#endif

// Which of the sums of a contraction's tile a thread keeps in registers.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORLAYOUT_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORLAYOUT_H

#include "mlir/IR/Value.h"

namespace tilewright {

/// Where a sum is in the tile, from the thread's first one.
struct AccumulatorOffset {
  int64_t row, lane;
};

struct AccumulatorLayout {
  mlir::Value firstRow, firstLane;    ///< of the thread in the tile
  llvm::SmallVector<AccumulatorOffset> places; ///< of its sums, in the order in which they are carried
  int64_t run = 1;                    ///< so many sums after one another are neighbours along the lanes
  unsigned rowBits = 0;               ///< of the thread's index: those who differ in them have sums of the same rows
};

} // namespace tilewright

#endif

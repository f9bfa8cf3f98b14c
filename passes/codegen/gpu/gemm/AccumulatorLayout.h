// Defines which accumulators of a contraction's tile a thread keeps in registers.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORLAYOUT_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORLAYOUT_H

#include "mlir/IR/Value.h"

namespace tilewright {

/// Offset of an accumulator in the tile, relative to the thread's first one.
struct AccumulatorOffset {
  int64_t m, n;
};

struct AccumulatorLayout {
  mlir::Value firstM, firstN;                   ///< offset of the thread's first accumulator in the tile, along M and N
  llvm::SmallVector<AccumulatorOffset> offsets; ///< offsets of its accumulators, in the order in which they are carried
  int64_t run = 1;                             ///< number of consecutive accumulators that are neighbours along N
  unsigned rowBits = 0;                        ///< bits of the thread index in which threads differ that share rows of
                                               ///< accumulators
};

} // namespace tilewright

#endif

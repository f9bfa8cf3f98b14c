// Windows of a reduction, such as those of a depthwise convolution or a pool, which overlap along dims that stay.
#ifndef TILEWRIGHT_SUPPORT_OVERLAPSALONG_H
#define TILEWRIGHT_SUPPORT_OVERLAPSALONG_H

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/STLExtras.h"

namespace tilewright {

/// Returns true if an access reads windows that overlap along a dim: one of its indices depends on the dim and on a
/// reduced dim with several points. `sizes` has the points of each dim.
inline bool overlapsAlong(mlir::AffineMap map, unsigned dim, llvm::ArrayRef<int64_t> reduced,
                          llvm::ArrayRef<int64_t> sizes) {
  return llvm::any_of(map.getResults(), [&](mlir::AffineExpr index) {
    return index.isFunctionOfDim(dim) &&
           llvm::any_of(reduced, [&](int64_t each) { return sizes[each] > 1 && index.isFunctionOfDim(each); });
  });
}

} // namespace tilewright

#endif

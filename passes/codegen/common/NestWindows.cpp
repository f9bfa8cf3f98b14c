// Reduces several windows at once, such as those of a depthwise convolution or a pool. Neighbouring windows overlap, and
// all windows read the same weights, so that LLVM loads what they share once. Each sum has the order that it has alone.
#include "passes/codegen/common/NestBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tilewright;

void NestBuilder::emitWindows(IRMapping &values, Value mask) {
  unsigned level = nest.numParallel - 1;
  emitOps(level, values, mask);
  int64_t dim = nest.order[level], size = compute.getSizes()[dim], whole = size / nest.together * nest.together;
  Value low = offsets[dim];
  if (whole == nest.together)
    reduceTogether(low, whole, values, mask);
  else
    emitForOp(low, add(low, whole), constantIndex(nest.together), {}, [&](Value first, ValueRange) {
      reduceTogether(first, nest.together, values, mask);
      return SmallVector<Value>();
    });
  if (whole < size)
    reduceTogether(add(low, whole), size - whole, values, mask);
}

void NestBuilder::reduceTogether(Value first, int64_t count, const IRMapping &values, Value mask) {
  int64_t dim = nest.order[nest.numParallel - 1];
  SmallVector<Window> windows;
  for (int64_t number = 0; number < count; ++number) {
    indices[dim] = add(first, number);
    Window &window = windows.emplace_back(Window{indices[dim], values, startValues()});
    emitOps(nest.numParallel, window.values, mask);
  }
  reducePoints(nest.numParallel, windows, mask);
  for (Window &window : windows) {
    indices[dim] = window.index;
    storeReductions(window.carried, /*correction=*/{}, mask);
  }
}

void NestBuilder::reducePoints(unsigned level, MutableArrayRef<Window> windows, Value mask) {
  int64_t dim = nest.order[nest.numParallel - 1], reduced = nest.order[level];
  bool isLast = level + 1 == nest.order.size(), isSeparate = isLast && level > nest.numParallel;
  SmallVector<SmallVector<Value>> outerSums;
  for (Window &window : windows) {
    outerSums.push_back(window.carried);
    if (isSeparate)
      for (unsigned i : floatAccumulators())
        window.carried[i] = toVectorLike(neutral(i), window.carried[i]);
  }
  for (int64_t point = 0; point < compute.getSizes()[reduced]; ++point) {
    indices[reduced] = add(offsets[reduced], point);
    SmallVector<Window> now(windows.begin(), windows.end()); // whose values end with the point
    for (Window &window : now) {
      indices[dim] = window.index;
      if (isLast)
        mapAccumulators(window.values, window.carried);
      emitOps(level + 1, window.values, mask);
      if (isLast)
        window.carried = nextValues(window.values, mask, window.carried);
    }
    if (!isLast)
      reducePoints(level + 1, now, mask);
    for (auto [window, after] : llvm::zip(windows, now))
      window.carried = after.carried;
  }
  if (isSeparate)
    for (auto [window, sums] : llvm::zip(windows, outerSums))
      for (unsigned i : floatAccumulators())
        window.carried[i] = arith::AddFOp::create(builder, loc, sums[i], window.carried[i]);
}

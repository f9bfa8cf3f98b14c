// Emits the levels of a nest, from the outermost loop to the ops, and a second nest in the same loops if there is one.
#include "passes/codegen/common/NestBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

void NestBuilder::emit() {
  findOffsets();
  IRMapping values = outer;
  if (threads)
    stores = threads->leads(builder, /*accumulator=*/false);
  if (!stores || threads->combines())
    return emitLevel(0, values, Value());
  emitIf(builder, loc, std::exchange(stores, Value()), [&] { emitLevel(0, values, Value()); });
}

void NestBuilder::emitWith(NestBuilder &other) {
  beside = &other;
  leavesMemoryIdle = false;
  other.findOffsets();
  emit();
}

void NestBuilder::findOffsets() {
  offsets.assign(offsets.size(), constantIndex(0));
  for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
    offsets[dim] = outer.lookup(offset);
}

void NestBuilder::emitBeside(unsigned level, IRMapping &values, Value mask) {
  if (!beside)
    return;
  beside->indices = indices;
  for (int64_t dim : compute.getOffsetDims())
    if (llvm::is_contained(ArrayRef(nest.order).take_front(level), dim))
      beside->indices[dim] = addValues(beside->offsets[dim], sub(indices[dim], offsets[dim]));
  beside->emitOps(level, values, mask);
}

void NestBuilder::emitOps(unsigned level, IRMapping &values, Value mask) {
  if (level == nest.order.size())
    prefetchNextOutputs();
  for (Operation &op : compute.getBodyBlock().without_terminator())
    if (nest.levels.lookup(&op) == level)
      emitOp(op, values, mask);
  emitBeside(level, values, mask);
}

void NestBuilder::emitLevel(unsigned level, IRMapping &values, Value mask) {
  if (nest.together > 1 && level + 1 == nest.numParallel)
    return emitWindows(values, mask);
  if (level == nest.numParallel && !compute.getAccs().empty()) {
    emitReductions(values, mask);
    return;
  }
  emitOps(level, values, mask);
  if (level < nest.order.size())
    emitLoop(level, values, mask, {}, [&](IRMapping &inner, Value innerMask, ValueRange) {
      emitLevel(level + 1, inner, innerMask);
      return SmallVector<Value>();
    });
}

void tilewright::emitNest(OpBuilder &builder, ComputeOp compute, const IRMapping &values, VectorShape shape,
                          NestThreads *threads) {
  NestStructure nest(compute, shape, threads);
  NestBuilder(builder, compute, nest, values, shape, threads).emit();
}

bool tilewright::canShareLoops(ComputeOp compute, ComputeOp beside, VectorShape shape) {
  bool isWhole = llvm::all_of(llvm::zip(compute.getExtents(), compute.getSizes()), [](auto pair) {
    auto [extent, size] = pair;
    return extent % size == 0;
  });
  if (!isWhole || !beside.getAccs().empty() || compute.getMicroKernel() || beside.getMicroKernel() ||
      compute.getExtents() != beside.getExtents() || compute.getSizes() != beside.getSizes() ||
      compute.getOffsetDims() != beside.getOffsetDims() || compute.getOffsets() != beside.getOffsets())
    return false;
  NestStructure nest(compute, shape, /*threads=*/nullptr), other(beside, shape, /*threads=*/nullptr);
  return nest.vectorDim >= 0 && nest.vectorDim == other.vectorDim && nest.order == other.order &&
         nest.lanes % other.lanes == 0;
}

void tilewright::emitNestsTogether(OpBuilder &builder, ComputeOp compute, const IRMapping &values, ComputeOp beside,
                                   const IRMapping &besideValues, VectorShape shape) {
  NestStructure nest(compute, shape, /*threads=*/nullptr), other(beside, shape, /*threads=*/nullptr, nest.lanes);
  NestBuilder second(builder, beside, other, besideValues, shape, /*threads=*/nullptr);
  NestBuilder(builder, compute, nest, values, shape, /*threads=*/nullptr).emitWith(second);
}

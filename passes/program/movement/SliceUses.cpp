// The order of nested ops is that of their ancestors in the innermost block that contains both.
#include "passes/program/movement/SliceUses.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

SliceUses tilewright::usesOf(Value slice) {
  SliceUses uses;
  for (Operation *user : slice.getUsers()) {
    if (auto load = dyn_cast<LoadOp>(user))
      uses.loads.push_back(load);
    else if (auto store = dyn_cast<StoreOp>(user))
      uses.stores.push_back(store);
    else
      uses.others = true;
  }
  llvm::sort(uses.loads, comesBefore);
  llvm::sort(uses.stores, comesBefore);
  return uses;
}

/// Returns the ops from the program down to `op`.
static SmallVector<Operation *> pathTo(Operation *op) {
  SmallVector<Operation *> path;
  for (; op && !isa<ProgramOp>(op); op = op->getParentOp())
    path.push_back(op);
  return llvm::to_vector(llvm::reverse(path));
}

bool tilewright::comesBefore(Operation *a, Operation *b) {
  for (auto [first, second] : llvm::zip(pathTo(a), pathTo(b)))
    if (first != second)
      return first->getBlock() == second->getBlock() && first->isBeforeInBlock(second);
  return false;
}

bool tilewright::visitsAll(ComputeOp compute) {
  auto part = compute->getParentOfType<ParallelOp>();
  if (!part || compute->getParentOp() != part.getWalk())
    return false;
  Block &tile = part.getWalk().getBody().front();
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim) {
    int64_t size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
    const auto *place = llvm::find(compute.getOffsetDims(), dim);
    if (place == compute.getOffsetDims().end()) {
      if (size != extent)
        return false;
      continue;
    }
    auto offset = dyn_cast<BlockArgument>(compute.getOffsets()[place - compute.getOffsetDims().begin()]);
    if (!offset || offset.getOwner() != &tile || part.getExtents()[offset.getArgNumber()] != extent ||
        part.getTiles()[offset.getArgNumber()] != size)
      return false;
  }
  return true;
}

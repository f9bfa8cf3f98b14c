#include "passes/graph/LoopBodies.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

static void addBlocks(Region &region, Operation *loop, SmallVectorImpl<PlannedBlock> &blocks) {
  if (!region.hasOneBlock())
    return;
  blocks.push_back({&region.front(), loop});
  for (Operation &op : region.front())
    if (isLoop(&op))
      for (Region &body : op.getRegions())
        addBlocks(body, &op, blocks);
}

SmallVector<PlannedBlock> tilewright::plannedBlocks(Operation *function) {
  SmallVector<PlannedBlock> blocks;
  addBlocks(function->getRegion(0), nullptr, blocks);
  return blocks;
}

std::optional<int64_t> tilewright::tripCount(Operation *loop) {
  auto counted = dyn_cast<scf::ForOp>(loop);
  if (!counted)
    return std::nullopt;
  auto from = getConstantIntValue(counted.getLowerBound()), to = getConstantIntValue(counted.getUpperBound()),
       step = getConstantIntValue(counted.getStep());
  if (!from || !to || !step || *step <= 0)
    return std::nullopt;
  return *to <= *from ? 0 : llvm::divideCeil(*to - *from, *step);
}

Operation *tilewright::outsideLoops(Value tensor, Operation *reader) {
  Operation *made = tensor.getDefiningOp();
  return made && made->getBlock() != reader->getBlock() ? made : nullptr;
}

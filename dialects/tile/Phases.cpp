// Divides a tile program into phases.
#include "dialects/tile/Phases.h"

#include "dialects/tile/TileAttributeNames.h"

using namespace mlir;
using namespace tilewright::tile;

SmallVector<SmallVector<ParallelOp>> tilewright::tile::phasesOf(ProgramOp program) {
  SmallVector<SmallVector<ParallelOp>> phases(1);
  for (Operation &op : program.getBody().front()) {
    if (auto part = dyn_cast<ParallelOp>(op))
      phases.back().push_back(part);
    else
      phases.emplace_back();
  }
  return phases;
}

int64_t tilewright::tile::workgroupsOf(ArrayRef<ParallelOp> phase) {
  int64_t workgroups = 0;
  for (ParallelOp part : phase)
    workgroups += part.getWorkgroups();
  return workgroups;
}

SmallVector<SyncOp> tilewright::tile::gridSyncsIn(ParallelOp part) {
  return llvm::filter_to_vector(part.getWalk().getBody().getOps<SyncOp>(),
                                [](SyncOp sync) { return sync.getScope() == Scope::grid; });
}

bool tilewright::tile::syncsAtGrid(ProgramOp program) {
  auto waits = [](ParallelOp part) { return part.getSteps().has_value() || !gridSyncsIn(part).empty(); };
  return hasGridSync(program) || program->hasAttr(kRepeatedAttr) ||
         llvm::any_of(program.getBody().getOps<ParallelOp>(), waits);
}

// Implements stream-K on tile programs: the partial sums that workgroups add to each other's tiles become one more
// output of the program. The plan has decided which tiles are shared (plan/tiling/gpu/PlannedSharing.h).
#include "dialects/tile/Phases.h"
#include "passes/Passes.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/AddOutput.h"
#include "passes/program/gpu/ContractionPlan.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/target/TargetOrError.h"

namespace tilewright {
#define GEN_PASS_DEF_ALLOCATEPARTIALS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
bool writesGlobal(ComputeOp compute) {
  auto isGlobal = [](Value slice) { return cast<SliceType>(slice.getType()).getSpace() == Space::global; };
  return llvm::any_of(compute.getAccs(), isGlobal) ||
         llvm::any_of(compute.getBodyBlock().getOps<StoreOp>(),
                      [&](StoreOp store) { return isGlobal(store.getSlice()); });
}

/// Returns the contraction that a tile ends with, together with the nests that read its accumulators from registers;
/// null if the tile ends with something else or has another contraction. Ops before it only fill buffers of the block.
ComputeOp lastContraction(ParallelOp part) {
  ComputeOp found;
  bool isOver = false;
  for (Operation &op : part.getWalk().getBody().front()) {
    if (isa<AllocOp, SyncOp>(op))
      continue;
    auto compute = dyn_cast<ComputeOp>(op);
    if (isOver || !compute)
      return nullptr;
    if (compute.getMicroKernel()) {
      if (found)
        return nullptr;
      found = compute;
      std::optional<RegisterHandover> handover = registerHandover(compute);
      if (handover && handover->keepsAccumulators())
        return nullptr;
      isOver = !handover;
    } else if (contractionHandedTo(compute)) {
      isOver = true;
    } else if (writesGlobal(compute)) {
      return nullptr;
    }
  }
  return found;
}

bool isAloneInPhase(ParallelOp part) {
  return llvm::any_of(phasesOf(part->getParentOfType<ProgramOp>()),
                      [&](ArrayRef<ParallelOp> phase) { return phase.size() == 1 && phase.front() == part; });
}

/// Returns the type of the buffer for the partial sums of a part whose workgroups share tiles. Fails if they cannot
/// share them as the part states.
FailureOr<SliceType> partialsFor(ParallelOp part, const Target &machine) {
  auto refuse = [&](const std::string &why) { return part.emitError("workgroups cannot share tiles: ") << why; };
  auto program = part->getParentOfType<ProgramOp>();
  ComputeOp compute = lastContraction(part);
  if (!compute)
    return refuse("a tile does not end with its only contraction");
  if (!isAloneInPhase(part))
    return refuse("other parts run in the same phase");
  OrDeclined<ContractionPlan> contraction = planContraction(compute, threadsOf(program), machine);
  if (!contraction)
    return refuse(contraction.why().reason);
  if (!hasOneLoop(compute, *contraction))
    return refuse("the contraction does not walk its K dims in a single loop");
  int64_t steps = stepsOf(compute, *contraction), stated = *part.getSteps(), workgroups = part.getWorkgroups();
  if (steps != stated)
    return refuse("a tile has " + std::to_string(steps) + " steps along K, not " + std::to_string(stated));
  if (workgroups != program.getWorkgroups())
    return refuse("all " + std::to_string(program.getWorkgroups()) +
                  " workgroups of the kernel take part in the barrier, not " + std::to_string(workgroups));
  Type sum = compute.getBodyBlock().getArgument(0).getType();
  return partialsOf(part.getContext(), contraction->tiling, sum, workgroups);
}

struct AllocatePartials : tilewright::impl::AllocatePartialsBase<AllocatePartials> {
  using AllocatePartialsBase::AllocatePartialsBase;

  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    SmallVector<ParallelOp> parts;
    getOperation().walk([&](ParallelOp part) {
      if (part.getSteps() && !part.getPartials())
        parts.push_back(part);
    });
    for (ParallelOp part : parts) {
      auto program = part->getParentOfType<ProgramOp>();
      FailureOr<SliceType> partials = partialsFor(part, *machine);
      if (failed(partials))
        return signalPassFailure();
      part.getPartialsMutable().assign(addOutput(program, *partials, launchesOf(program, getOperation())));
      ++numShared;
    }
    if (parts.empty())
      markAllAnalysesPreserved();
  }
};
} // namespace

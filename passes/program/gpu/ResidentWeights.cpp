#include "passes/program/gpu/ResidentWeights.h"

#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/Phases.h"
#include "passes/program/gpu/PartWork.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Bytes that the addresses of weights are multiples of: the widest swizzle.
static constexpr int64_t kAlignment = 1024;

/// Returns true if the load reads an input that is the same in all steps.
static bool readsInvariant(LoadOp load, ArrayRef<int64_t> invariants) {
  auto argument = load ? dyn_cast<BlockArgument>(load.getSlice()) : BlockArgument();
  return argument && isa<ProgramOp>(argument.getOwner()->getParentOp()) &&
         llvm::is_contained(invariants, argument.getArgNumber());
}

/// Returns true if a block computes one tile of the part, in one loop over the steps along K.
static bool computesOneTile(ParallelOp part, ComputeOp contraction, const ContractionPlan &plan) {
  auto isOne = [&](int64_t dim) { return contraction.getSizes()[dim] == 1; };
  return static_cast<int64_t>(part.getWorkgroups()) == part.getNumTiles() && !part.getSteps() &&
         isa<WalkOp>(contraction->getParentOp()) && hasOneLoop(contraction, plan) &&
         llvm::all_of(plan.contraction.batch, isOne);
}

SmallVector<ResidentWeight> tilewright::residentWeights(ProgramOp program, const Target &target) {
  auto invariants = program->getAttrOfType<DenseI64ArrayAttr>(kRepeatedAttr);
  if (!invariants)
    return {};
  SmallVector<ResidentWeight> weights;
  int64_t threads = threadsOf(program), end = llvm::alignTo(sharedBytesOf(program, target), kAlignment);
  for (auto part : program.getBody().getOps<ParallelOp>())
    part.walk([&](ComputeOp compute) {
      std::optional<ContractionPlan> plan;
      if (compute.getMicroKernel())
        plan = planContraction(compute, threads, target);
      if (!plan || !computesOneTile(part, compute, *plan) ||
          !readsInvariant(plan->contraction.rhs, invariants.asArrayRef()) || isSwizzled(compute, plan->contraction.rhs))
        return;
      int64_t bytes = stepsOf(compute, *plan) * plan->tiling.rhsSlotBytes;
      if (!staysResident(program, end + bytes, target))
        return;
      weights.push_back({compute, end, bytes});
      end = llvm::alignTo(end + bytes, kAlignment);
    });
  return weights;
}

int64_t tilewright::sharedBytesWithWeights(ProgramOp program, const Target &target) {
  SmallVector<ResidentWeight> weights = residentWeights(program, target);
  return weights.empty() ? sharedBytesOf(program, target) : weights.back().offset + weights.back().bytes;
}

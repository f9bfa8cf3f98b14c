#include "passes/program/gpu/ResidentWeights.h"

#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/ScratchOffsets.h"

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

/// Returns the offset from which on a block's memory has nothing but the slots through which the contraction's rhs
/// would pass, which are not needed if it stays resident; or -1 if something else comes behind them.
static int64_t beginOfSlots(ParallelOp part, ComputeOp contraction, const ContractionPlan &plan, int64_t threads,
                            const Target &target) {
  ScratchOffsets scratch = scratchOffsets(part, threads, target);
  const GemmTiling &tiling = plan.tiling;
  if (scratch.offsetOf(contraction) != 0 || scratch.bytes != tiling.sharedBytes() || tiling.barrierBytes() > 0)
    return -1;
  int64_t slices = (tiling.kSlices - 1) * tiling.accumulatorThreads * tiling.accumulators * tiling.accumulatorBytes,
          begin = scratchOffset(part) + std::max(tiling.lhsBytes(), slices);
  auto program = part->getParentOfType<ProgramOp>();
  begin = std::max(begin, program.getBlockBytes());
  for (auto other : program.getBody().getOps<ParallelOp>())
    if (other != part)
      begin = std::max(begin, sharedBytesOf(other, threads, target));
  return begin;
}

/// Returns why the rhs of a contraction is not the same in all steps, or not one tile of a block; or an empty string.
static std::string whyNotAlike(ComputeOp contraction, const OrDeclined<ContractionPlan> &plan) {
  auto part = contraction->getParentOfType<ParallelOp>();
  auto invariants = part->getParentOfType<ProgramOp>()->getAttrOfType<DenseI64ArrayAttr>(kRepeatedAttr);
  if (!invariants)
    return "its kernel is not repeated";
  if (!plan)
    return plan.why().reason;
  if (!computesOneTile(part, contraction, *plan))
    return "a block does not compute one tile of it in one loop along K";
  if (!readsInvariant(plan->contraction.rhs, invariants.asArrayRef()))
    return "its rhs is no input that is the same in all steps";
  return isSwizzled(contraction, plan->contraction.rhs) ? "its rhs is stored in a swizzled layout" : "";
}

std::string tilewright::whyNotKept(ComputeOp contraction, const Target &target) {
  if (!contraction.getMicroKernel())
    return "it has no micro kernel";
  int64_t threads = threadsOf(contraction->getParentOfType<ProgramOp>());
  return whyNotAlike(contraction, planContraction(contraction, threads, target));
}

/// Returns the weights that can be kept and that `keeps` takes, given the bytes of a block with them.
static SmallVector<ResidentWeight> placeWeights(ProgramOp program, const Target &target,
                                                llvm::function_ref<bool(ComputeOp, int64_t)> keeps) {
  if (!program->hasAttr(kRepeatedAttr))
    return {};
  SmallVector<ResidentWeight> weights;
  int64_t threads = threadsOf(program), others = sharedBytesOf(program, target),
          end = llvm::alignTo(others, kAlignment);
  for (auto part : program.getBody().getOps<ParallelOp>())
    part.walk([&](ComputeOp compute) {
      if (!compute.getMicroKernel())
        return;
      OrDeclined<ContractionPlan> plan = planContraction(compute, threads, target);
      if (!whyNotAlike(compute, plan).empty())
        return;
      int64_t bytes = stepsOf(compute, *plan) * plan->tiling.rhsSlotBytes, begin = end;
      if (int64_t slots = beginOfSlots(part, compute, *plan, threads, target); slots >= 0 && weights.empty())
        begin = std::min<int64_t>(end, llvm::alignTo(slots, kAlignment));
      if (!keeps(compute, std::max(others, begin + bytes)))
        return;
      weights.push_back({compute, begin, bytes});
      end = llvm::alignTo(std::max(end, begin + bytes), kAlignment);
    });
  return weights;
}

SmallVector<ResidentWeight> tilewright::possibleWeights(ProgramOp program, const Target &target) {
  return placeWeights(program, target,
                      [&](ComputeOp, int64_t bytes) { return staysResident(program, bytes, target); });
}

SmallVector<ResidentWeight> tilewright::residentWeights(ProgramOp program, const Target &target) {
  return placeWeights(program, target,
                      [](ComputeOp contraction, int64_t) { return contraction->hasAttr(kResidentWeightAttr); });
}

int64_t tilewright::sharedBytesBehind(ArrayRef<ResidentWeight> weights, int64_t bytes) {
  if (weights.empty())
    return bytes;
  int64_t first = weights.front().offset, end = weights.back().offset + weights.back().bytes;
  return end - first + llvm::alignTo(std::max(first, bytes + kAlignment), kAlignment);
}

int64_t tilewright::sharedBytesWithWeights(ProgramOp program, const Target &target) {
  SmallVector<ResidentWeight> weights = residentWeights(program, target);
  int64_t bytes = sharedBytesOf(program, target);
  return weights.empty() ? bytes : std::max(bytes, weights.back().offset + weights.back().bytes);
}

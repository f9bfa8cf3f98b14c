// The contraction before is the neighbour in program order, cyclically inside a loop. Both need a single loop of steps,
// because the turns of the last steps copy for the next contraction.
#include "passes/program/gpu/Prefetch.h"

#include "dialects/tile/Phases.h"
#include "passes/layout/GemmChoice.h"
#include "passes/layout/GemmReasons.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/ContractionPlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

Prefetch tilewright::prefetchOf(ComputeOp contraction) {
  Operands named = contraction.getGemm() ? contraction.getGemm()->getPrefetch() : Operands::none;
  return {named == Operands::lhs || named == Operands::both, named == Operands::rhs || named == Operands::both};
}

/// Returns the contractions of a block in the order in which they are computed. A contraction whose accumulators are
/// handed over in registers is computed together with the nest that reads them.
static SmallVector<ComputeOp> inOrder(Block &block) {
  SmallVector<ComputeOp> order;
  for (auto compute : block.getOps<ComputeOp>())
    if (ComputeOp handed = contractionComputedWith(compute))
      order.push_back(handed);
    else if (compute.getMicroKernel() && !registerHandover(compute))
      order.push_back(compute);
  return order;
}

/// Returns the contraction that is computed `distance` contractions behind, cyclically in a loop; null if there is none
/// or it is the same one.
static ComputeOp neighbourOf(ComputeOp contraction, int64_t distance) {
  SmallVector<ComputeOp> order = inOrder(*contraction->getBlock());
  int64_t count = order.size(), own = llvm::find(order, contraction) - order.begin(), place = own + distance;
  bool isLoop = isa<scf::ForOp>(contraction->getParentOp());
  if (own == count || count == 1 || (!isLoop && (place < 0 || place >= count)))
    return nullptr;
  return order[(place + count) % count];
}

ComputeOp tilewright::contractionBefore(ComputeOp contraction) { return neighbourOf(contraction, -1); }

ComputeOp tilewright::contractionPrefetchedDuring(ComputeOp contraction) {
  ComputeOp next = neighbourOf(contraction, 1);
  return next && prefetchOf(next).any() ? next : ComputeOp();
}

bool tilewright::isPrefetchedInBlockBefore(ComputeOp contraction) {
  return prefetchOf(contraction).any() && contractionBefore(contraction) &&
         inOrder(*contraction->getBlock()).front() == contraction;
}

/// Returns true if nothing in the program writes the tensor, so that it is complete before the kernel starts.
static bool isGiven(LoadOp load) {
  auto slice = dyn_cast<BlockArgument>(load.getSlice());
  auto program = load->getParentOfType<ProgramOp>();
  if (!slice || slice.getOwner()->getParentOp() != program)
    return false;
  int64_t number = slice.getArgNumber(), inputs = program.getBody().getNumArguments() - program.getOutputs();
  auto isTied = [&](DenseI64ArrayAttr tied) { return llvm::is_contained(tied.asArrayRef(), number); };
  return number < inputs &&
         (!program.getInPlace() || llvm::none_of(program.getInPlaceAttr().getAsRange<DenseI64ArrayAttr>(), isTied));
}

/// Returns true if it is the first contraction of a part that is alone in a phase behind a barrier.
static bool standsBehindBarrier(ComputeOp contraction) {
  auto walk = dyn_cast<WalkOp>(contraction->getParentOp());
  if (!walk || contractionBefore(contraction))
    return false;
  auto phases = phasesOf(contraction->getParentOfType<ProgramOp>());
  auto part = contraction->getParentOfType<ParallelOp>();
  return !part.getSteps() && llvm::any_of(llvm::drop_begin(phases), [&](ArrayRef<ParallelOp> phase) {
    return phase.size() == 1 && phase.front() == part;
  });
}

ComputeOp tilewright::contractionPrefetchedBefore(ParallelOp part) {
  SmallVector<ComputeOp> order = inOrder(part.getWalk().getBody().front());
  return !order.empty() && prefetchOf(order.front()).any() ? order.front() : ComputeOp();
}

int64_t tilewright::prefetchedSteps(ComputeOp contraction, const ContractionPlan &plan, int64_t threads,
                                    const Target &target) {
  if (!prefetchOf(contraction).any())
    return 0;
  ComputeOp before = contractionBefore(contraction);
  int64_t own = plan.tiling.stepsInFlight();
  if (!before)
    return own;
  OrDeclined<ContractionPlan> other = planContraction(before, threads, target);
  return other ? std::min(own, other->tiling.stepsInFlight()) : own;
}

static bool multipliesInOneLoop(ComputeOp contraction, int64_t threads, const Target &target) {
  OrDeclined<ContractionPlan> plan = planContraction(contraction, threads, target);
  return plan && hasOneLoop(contraction, *plan);
}

/// Returns the operands whose first steps another contraction can copy.
static Prefetch possiblePrefetch(ComputeOp contraction, int64_t threads, const Target &target) {
  OrDeclined<ContractionPlan> plan = planContraction(contraction, threads, target);
  ComputeOp before = contractionBefore(contraction);
  if (!plan || !hasOneLoop(contraction, *plan) || (!before && !standsBehindBarrier(contraction)) ||
      (before && !multipliesInOneLoop(before, threads, target)))
    return {};
  auto canStart = [&](LoadOp load, OperandShape shape) {
    return isGiven(load) && isCopiedAsync(contraction, load, shape);
  };
  bool keepsLhs = plan->tiling.residentSteps > 0; // a resident lhs need not be copied again
  return {!keepsLhs && canStart(plan->contraction.lhs, lhsShape(*plan)),
          canStart(plan->contraction.rhs, rhsShape(*plan))};
}

std::string tilewright::whyNoPrefetch(ComputeOp compute, int64_t threads, const Target &target) {
  Prefetch said = prefetchOf(compute);
  if (!said.any())
    return "";
  Prefetch possible = possiblePrefetch(compute, threads, target);
  StringRef wrong = said.lhs && !possible.lhs ? "lhs" : said.rhs && !possible.rhs ? "rhs" : "";
  return wrong.empty() ? "" : whyNotCopiedAhead(wrong);
}

// Matches the contraction, picks the micro kernel (or a replacement if the target lacks it), and lets GemmTiling choose
// the tiling. Then finds operands that are not copied at every step: those that another nest left in shared memory, and
// those that are the same in all iterations of a loop.
#include "passes/program/gpu/ContractionPlan.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/cost/BlockLatency.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/AllowedProducts.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static int64_t bytesOf(LoadOp load) { return elementBytes(load.getSlice().getType().getElementType()); }

/// Returns the reduced dim along which an operand is contiguous, else the longest one.
static int64_t chooseKDim(ComputeOp compute, const Contraction &contraction) {
  for (LoadOp load : {contraction.lhs, contraction.rhs})
    for (int64_t dim : contraction.reduced)
      if (compute.getSizes()[dim] > 1 && liesAlong(load, dim))
        return dim;
  return *llvm::max_element(contraction.reduced,
                            [&](int64_t a, int64_t b) { return compute.getSizes()[a] < compute.getSizes()[b]; });
}

static bool isInBuffer(LoadOp load) { return load.getSlice().getType().getSpace() == Space::block; }

OperandShape tilewright::lhsShape(const ContractionPlan &plan) {
  int64_t held = plan.tiling.heldM, atom = kAtomBytes / bytesOf(plan.contraction.lhs);
  return {plan.contraction.m, plan.k, held, plan.tiling.step, std::max(held, atom), plan.tiling.lhsShifted};
}
OperandShape tilewright::rhsShape(const ContractionPlan &plan) {
  const GemmTiling &tiling = plan.tiling;
  return {plan.contraction.n, plan.k, tiling.n, tiling.step, tiling.rhsLine, tiling.rhsShifted};
}

int64_t tilewright::stepsOf(ComputeOp compute, const ContractionPlan &plan) {
  return llvm::divideCeil(compute.getSizes()[plan.k], plan.tiling.step);
}

bool tilewright::hasOneLoop(ComputeOp compute, const ContractionPlan &plan) {
  auto isLoop = [&](int64_t dim) { return dim != plan.k && compute.getSizes()[dim] > 1; };
  return llvm::none_of(plan.contraction.batch, isLoop) && llvm::none_of(plan.contraction.reduced, isLoop);
}

/// Returns why bulk copies cannot read the swizzled layout that the contraction states for an operand; other copies
/// cannot read it at all. Returns an empty string if they can, or if the contraction states none.
static std::string whyNotSwizzled(ComputeOp compute, const ContractionPlan &plan) {
  if (!compute->hasAttr(kSwizzledAttr))
    return "";
  const GemmTiling &tiling = plan.tiling;
  LoadOp rhs = plan.contraction.rhs;
  SliceType type = rhs.getSlice().getType();
  std::optional<SwizzledShape> layout = swizzledShapeOf(compute);
  if (!layout || type.getSpace() != Space::global || type.getRank() != 3 || type.getShape()[1] != layout->lines ||
      type.getShape()[2] != layout->step)
    return "its N operand does not have the swizzled layout that '" + kSwizzledAttr.str() + "' states";
  if (!isOfWarpgroup(plan.kernel) || roundsToTf32(plan.kernel.name))
    return "only warpgroups that do not round their operands read swizzled layouts, but '" + plan.kernel.name +
           "' computes it";
  int64_t n = plan.contraction.n, size = compute.getSizes()[n];
  int64_t needed = (llvm::divideCeil(compute.getExtents()[n], size) - 1) * size + tiling.n;
  bool isCut = size < compute.getExtents()[n] && size % kSwizzleLines != 0;
  if (layout->step != tiling.step || layout->lines < needed || isCut || !hasOneLoop(compute, plan))
    return "tiles of N = " + std::to_string(size) + " in steps of K = " + std::to_string(tiling.step) +
           " do not fit a swizzled layout of " + std::to_string(layout->lines) + " lines of " +
           std::to_string(layout->step);
  return "";
}

/// Returns true if the operand, of a single matrix, is the same in all iterations of the loop around and lies in global
/// memory, where other parts write it in another phase.
static bool staysInLoop(ComputeOp compute, const Contraction &contraction, LoadOp load) {
  auto loop = dyn_cast<scf::ForOp>(compute->getParentOp());
  auto part = compute->getParentOfType<ParallelOp>();
  if (!loop || load.getSlice().getType().getSpace() != Space::global ||
      part->getParentOfType<ProgramOp>().getInPlace() ||
      llvm::any_of(contraction.batch, [&](int64_t dim) { return compute.getSizes()[dim] > 1; }))
    return false;
  for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
    if (offset == loop.getInductionVar() && load.getMap().isFunctionOfDim(dim))
      return false;
  bool isWritten = false;
  part.walk([&](ComputeOp nest) {
    isWritten |= llvm::is_contained(nest.getAccs(), load.getSlice());
    for (StoreOp store : nest.getBodyBlock().getOps<StoreOp>())
      isWritten |= store.getSlice() == load.getSlice();
  });
  return !isWritten;
}

/// Returns true if no SM runs more than one of the part's blocks, and this is the only nest of the block that
/// accumulates.
static bool isAlone(ComputeOp compute, const Contraction &contraction, const Target &target) {
  auto part = compute->getParentOfType<ParallelOp>();
  if (isInBuffer(contraction.lhs) || isInBuffer(contraction.rhs) || isa<scf::ForOp>(compute->getParentOp()) ||
      part.getNumTiles() > static_cast<int64_t>(target.cores))
    return false;
  auto others = part.walk([&](ComputeOp other) {
    return other == compute || other.getAccs().empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !others.wasInterrupted();
}

std::optional<ContractionPlan> tilewright::planContraction(ComputeOp compute, int64_t threads, const Target &target,
                                                           std::string *reason) {
  auto refuse = [&](std::string why) -> std::optional<ContractionPlan> {
    if (reason)
      *reason = std::move(why);
    return std::nullopt;
  };
  std::optional<Contraction> contraction = matchContraction(compute);
  if (!contraction)
    return refuse("it is not a sum of products of two loads");
  if (!isa<TypedAttr>(compute.getInits()[0]) || isa<UnitAttr>(compute.getInits()[0]))
    return refuse("accumulators that start from the values of their slice have no code generation on GPUs");
  std::string instead;
  StringRef named = *compute.getMicroKernel();
  int64_t k = chooseKDim(compute, *contraction);
  bool alongK = liesAlong(contraction->lhs, k) && (liesAlong(contraction->rhs, k) || compute->hasAttr(kSwizzledAttr));
  auto kernel = blockMicroKernel(allowingNamed(target, named), contraction->types, named,
                                 {isInBuffer(contraction->lhs), isInBuffer(contraction->rhs), alongK}, &instead);
  if (!kernel)
    return refuse("no micro kernel of target '" + target.name + "' multiplies its types");
  ContractionPlan plan{*contraction, *kernel, {}, k, instead};
  ArrayRef<int64_t> sizes = compute.getSizes();
  GemmTile tile{contraction->m < 0 ? 1 : sizes[contraction->m],
                sizes[contraction->n],
                sizes[plan.k],
                bytesOf(contraction->lhs),
                bytesOf(contraction->rhs),
                !liesAlong(contraction->lhs, contraction->m),
                isAlone(compute, *contraction, target),
                !liesAlong(contraction->rhs, contraction->n),
                beginsInsideWords(compute, contraction->lhs, contraction->m, k),
                beginsInsideWords(compute, contraction->rhs, contraction->n, k)};
  std::string why;
  std::optional<GemmTiling> tiling = chooseGemmTiling(tile, threads, plan.kernel, &why, kSlicesOf(named));
  if (!tiling)
    return refuse(why);
  plan.tiling = *tiling;
  if (std::string wrong = whyNotSwizzled(compute, plan); !wrong.empty())
    return refuse(wrong);
  if (isResident(compute, contraction->lhs, lhsShape(plan)))
    plan.tiling.readLhsInPlace();
  else if (!roundsInSharedMemory(plan.kernel) && hasOneLoop(compute, plan) &&
           staysInLoop(compute, *contraction, contraction->lhs))
    plan.tiling.keepLhsResident(sizes[plan.k]);
  if (isResident(compute, contraction->rhs, rhsShape(plan)))
    plan.tiling.rhsSlotBytes = 0;
  return plan;
}

int64_t tilewright::rowScratchBytes(const RegisterHandover &handover, const ContractionPlan &plan, int64_t threads) {
  int64_t widest = 0;
  for (const EpilogueNest &reader : handover.readers)
    for (BlockArgument accumulator : ComputeOp(reader.nest).getBodyBlock().getArguments())
      widest = std::max(widest, elementBytes(accumulator.getType()));
  return plan.tiling.combiningBytes(threads, widest);
}

SliceType tilewright::partialsOf(MLIRContext *context, const GemmTiling &tiling, Type sum, int64_t workgroups) {
  int64_t run = kAccessBytes / tiling.accumulatorBytes;
  while (tiling.accumulators % run != 0)
    run /= 2;
  return SliceType::get(context, {workgroups, tiling.accumulators / run, tiling.accumulatorThreads, run}, sum,
                        Space::global);
}

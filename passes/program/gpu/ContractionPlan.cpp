// Matches the contraction, and derives the layout from the decisions that stand on it (#tile.gemm). Then finds the
// operands that are not copied at all, because another nest left them in shared memory.
#include "passes/program/gpu/ContractionPlan.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/layout/GemmReasons.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static int64_t bytesOf(LoadOp load) { return elementBytes(load.getSlice().getType().getElementType()); }

static bool isInBuffer(LoadOp load) { return load.getSlice().getType().getSpace() == Space::block; }

OperandShape tilewright::lhsShape(const ContractionPlan &plan) {
  int64_t held = plan.tiling.heldM, atom = kAtomBytes / bytesOf(plan.contraction.lhs);
  return {plan.contraction.m, plan.k, held, plan.tiling.step, std::max(held, atom), plan.tiling.lhsShifted,
          plan.tiling.lhsCopy};
}
OperandShape tilewright::rhsShape(const ContractionPlan &plan) {
  const GemmTiling &tiling = plan.tiling;
  return {plan.contraction.n, plan.k, tiling.n, tiling.step, tiling.rhsLine, tiling.rhsShifted, tiling.rhsCopy};
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
  if (!isOfWarpgroup(plan.kernel) || plan.kernel.roundsToTf32)
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

/// Returns why no copy of lhs can stay in shared memory while a loop around the contraction runs, or an empty string.
static std::string whyNotResident(ComputeOp compute, const ContractionPlan &plan) {
  if (isInBuffer(plan.contraction.lhs))
    return "another nest leaves it there anyway";
  if (!hasOneLoop(compute, plan) || !staysInLoop(compute, plan.contraction, plan.contraction.lhs))
    return "it is not the same in all iterations of a loop around the contraction, or that has several loops";
  if (roundsInSharedMemory(plan.kernel))
    return whyRoundedAgain(plan.kernel.name);
  return "";
}

/// Returns the tile that the nest computes.
static GemmTile tileOf(ComputeOp compute, const Contraction &contraction, int64_t k) {
  ArrayRef<int64_t> sizes = compute.getSizes();
  return {contraction.m < 0 ? 1 : sizes[contraction.m],
          sizes[contraction.n],
          sizes[k],
          bytesOf(contraction.lhs),
          bytesOf(contraction.rhs),
          accessOf(contraction.lhs).liesByK(contraction.m, k),
          accessOf(contraction.rhs).liesByK(contraction.n, k),
          beginsInsideWords(compute, contraction.lhs, contraction.m, k),
          beginsInsideWords(compute, contraction.rhs, contraction.n, k)};
}

/// Returns why the threads cannot copy the operands as wide as the plan says, or an empty string.
static std::string whyNotCopied(ComputeOp compute, const ContractionPlan &plan, const GemmTile &tile) {
  auto whyNot = [&](LoadOp load, OperandShape shape, bool isShifted) -> std::string {
    if (isInBuffer(load) || isSwizzled(compute, load))
      return "";
    return accessOf(load).whyNotCopied(shape.copy, shape.dim, shape.k, shape.points, shape.step,
                                       isShifted && canShift(plan.kernel));
  };
  if (std::string why = whyNot(plan.contraction.lhs, lhsShape(plan), tile.lhsShifted); !why.empty())
    return "lhs_copy: " + why;
  std::string why = whyNot(plan.contraction.rhs, rhsShape(plan), tile.rhsShifted);
  return why.empty() ? "" : "rhs_copy: " + why;
}

OrDeclined<ContractionPlan> tilewright::planContraction(ComputeOp compute, int64_t threads, const Target &target) {
  auto refuse = [](std::string why) { return Declined{std::move(why), "no micro kernel"}; };
  std::optional<Contraction> contraction = matchContraction(compute, OperandGuards::allowed);
  if (!contraction)
    return refuse("it is not a sum of products of two loads");
  if (!isa<TypedAttr>(compute.getInits()[0]) || isa<UnitAttr>(compute.getInits()[0]))
    return refuse("accumulators that start from the values of their slice have no code generation on GPUs");
  if (!compute.getGemm())
    return refuse("it has no #tile.gemm, which says how the threads of a block share it");
  StringRef named = *compute.getMicroKernel();
  int64_t k = steppedDim({accessOf(contraction->lhs), accessOf(contraction->rhs)}, contraction->reduced);
  bool alongK = liesAlong(contraction->lhs, k) && (liesAlong(contraction->rhs, k) || compute->hasAttr(kSwizzledAttr));
  std::string why;
  auto kernel = blockMicroKernel(target, contraction->types, named,
                                 {isInBuffer(contraction->lhs), isInBuffer(contraction->rhs), alongK},
                                 NumericsMode::tf32, &why);
  if (!kernel || !why.empty())
    return refuse(why);
  ContractionPlan plan{*contraction, *kernel, {}, k};
  GemmChoice choice = choiceOf(*compute.getGemm());
  GemmTile tile = tileOf(compute, *contraction, k);
  OrDeclined<GemmTiling> tiling = deriveGemmTiling(tile, threads, plan.kernel, choice, target.costs.gpu);
  if (!tiling)
    return tiling.why();
  plan.tiling = *tiling;
  for (const std::string &wrong : {whyNotSwizzled(compute, plan), whyNotCopied(compute, plan, tile)})
    if (!wrong.empty())
      return refuse(wrong);
  if (choice.lhs == Residency::walk)
    if (std::string wrong = whyNotResident(compute, plan); !wrong.empty())
      return refuse(whyLhsNotResident(wrong));
  if (isResident(compute, contraction->lhs, lhsShape(plan)))
    plan.tiling.readLhsInPlace();
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

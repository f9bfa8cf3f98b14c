#include "passes/backend/cuda/CudaBackend.h"

#include "passes/plan/grid/PlaceHandOvers.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/tiling/TileSizes.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "passes/plan/tiling/gpu/PlannedResidency.h"
#include "passes/plan/tiling/gpu/PlannedSharing.h"
#include "passes/plan/tiling/gpu/SwizzledOperands.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

std::string CudaBackend::chooseTiles(const TilingProblem &problem, IterationSpace &space) const {
  auto footprint = [&] { return problem.footprint.bytes(); };
  bool contracts = llvm::any_of(space.roots, [&](const GroupRoot &root) {
    return problem.graph.exprs()[root.expr].kind == ExprKind::contraction;
  });
  std::string why;
  if (contracts)
    why = chooseContractionBlock(problem.graph, problem.target, space,
                                 walkableDim(problem.graph, problem.group, space), footprint);
  else
    why = chooseBlockShape(problem.graph, problem.target, space, footprint);
  space.workgroups = space.numTiles();
  return why;
}

void CudaBackend::chooseWorkgroups(const TilingProblem &, IterationSpace &space) const {
  space.workgroups = space.numTiles();
}

/// They are all legal sizes of thread blocks.
std::vector<IterationSpace> CudaBackend::tilings(const TensorGraph &graph, const GroupChoice &group,
                                                 const Target &target, const IterationSpace &own) const {
  std::vector<IterationSpace> spaces;
  for (const BlockCandidate &block : blockCandidates(graph, group, target, own)) {
    IterationSpace shaped = own;
    if (block.discarded.empty() && takeBlock(graph, group, target, shaped, block).empty())
      spaces.push_back(std::move(shaped));
  }
  return spaces;
}

void CudaBackend::finishPlan(Plan &plan, const TensorGraph &graph, const Target &target,
                             llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) const {
  chooseGemms(plan, graph, target, groupOf);
  settleSharing(plan, graph, target);
  placeHandOvers(plan, graph, target, groupOf);
  chooseSwizzledOperands(plan, graph, target);
  if (!settleMicroKernels(plan, graph, target).empty())
    chooseGemms(plan, graph, target);
  settleResidentBlocks(plan, graph, target, groupOf);
  describeCopies(plan, graph, target);
}

/// Returns why the sums of a plan that cuts K must not be regrouped, or an empty string.
static std::string whyNotRegrouped(const Plan &plan, const TensorGraph &graph, const Target &) {
  for (const KernelPlan &kernel : plan.kernels)
    for (auto [number, group] : llvm::enumerate(kernel.groups))
      for (const OpPlan &op : group.ops) {
        bool isCut = !op.microKernel.empty() && (group.steps > 0 || (op.gemm && op.gemm->kSlices > 1));
        bool rounds = isa<FloatType>(getElementTypeOrSelf(graph.exprs()[op.id].op->getResult(0).getType()));
        if (isCut && rounds && !op.numerics.reassociates)
          return llvm::formatv("kernel '{0}' group {1}: op {2}: cuts K into parts that are added up, but its numerics do "
                               "not allow that (reassociates)",
                               kernel.name, number, op.id);
      }
  return "";
}

std::string CudaBackend::settlePlan(Plan &plan, const TensorGraph &graph, const Target &target,
                                    std::vector<PlanRemark> &remarks) const {
  for (const SettledKernel &kernel : settleMicroKernels(plan, graph, target)) // the planner's are settled
    return llvm::formatv("op {0}: its micro kernel cannot be '{1}': {2}; '{3}' can compute it", kernel.op,
                         kernel.before, kernel.reason, kernel.after);
  chooseGemms(plan, graph, target);
  settleResidentBlocks(plan, graph, target);
  for (auto whyNot : {whyNotLaidOut, whyNotComputed, whyNotShared, whyNotRegrouped, whyNotResident})
    if (std::string why = whyNot(plan, graph, target); !why.empty())
      return why;
  describeCopies(plan, graph, target);
  for (const PlainCopies &copies : plainCopies(plan, graph, target))
    remarks.push_back({copies.op, "plain-copies",
                       llvm::formatv("tile: op {0} does not copy its steps in bulk from a swizzled layout: {1}",
                                     copies.op, copies.reason)});
  return "";
}

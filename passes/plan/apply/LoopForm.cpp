// A step is a launch otherwise, which takes longer than a barrier of the grid, so a loop is always better off in its
// kernel.
#include "passes/plan/apply/LoopForm.h"

#include "passes/graph/Eligibility.h"
#include "passes/graph/LoopBodies.h"
#include "passes/plan/ir/Phases.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

/// Returns an op of the body that IREE would have to run in every step, or null.
static Operation *foreignOp(const BlockGraph &body, const Plan &plan) {
  auto isSlice = [](Operation *op) { return isa<tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::EmptyOp>(op); };
  std::vector<bool> atLoad = computedAtLoad(body.graph);
  for (const LeftOp &left : plan.left)
    if (const TensorExpr &expr = body.graph.exprs()[left.id]; !isView(expr) && !atLoad[left.id] && !isSlice(expr.op))
      return expr.op;
  for (const OpaqueOp &opaque : body.graph.opaque())
    if (!isSlice(opaque.op))
      return opaque.op;
  return nullptr;
}

std::string tilewright::whyNotOneKernel(const BlockGraph &body, const Plan &plan, const Target &target, bool gridSync) {
  if (!target.hasGridBarriers() || !gridSync)
    return "there are no grid barriers";
  if (!isa<scf::ForOp>(body.loop) || tripCount(body.loop).value_or(0) < 2)
    return "its steps are not known, or there is only one";
  if (plan.kernels.size() != 1)
    return "a step is " + std::to_string(plan.kernels.size()) + " kernels";
  if (Operation *op = foreignOp(body, plan))
    return "IREE computes " + op->getName().getStringRef().str() + " in every step";
  // A kernel with barriers has been proved to have all its blocks resident at once. For others, one block per SM is
  // sure.
  int64_t blocks = workgroupsOf(plan, plan.kernels.front());
  bool hasBarriers = llvm::any_of(plan.edges, [](const EdgePlan &edge) { return edge.scope == tile::Scope::grid; });
  if (!hasBarriers && blocks > target.gpu.guaranteedSms)
    return "its " + std::to_string(blocks) + " blocks may not all be resident at once";
  return "";
}

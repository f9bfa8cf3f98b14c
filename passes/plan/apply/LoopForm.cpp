// A step is a launch otherwise, which takes longer than a barrier of the grid, so a loop is always better off in its
// kernel.
#include "passes/plan/apply/LoopForm.h"

#include "passes/graph/Eligibility.h"
#include "passes/graph/LoopBodies.h"
#include "passes/graph/StepSlice.h"
#include "passes/plan/ir/Phases.h"
#include "passes/target/AccessBytes.h"

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

/// Returns why a step does not find the parts of tensors that it reads or collects where they lie, or an empty string.
static std::string whyNotInPlace(Block &body, scf::ForOp loop) {
  for (Operation &op : body) {
    auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op);
    bool isInvariant = llvm::all_of(op.getOperands(), [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
    if (!slice || isInvariant || !llvm::is_contained(slice.getStaticOffsets(), ShapedType::kDynamic))
      continue;
    auto insert = dyn_cast<tensor::InsertSliceOp>(op);
    auto whole = insert ? insert.getDestType() : dyn_cast<RankedTensorType>(op.getOperand(0).getType());
    std::optional<StepSlice> part = whole ? stepSlice(slice, whole.getShape(), loop) : std::nullopt;
    int64_t size = whole ? tile::elementBytes(whole.getElementType()) : 1;
    if (!part || part->offset * size % kAccessBytes != 0 || part->stride * size % kAccessBytes != 0)
      return "it reads or collects parts of a tensor that are no neighbours, or do not begin at multiples of " +
             std::to_string(kAccessBytes) + " bytes";
  }
  return "";
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
  return whyNotInPlace(*body.block, cast<scf::ForOp>(body.loop));
}

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

#include "llvm/ADT/DenseSet.h"

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

/// Returns the slice into which a loop collects a value in each step, unless the kernel computes it, or null.
static tensor::InsertSliceOp collecting(Value value, const BlockGraph &body, const Plan &plan) {
  auto insert = value.getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || insert->getBlock() != body.block)
    return {};
  bool isLeft = llvm::any_of(plan.left, [&](const LeftOp &left) { return body.graph.exprs()[left.id].op == insert; });
  bool isOpaque = llvm::any_of(body.graph.opaque(), [&](const OpaqueOp &opaque) { return opaque.op == insert; });
  return isLeft || isOpaque ? insert : tensor::InsertSliceOp();
}

/// Returns why the tensors that the loop carries are not what a kernel can hand on to its next step, or an empty string.
static std::string whyNotCarried(const BlockGraph &body, const Plan &plan, scf::ForOp loop) {
  llvm::DenseSet<Value> collected, states;
  for (auto [number, next] : llvm::enumerate(loop.getYieldedValues())) {
    Value value = throughViews(next);
    tensor::InsertSliceOp insert = collecting(value, body, plan);
    Value source = insert ? throughViews(insert.getSource()) : value;
    if (!source.getDefiningOp() || source.getDefiningOp()->getBlock() != body.block)
      return "tensor " + std::to_string(number) + " of those that it carries is no result of the kernel";
    if (!(insert ? collected : states).insert(source).second)
      return "a result is carried twice";
    BlockArgument whole = loop.getRegionIterArg(number);
    if (insert && (throughViews(insert.getDest()) != whole || !whole.hasOneUse() || !insert->hasOneUse()))
      return "a tensor that it collects is read in the loop";
    if (insert && !throughViews(loop.getInitArgs()[number]).getDefiningOp<tensor::EmptyOp>())
      return "a tensor that it collects has elements before the loop";
  }
  return "";
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
  if (llvm::any_of(plan.kernels.front().groups, [](const GroupPlan &group) { return group.cluster > 1; }))
    return "its blocks form clusters";
  auto loop = cast<scf::ForOp>(body.loop);
  std::string why = whyNotCarried(body, plan, loop);
  return why.empty() ? whyNotInPlace(*body.block, loop) : why;
}

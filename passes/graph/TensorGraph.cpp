// A single walk over the block builds everything. Dependence is the closure over all ops of the block, opaque ones
// included, because a path through an op that is left alone is as binding as any other.
#include "passes/graph/TensorGraph.h"

#include "passes/graph/LoopBodies.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tilewright {

namespace {
/// Returns the op of `block` that is `op` or contains it; null if there is none.
Operation *ancestorIn(Block &block, Operation *op) { return block.findAncestorOpInBlock(*op); }

/// Returns true if all uses of a fill initialize accumulators. Such a fill is part of the expressions that start from
/// it.
bool onlyStartsAccumulators(Operation *op) {
  return isa<linalg::FillOp>(op) && llvm::all_of(op->getUses(), [](OpOperand &use) {
           auto user = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
           return user && user.isDpsInit(&use);
         });
}

/// Returns true if an op makes a tensor that is used. IREE's dialects around a program only pass tensors on.
bool makesTensor(Operation &op) {
  auto isUsed = [](Value result) { return isa<TensorType>(result.getType()) && !result.use_empty(); };
  return llvm::any_of(op.getResults(), isUsed) && !op.hasTrait<OpTrait::ConstantLike>() &&
         !isa<tensor::EmptyOp, tensor::CastOp>(op) &&
         !llvm::is_contained({"util", "flow", "hal"}, op.getName().getDialectNamespace());
}

/// Visits the values an op needs: its operands and those that its regions capture.
template <typename Callback> void forEachUse(Operation &op, Callback callback) {
  op.walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      callback(operand);
  });
}
} // namespace

TensorGraph TensorGraph::build(Block &block) {
  TensorGraph graph;
  for (Operation &op : block) {
    if (onlyStartsAccumulators(&op))
      continue;
    std::string reason;
    FailureOr<TensorExpr> expr = describe(&op, &reason);
    if (failed(expr)) {
      if (isLoop(&op))
        reason = "it repeats its body, whose ops are planned on their own";
      if (makesTensor(op))
        graph.opaque_.push_back({&op, reason});
      continue;
    }
    graph.index_[&op] = graph.exprs_.size();
    graph.exprs_.push_back(std::move(*expr));
  }
  size_t size = graph.exprs_.size();
  graph.outEdges_.resize(size);
  graph.inEdges_.resize(size);
  for (unsigned consumer = 0; consumer < size; ++consumer)
    for (auto [input, access] : llvm::enumerate(graph.exprs_[consumer].inputs)) {
      int64_t producer = access.tensor.getDefiningOp() ? graph.indexOf(access.tensor.getDefiningOp()) : -1;
      if (producer < 0 || access.gathered)
        continue;
      unsigned edge = graph.edges_.size();
      unsigned result = cast<OpResult>(access.tensor).getResultNumber();
      graph.edges_.push_back({static_cast<unsigned>(producer), result, consumer, static_cast<unsigned>(input)});
      graph.outEdges_[producer].push_back(edge);
      graph.inEdges_[consumer].push_back(edge);
    }

  // Program order is a topological order, so one pass computes the closure. Ops that depend on no expression, such as
  // constants and parameters, have no entry.
  llvm::DenseMap<Operation *, llvm::BitVector> reach;
  for (Operation &op : block) {
    llvm::BitVector from;
    forEachUse(op, [&](Value value) {
      Operation *definition = value.getDefiningOp();
      auto known = definition ? reach.find(ancestorIn(block, definition)) : reach.end();
      if (known != reach.end())
        from |= known->second;
    });
    if (int64_t own = graph.indexOf(&op); own >= 0) {
      from.resize(size);
      graph.reach_.push_back(from);
      from.set(own);
    }
    if (!from.empty())
      reach[&op] = std::move(from);
  }
  return graph;
}

int64_t TensorGraph::indexOf(Operation *op) const {
  auto found = index_.find(op);
  return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
}

bool TensorGraph::escapes(unsigned expr) const {
  for (OpOperand &use : exprs_[expr].op->getUses()) {
    int64_t user = indexOf(use.getOwner());
    // An initial accumulator is an operand but not an input, so that use is not an edge either.
    bool reads = user >= 0 && llvm::any_of(exprs_[user].inputs, [&](const TensorAccess &access) {
                   return access.operand == use.getOperandNumber();
                 });
    if (!reads)
      return true;
  }
  return false;
}

int64_t TensorGraph::gathersFrom(unsigned expr, llvm::function_ref<bool(unsigned)> isMember) const {
  for (const TensorAccess &access : exprs_[expr].inputs) {
    int64_t producer =
        access.gathered && access.tensor.getDefiningOp() ? indexOf(access.tensor.getDefiningOp()) : int64_t(-1);
    if (producer >= 0 && isMember(producer))
      return producer;
  }
  return -1;
}

bool TensorGraph::dependsOn(unsigned to, unsigned from) const { return reach_[to][from]; }

SmallVector<TensorReuse> TensorGraph::reuse() const {
  llvm::MapVector<Value, llvm::SmallSetVector<unsigned, 4>> readers;
  for (auto [index, expr] : llvm::enumerate(exprs_))
    for (const TensorAccess &access : expr.inputs)
      readers[access.tensor].insert(index);
  SmallVector<TensorReuse> reused;
  for (auto &[tensor, by] : readers) {
    if (by.size() < 2)
      continue;
    TensorReuse entry{tensor, SmallVector<unsigned>(by.begin(), by.end()), false, false};
    for (unsigned earlier : by)
      for (unsigned later : by)
        if (earlier < later)
          (dependsOn(later, earlier) ? entry.temporal : entry.spatial) = true;
    reused.push_back(std::move(entry));
  }
  return reused;
}

LiveRange TensorGraph::liveRange(Value tensor) const {
  LiveRange range{tensor.getDefiningOp() ? indexOf(tensor.getDefiningOp()) : -1, -1};
  range.last = range.first;
  for (OpOperand &use : tensor.getUses()) {
    int64_t user = indexOf(use.getOwner());
    range.last = std::max<int64_t>(range.last, user < 0 ? static_cast<int64_t>(exprs_.size()) : user);
  }
  return range;
}

} // namespace tilewright

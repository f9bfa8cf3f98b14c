#include "passes/plan/forms/DecideKeySplit.h"

#include "passes/cost/Confidence.h"
#include "passes/normalize/forms/SplitKeys.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLeastKeys = 64; ///< least number of keys in a part that is tried, chosen by hand

/// Predicts a group in a function of its own.
class GroupTrial {
public:
  GroupTrial(const TensorGraph &graph, const KeyGroup &group) : module(ModuleOp::create(last(graph, group)->getLoc())) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    Location loc = module->getLoc();
    function = func::FuncOp::create(builder, loc, "trial", builder.getFunctionType({}, {}));
    body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    for (const KeyMember &member : group.members) {
      clone(builder, graph, group, graph.exprs()[member.expr].op);
      if (member.expr == group.maximum)
        maximum = mapping.lookup(graph.exprs()[member.expr].op->getResult(0)).getDefiningOp();
    }
    SmallVector<Value> results;
    for (const KeyMember &member : group.members)
      if (member.sums)
        results.push_back(mapping.lookup(graph.exprs()[member.expr].op->getResult(0)));
    func::ReturnOp::create(builder, loc, results);
    function.setFunctionType(builder.getFunctionType(body->getArgumentTypes(), TypeRange(ValueRange(results))));
  }

  /// Returns the predicted seconds. Declines if the planner does not take the whole group.
  OrDeclined<double> seconds(const Target &target, int64_t parts, bool gridSync) {
    if (parts > 1) {
      TensorGraph graph = TensorGraph::build(*body);
      KeyGroup group = findKeyGroup(graph, graph.indexOf(maximum));
      if (!group.reason.empty())
        return Declined{group.reason, "another group"};
      splitKeys(graph, group, parts);
      eraseUnused(*body);
    }
    TensorGraph graph = TensorGraph::build(*body);
    PlanOptions options;
    options.gridSync = gridSync;
    return plannedSeconds(graph, target, options);
  }

private:
  static Operation *last(const TensorGraph &graph, const KeyGroup &group) {
    return graph.exprs()[group.members.back().expr].op;
  }

  /// Clones an op with its inits and the views that it reads through. Its other operands become arguments.
  void clone(OpBuilder &builder, const TensorGraph &graph, const KeyGroup &group, Operation *op) {
    if (mapping.contains(op->getResult(0)))
      return;
    for (Value operand : op->getOperands()) {
      if (mapping.contains(operand))
        continue;
      Operation *producer = operand.getDefiningOp();
      int64_t id = producer ? graph.indexOf(producer) : -1;
      bool isView = id >= 0 && graph.exprs()[id].kind == ExprKind::movement && graph.exprs()[id].inputs.size() == 1;
      if (producer && (isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(producer) || isView))
        clone(builder, graph, group, producer);
      else
        mapping.map(operand, body->addArgument(operand.getType(), operand.getLoc()));
    }
    builder.clone(*op, mapping);
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  Block *body = nullptr;
  IRMapping mapping;
  Operation *maximum = nullptr;
};
} // namespace

FormChoice tilewright::decideKeySplit(const TensorGraph &graph, const KeyGroup &group, const Target &target,
                                      bool gridSync) {
  FormChoice best;
  best.form = tile::Form::partsOfRows;
  best.numerics.reassociates = true;
  const TensorExpr &maximum = graph.exprs()[group.maximum];
  if (maximum.domainSize() / group.keys > 2 * target.cores) {
    best.reason = "its rows fill the device";
    best.wouldChange = "fewer rows, or a device with more cores";
    return best;
  }
  OrDeclined<double> one = GroupTrial(graph, group).seconds(target, 1, gridSync);
  if (!one) {
    std::tie(best.reason, best.wouldChange) = std::tie(one.why().reason, one.why().wouldChange);
    return best;
  }
  best.otherwiseSeconds = best.seconds = *one;
  best.reason = "no split of its keys is predicted to take clearly less time";
  best.wouldChange = "more keys, or a device for which parts are predicted to take clearly less time";
  for (int64_t parts = 2; group.keys / parts >= kLeastKeys; parts *= 2) {
    if (group.keys % parts != 0)
      break;
    OrDeclined<double> seconds = GroupTrial(graph, group).seconds(target, parts, gridSync);
    if (seconds && (best.parameters.empty() || *seconds < best.seconds)) {
      best.parameters["parts"] = {parts};
      best.seconds = *seconds;
    }
  }
  // The prediction is of the whole group, so its error is smaller than that of a reduction alone.
  best.taken = isFaster(best.seconds, *one, target.costs.confidence.barriers);
  if (best.taken) {
    best.reason = "parts of the keys are predicted to take clearly less time";
    best.wouldChange.clear();
  }
  return best;
}

std::string tilewright::whyNotSplitKeys(const KeyGroup &group, const FormChoice &choice) {
  ArrayRef<int64_t> parts = choice.values("parts");
  if (choice.parameters.size() != 1 || parts.size() != 1 || parts[0] < 2 || group.keys % parts[0] != 0)
    return llvm::formatv("its parameter must be a number of parts that divides {0} keys", group.keys);
  return "";
}

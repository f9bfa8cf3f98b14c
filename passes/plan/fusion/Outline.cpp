// Clones expressions, together with the constants that they use.
#include "passes/plan/fusion/Outline.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/space/IterationSpace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

namespace {
class Outliner {
public:
  Outliner(const TensorGraph &graph, ArrayRef<unsigned> exprs) : graph(graph) {
    choice.exprs.assign(exprs.begin(), exprs.end());
    for (unsigned expr : exprs)
      members.insert(graph.exprs()[expr].op);
    for (Value input : groupInputs(graph, choice))
      arguments.insert(input);
  }

  OwningOpRef<ModuleOp> outline() {
    for (Operation *op : members)
      collectArguments(op);
    std::vector<Value> outputs = groupOutputs(graph, choice);
    MLIRContext *context = members.front()->getContext();
    Location loc = UnknownLoc::get(context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto type = builder.getFunctionType(TypeRange(arguments.getArrayRef()), TypeRange(ValueRange(outputs)));
    auto function = func::FuncOp::create(builder, loc, "subprogram", type);
    markWeights(builder, function);
    Block *body = function.addEntryBlock();
    for (auto [outer, inner] : llvm::zip(arguments, body->getArguments()))
      values.map(outer, inner);
    builder.setInsertionPointToEnd(body);
    for (Operation *op : members)
      clone(builder, op);
    func::ReturnOp::create(builder, loc, llvm::map_to_vector(outputs, [&](Value v) { return values.lookup(v); }));
    return module;
  }

private:
  /// Returns the values that an op uses, including those used in its regions.
  static llvm::SetVector<Value> usesOf(Operation *op) {
    llvm::SetVector<Value> uses(llvm::from_range, op->getOperands());
    getUsedValuesDefinedAbove(op->getRegions(), uses);
    return uses;
  }

  /// Returns true for a value that is cloned into the function instead of becoming an argument: constants and initial
  /// tensors of accumulators.
  bool comesAlong(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && !arguments.contains(value) && graph.indexOf(op) < 0 && isMemoryEffectFree(op);
  }

  void collectArguments(Operation *op) {
    for (Value value : usesOf(op))
      if (comesAlong(value))
        collectArguments(value.getDefiningOp());
      else if (!members.contains(value.getDefiningOp()))
        arguments.insert(value);
  }

  /// Marks arguments that are weights: a measurement must read them from memory, as a large model does in each run.
  void markWeights(OpBuilder &builder, func::FuncOp function) const {
    std::vector<bool> atLoad = computedAtLoad(graph);
    for (auto [index, argument] : llvm::enumerate(arguments))
      if (isKnownAtLoad(graph, atLoad, argument))
        function.setArgAttr(index, kWeightAttr, builder.getUnitAttr());
  }

  void clone(OpBuilder &builder, Operation *op) {
    for (Value value : usesOf(op))
      if (!values.contains(value))
        clone(builder, value.getDefiningOp());
    builder.clone(*op, values);
  }

  const TensorGraph &graph;
  GroupChoice choice;
  llvm::SetVector<Operation *> members;
  llvm::SetVector<Value> arguments;
  IRMapping values;
};
} // namespace

OwningOpRef<ModuleOp> tilewright::outline(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  return Outliner(graph, exprs).outline();
}

std::string tilewright::outlinedText(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  outline(graph, exprs)->print(stream);
  return text;
}

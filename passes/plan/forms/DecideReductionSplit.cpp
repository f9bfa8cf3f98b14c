#include "passes/plan/forms/DecideReductionSplit.h"
#include "passes/plan/scopes/PlanGroup.h"

#include "passes/cost/Confidence.h"
#include "passes/graph/Contraction.h"
#include "passes/plan/fusion/Explorers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Bounds on the number of parts of a reduction that are tried, chosen by hand.
constexpr int64_t kFewestParts = 16, kMostParts = 16384;
/// Least number of parts of a contraction, whose blocks have more work, and least K of a part, below which a block
/// spends its time on prologue and epilogue.
constexpr int64_t kFewestOfProducts = 2, kLeastK = 128;

/// Predicts cuts of a reduction in a function of its own.
class Trial {
public:
  Trial(linalg::GenericOp op, const Target &target, bool gridSync)
      : target(target), gridSync(gridSync), module(ModuleOp::create(op.getLoc())) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto type = builder.getFunctionType(TypeRange(ValueRange(SmallVector<Value>(op.getDpsInputs()))), {});
    function = func::FuncOp::create(builder, op.getLoc(), "trial", type);
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    IRMapping mapping;
    for (auto [input, argument] : llvm::zip(op.getDpsInputOperands(), body->getArguments()))
      mapping.map(input->get(), argument);
    for (Value init : op.getDpsInits()) {
      auto type = cast<RankedTensorType>(init.getType());
      Value empty = tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
      Value start = arith::ConstantOp::create(builder, op.getLoc(), constantElement(init));
      mapping.map(init, linalg::FillOp::create(builder, op.getLoc(), start, empty).getResult(0));
    }
    reduction = cast<linalg::GenericOp>(builder.clone(*op, mapping));
    for (auto [i, argument] : llvm::enumerate(body->getArguments())) // an input that is read twice has two arguments
      reduction.getDpsInputOperand(i)->set(argument);
  }

  double oneSeconds() {
    TensorGraph graph = TensorGraph::build(function.front());
    if (multiplies(reduction)) { // its tiles may be shared by blocks, which only a whole plan predicts
      OrDeclined<double> seconds = plannedSeconds(graph, target, options());
      return seconds ? *seconds : 0;
    }
    OrDeclined<PlannedGroup> part =
        planGroup(GroupProblem(graph, target, NumericsMode::standard), static_cast<unsigned>(graph.indexOf(reduction)));
    return part ? part->predicted.seconds : 0;
  }

  /// Returns the predicted seconds of both phases, in two launches or in one with a grid barrier between them.
  /// Declines if the planner declines a phase.
  OrDeclined<double> twoSeconds(ArrayRef<SplitDim> dims) {
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto trial = cast<func::FuncOp>(builder.clone(*function));
    auto whole = cast<linalg::GenericOp>(trial.front().back());
    builder.setInsertionPointToEnd(&trial.front());
    SplitViews views;
    func::ReturnOp::create(builder, whole.getLoc(), buildTwoPhases(builder, whole, dims, views).results);
    whole.erase();
    OrDeclined<double> seconds = plannedSeconds(TensorGraph::build(trial.front()), target, options());
    trial.erase();
    return seconds;
  }

  linalg::GenericOp reduction;

private:
  PlanOptions options() const {
    PlanOptions options;
    options.gridSync = gridSync;
    return options;
  }

  const Target &target;
  bool gridSync;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

/// Returns the numbers of parts to try for a dim, about a factor of two apart. They divide the extent, and preferably
/// leave parts of whole vectors.
SmallVector<int64_t> partCounts(int64_t extent, int64_t most) {
  SmallVector<int64_t> counts;
  int64_t last = 0;
  for (int64_t wanted = 2; wanted <= std::min(most, extent / 2); wanted *= 2) {
    int64_t best = 0;
    for (int64_t count = wanted; count > std::max(last, wanted / 2); --count)
      if (extent % count == 0 && (best == 0 || (extent / count % 8 == 0 && extent / best % 8 != 0)))
        best = count;
    if (best > 0)
      counts.push_back(last = best);
  }
  return counts;
}
} // namespace

FormChoice tilewright::decideSplit(linalg::GenericOp op, const Target &target, bool gridSync) {
  FormChoice best;
  best.form = tile::Form::twoPhaseReduction;
  best.numerics = numericsOfTwoPhases(op);
  best.wouldChange = "a reduction or a device for which two phases are predicted to take clearly less time";
  bool products = multiplies(op);
  Trial trial(op, target, gridSync);
  best.otherwiseSeconds = trial.oneSeconds();
  double least = (products ? 1 : 2) * (gridSync ? target.gpu.gridBarrierSeconds : target.launchSeconds);
  if (best.otherwiseSeconds < target.launchSeconds + least) {
    best.seconds = best.otherwiseSeconds;
    best.reason = "it takes too little time";
    return best;
  }
  int64_t fewest = products ? kFewestOfProducts : kFewestParts, leastK = products ? kLeastK : 1;
  SmallVector<int64_t> extents = trial.reduction.getStaticLoopRanges();
  SmallVector<SplitDim> outer;
  int64_t count = 1;
  auto consider = [&](ArrayRef<SplitDim> dims, int64_t parts) {
    if (parts < fewest || parts > kMostParts)
      return;
    OrDeclined<double> seconds = trial.twoSeconds(dims);
    if (seconds && (best.parameters.empty() || *seconds < best.seconds)) {
      best.seconds = *seconds;
      setSplit(best, dims);
    }
  };
  for (unsigned dim = 0; dim < extents.size() && count <= kMostParts; ++dim) {
    if (!isReduced(op, dim) || extents[dim] == 1)
      continue;
    SmallVector<SplitDim> dims(outer);
    dims.push_back({dim, 0});
    if (isCuttable(op, dim))
      for (int64_t parts : partCounts(extents[dim], std::min(kMostParts / count, extents[dim] / leastK))) {
        dims.back().parts = parts;
        consider(dims, count * parts);
      }
    outer.push_back({dim, extents[dim]});
    count *= extents[dim];
    bool reducesMore = llvm::any_of(llvm::seq<unsigned>(dim + 1, extents.size()),
                                    [&](unsigned later) { return isReduced(op, later) && extents[later] > 1; });
    if (reducesMore)
      consider(outer, count);
  }
  if (best.parameters.empty())
    best.seconds = best.otherwiseSeconds;
  // The prediction is of the reduction alone: its neighbours may no longer share its kernel.
  best.taken = isFaster(best.seconds, best.otherwiseSeconds, target.costs.confidence.kernels);
  best.reason = best.taken ? "two phases are predicted to take clearly less time"
                           : "no cut of its dims is predicted to take clearly less time";
  if (best.taken)
    best.wouldChange.clear();
  return best;
}

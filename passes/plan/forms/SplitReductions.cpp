// Splits reductions into two phases where one phase would leave most of a GPU idle (Souffle 2.3). SplitKeys.h builds
// the split of sums relative to a maximum along the same dim, and TwoPhaseReduction.h that of all others. Reductions
// over the same domain are split alike, so that those of one tensor still share a kernel.
//
// A row stays whole if it fits a block's memory and is read again for each of its elements once the result is known (a
// softmax, a norm): the block keeps the row, while parts would be read again behind a barrier.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/graph/FormPass.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/plan/forms/DecideKeySplit.h"
#include "passes/plan/forms/DecideReductionSplit.h"
#include "passes/normalize/forms/SplitKeys.h"
#include "passes/plan/fusion/FusionProblem.h"
#include "passes/support/EraseUnused.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"

namespace {
class SplitReductions : public FormPass<impl::SplitReductionsBase<SplitReductions>> {
public:
  using FormPass::FormPass;

private:
  /// Returns a key that is equal for reductions that are split alike: the domain and, for contractions, also the maps
  /// and types, so that equal contractions are predicted once.
  static std::string kindOf(linalg::GenericOp op) {
    std::string kind;
    llvm::raw_string_ostream os(kind);
    for (auto [extent, iterator] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
      os << (iterator == utils::IteratorType::reduction ? "-" : "+") << extent;
    if (multiplies(op)) {
      os << op.getIndexingMaps();
      llvm::interleaveComma(op->getOperandTypes(), os);
    }
    return kind;
  }

  /// Returns the op, or a generic copy of a named op next to it.
  static linalg::GenericOp genericOf(linalg::LinalgOp op) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
      return generic;
    IRRewriter rewriter(op);
    auto copy = cast<linalg::LinalgOp>(rewriter.clone(*op));
    return *linalg::generalizeNamedOp(rewriter, copy);
  }

  /// Returns the bytes of an input's row, along the dims that the op reduces, or nothing if these are not innermost.
  static std::optional<int64_t> rowBytes(linalg::GenericOp op, OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    auto isReduced = [&](AffineExpr index) {
      auto dim = dyn_cast<AffineDimExpr>(index);
      return dim && op.getIteratorTypesArray()[dim.getPosition()] == utils::IteratorType::reduction;
    };
    if (map.getNumResults() == 0 || !isReduced(map.getResults().back()))
      return std::nullopt;
    int64_t bytes = tile::elementBytes(getElementTypeOrSelf(input->get().getType()));
    for (AffineExpr index : llvm::make_filter_range(map.getResults(), isReduced))
      bytes *= extents[cast<AffineDimExpr>(index).getPosition()];
    return bytes;
  }

  static int64_t elementsOf(Value tensor) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    return type ? type.getNumElements() : 1;
  }

  static bool isElementwise(Operation *op) {
    auto structured = dyn_cast_or_null<linalg::LinalgOp>(op);
    return structured && structured.getNumReductionLoops() == 0;
  }

  /// Returns true if an elementwise op that depends on the result reads the input, or a tensor of the same size from
  /// which elementwise ops compute the input.
  static bool isReadBehind(linalg::LinalgOp op, Value input) {
    llvm::SetVector<Value> sources;
    sources.insert(input);
    for (size_t i = 0; i < sources.size(); ++i)
      if (Operation *producer = sources[i].getDefiningOp(); isElementwise(producer))
        for (Value source : cast<linalg::LinalgOp>(producer).getDpsInputs())
          if (elementsOf(source) == elementsOf(input))
            sources.insert(source);
    llvm::SetVector<Operation *> readers;
    for (Value source : sources)
      for (Operation *user : source.getUsers())
        if (isElementwise(user) && user->getBlock() == op->getBlock())
          readers.insert(user);
    return dependsAny(readers.getArrayRef(), op);
  }

  /// Returns true if one of the readers, which are ops of the same block, depends on the op. Only ops in front of the
  /// last reader are looked at, so a model of many layers takes no longer for each.
  static bool dependsAny(ArrayRef<Operation *> readers, Operation *op) {
    if (readers.empty())
      return false;
    Operation *last = *llvm::max_element(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    llvm::SetVector<Operation *> behind;
    behind.insert(op);
    for (size_t i = 0; i < behind.size(); ++i)
      for (Operation *user : behind[i]->getUsers())
        if (Operation *own = op->getBlock()->findAncestorOpInBlock(*user); own && !last->isBeforeInBlock(own))
          behind.insert(user);
    return llvm::any_of(readers, [&](Operation *reader) { return behind.contains(reader); });
  }

  /// Returns why a block keeps the rows of the reduction, or an empty string if it does not.
  static std::string whyResident(linalg::LinalgOp named, linalg::GenericOp op, const Target &machine) {
    for (OpOperand *input : op.getDpsInputOperands()) {
      std::optional<int64_t> bytes = rowBytes(op, input);
      if (bytes && *bytes <= machine.blockBytes - machine.costs.gpu.besideRowBytes && isReadBehind(named, input->get()))
        return "a block keeps its rows of " + std::to_string(*bytes) + " bytes for the ops that read them again";
    }
    return "";
  }

  /// Decides for a reduction that can be split.
  FormChoice decide(linalg::LinalgOp named, linalg::GenericOp op, const Target &machine) {
    FormChoice whole;
    whole.reason = multiplies(op) ? "" : whyResident(named, op, machine);
    if (!whole.reason.empty()) {
      whole.form = tile::Form::twoPhaseReduction;
      whole.numerics = numericsOfTwoPhases(op);
      whole.wouldChange = "rows that no block can keep";
      return whole;
    }
    std::string kind = kindOf(op);
    auto known = decided.find(kind);
    if (known != decided.end() && canCut(op, splitOf(known->second)))
      return known->second;
    FormChoice choice = decideSplit(op, machine, gridSync);
    if (choice.taken || multiplies(op))
      decided[kind] = choice;
    return choice;
  }

  /// Splits the group of each maximum along a dim, one after another. The graph is built again only after a split, so
  /// that a model of many layers takes no longer for each.
  LogicalResult splitAlongKeys(Block &block, const Target &machine) {
    SmallVector<Operation *> maxima;
    TensorGraph graph = TensorGraph::build(block);
    for (const TensorExpr &expr : graph.exprs())
      if (isRowMaximum(expr, /*least=*/0) && isa<linalg::LinalgOp>(expr.op))
        maxima.push_back(expr.op);
    for (Operation *maximum : maxima) {
      KeyGroup group = findKeyGroup(graph, graph.indexOf(maximum));
      if (!group.reason.empty()) {
        leave(maximum, "keys in one part: " + group.reason);
        continue;
      }
      auto [known, isNew] = decidedKeys.try_emplace(kindOfGroup(graph, group));
      if (isNew)
        known->second = decideKeySplit(graph, group, machine, gridSync);
      FailureOr<FormChoice> choice = settle(
          known->second, maximum, [&](const FormChoice &choice) { return whyNotSplitKeys(group, choice); });
      if (failed(choice))
        return failure();
      if (choice->taken) {
        splitKeys(graph, group, choice->values("parts").front());
        graph = TensorGraph::build(block);
      }
    }
    eraseUnused(block);
    return success();
  }

  void runOnOperation() override {
    decided.clear();
    decidedKeys.clear();
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    if (!machine->traits.threadBlocks)
      return;
    if (std::string why = whyIncomplete(*machine); !why.empty()) {
      getOperation().emitError("no plan: ") << why;
      return signalPassFailure();
    }
    for (Block &block : getOperation().getBody())
      if (failed(splitAlongKeys(block, *machine)))
        return;
    SmallVector<linalg::LinalgOp> reductions;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isa<linalg::GenericOp, linalg::ContractionOpInterface>(op.getOperation()) && op.getNumReductionLoops() > 0 &&
          op.hasPureTensorSemantics())
        reductions.push_back(op);
    });
    SplitViews views;
    SmallVector<Operation *> toErase;
    for (linalg::LinalgOp named : reductions) {
      linalg::GenericOp op = genericOf(named);
      if (op != named)
        toErase.push_back(op);
      if (std::string why = whyNotSplittable(op); !why.empty()) {
        leave(named, "one phase: " + why);
        continue;
      }
      FailureOr<FormChoice> choice =
          settle(decide(named, op, *machine), named.getOperation(),
                 [&](const FormChoice &choice) { return whyNotSplit(op, choice); });
      if (failed(choice))
        return;
      if (!choice->taken)
        continue;
      OpBuilder builder(op);
      named->replaceAllUsesWith(buildTwoPhases(builder, op, splitOf(*choice), views).results);
      toErase.push_back(named);
    }
    for (Operation *op : toErase)
      op->erase();
  }

  std::map<std::string, FormChoice> decided;     ///< by kindOf()
  std::map<std::string, FormChoice> decidedKeys; ///< by kindOfGroup()
};
} // namespace
} // namespace tilewright

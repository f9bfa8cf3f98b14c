#include "passes/normalize/forms/HorizontalMerge.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/ElementBytes.h"
#include "passes/graph/Eligibility.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/target/MicroKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// The structure
//===----------------------------------------------------------------------===//

int64_t ColumnLayout::allSlots() const { return llvm::sum_of(slots); }

std::string ColumnLayout::toString() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << heads << " x (";
  llvm::interleave(slots, os, " + ");
  os << ") x " << width;
  return text;
}

FormChoice HorizontalMerge::byRule() const {
  FormChoice choice;
  choice.form = tile::Form::mergedContractions;
  choice.taken = savedSeconds > 0;
  choice.parameters = {{"heads", {columns.heads}}, {"width", {columns.width}}};
  std::string seconds = llvm::formatv("{0:f3} us", std::abs(savedSeconds) * 1e6);
  if (choice.taken) {
    choice.reason = "fewer launches and reads of the shared tensor save " + seconds;
  } else {
    choice.reason = "padding columns " + columns.toString() + " to whole register blocks costs " + seconds +
                    " more than fewer launches save";
    choice.wouldChange = "columns that fill register blocks";
  }
  return choice;
}

std::string HorizontalMerge::layOut(const TensorGraph &graph, const FormChoice &choice) {
  ArrayRef<int64_t> heads = choice.values("heads"), width = choice.values("width");
  if (choice.parameters.size() != 2 || heads.size() != 1 || width.size() != 1 || heads[0] < 1 || width[0] < 1)
    return "its parameters must be a positive number of heads and their width";
  columns = {heads[0], width[0], {}};
  std::vector<bool> atLoad = computedAtLoad(graph, /*repeatsWeights=*/true);
  for (unsigned id : contractions) {
    int64_t n = graph.exprs()[id].domain[blockRoles(graph, atLoad, id)->n];
    columns.slots.push_back(n / columns.heads / columns.width);
    if (columns.heads * columns.slots.back() * columns.width != n)
      return llvm::formatv("{0} columns are no {1} heads of whole slots of {2}", n, columns.heads, columns.width);
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Questions about ops
//===----------------------------------------------------------------------===//

int64_t tilewright::resultAxis(Operation *op, int64_t loop) {
  auto structured = cast<linalg::LinalgOp>(op);
  AffineMap map = structured.getMatchingIndexingMap(structured.getDpsInitOperand(0));
  for (auto [axis, index] : llvm::enumerate(map.getResults()))
    if (pureDim(index) == loop)
      return axis;
  return -1;
}

std::optional<StepInput> tilewright::stepInput(Operation *step, Value before, int64_t axis) {
  auto structured = dyn_cast<linalg::LinalgOp>(step);
  if (!structured || structured.getNumReductionLoops() > 0 || structured.getNumDpsInits() != 1)
    return std::nullopt;
  for (OpOperand *operand : structured.getDpsInputOperands())
    if (operand->get() == before)
      if (int64_t loop = pureDim(structured.getMatchingIndexingMap(operand).getResult(axis)); loop >= 0)
        return StepInput{operand->getOperandNumber(), loop};
  return std::nullopt;
}

static bool sameBodies(Operation *a, Operation *b) {
  return OperationEquivalence::isRegionEquivalentTo(&a->getRegion(0), &b->getRegion(0),
                                                    OperationEquivalence::IgnoreLocations);
}

static double bytesOf(Value tensor) {
  return static_cast<double>(cast<RankedTensorType>(tensor.getType()).getNumElements() * elementBytesOf(tensor));
}

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// Returns the width of the innermost dim into which a reader splits dim `axis` of a tensor, such as into heads.
/// Returns 0 if no reader within `steps` ops does.
static int64_t headWidth(Value tensor, int64_t axis, unsigned steps) {
  if (axis < 0 || steps == 0)
    return 0;
  for (Operation *user : tensor.getUsers()) {
    int64_t found = 0;
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user)) {
      ReassociationIndices group = expand.getReassociationIndices()[axis];
      int64_t width = expand.getResultType().getDimSize(group.back());
      found = group.size() > 1 ? width : headWidth(expand, group.back(), steps - 1);
    } else if (std::optional<StepInput> input = stepInput(user, tensor, axis)) {
      found = headWidth(user->getResult(0), resultAxis(user, input->loop), steps - 1);
    }
    if (found > 0)
      return found;
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// The offers
//===----------------------------------------------------------------------===//

namespace {
/// A contraction that may be merged with others.
struct Candidate {
  unsigned id;
  ContractionRoles roles;
};

class MergeFinder {
public:
  MergeFinder(const TensorGraph &graph, const Target &target)
      : graph(graph), target(target), atLoad(computedAtLoad(graph, /*repeatsWeights=*/true)) {}

  HorizontalMerges run() {
    llvm::MapVector<Value, std::vector<Candidate>> byTensor;
    for (unsigned id = 0; id < graph.exprs().size(); ++id)
      if (std::optional<ContractionRoles> roles = blockRoles(graph, atLoad, id))
        byTensor[graph.exprs()[id].inputs[roles->lhsInput].tensor].push_back({id, *roles});
    for (auto &[tensor, candidates] : byTensor)
      for (std::vector<Candidate> rest = std::move(candidates); rest.size() > 1;)
        rest = takeGroup(rest);
    return std::move(found);
  }

private:
  static constexpr unsigned kStepsToHeads = 8; ///< most ops between a projection and the reshape into heads

  /// Offers the merge of the first candidate with those that go with it, and returns the others.
  std::vector<Candidate> takeGroup(ArrayRef<Candidate> candidates) {
    std::vector<Candidate> group = {candidates.front()}, rest;
    for (const Candidate &candidate : candidates.drop_front()) {
      std::string why = whyNotTogether(candidates.front(), candidate);
      if (why.empty())
        group.push_back(candidate);
      else
        rest.push_back(candidate);
      if (!why.empty())
        found.apart.push_back({candidates.front().id, candidate.id, std::move(why)});
    }
    if (group.size() > 1)
      offer(group);
    return rest;
  }

  const TensorExpr &exprOf(const Candidate &candidate) const { return graph.exprs()[candidate.id]; }
  TensorAccess weightsOf(const Candidate &candidate) const {
    return throughCopies(exprOf(candidate).inputs[candidate.roles.rhsInput]);
  }
  int64_t columnsOf(const Candidate &candidate) const { return exprOf(candidate).domain[candidate.roles.n]; }

  std::string whyNotTogether(const Candidate &first, const Candidate &second) const {
    const TensorExpr &a = exprOf(first), &b = exprOf(second);
    if (!hasConstantLanes(graph, atLoad, first.id, first.roles) ||
        !hasConstantLanes(graph, atLoad, second.id, second.roles))
      return "the tensor that one of them multiplies it with is computed in each call";
    SmallVector<int64_t> domain(b.domain);
    if (first.roles.n != second.roles.n || first.roles.lhsInput != second.roles.lhsInput ||
        a.domain.size() != domain.size() || a.reductions != b.reductions)
      return "their dims differ";
    domain[second.roles.n] = columnsOf(first);
    if (ArrayRef<int64_t>(a.domain) != ArrayRef<int64_t>(domain) ||
        a.inputs[first.roles.lhsInput].map != b.inputs[second.roles.lhsInput].map || a.results != b.results)
      return "their extents differ, or the maps of the shared tensor or the results do";
    TensorAccess left = weightsOf(first), right = weightsOf(second);
    if (left.map != right.map || !isProjection(left.map) || otherSizes(left, first) != otherSizes(right, second))
      return "the layouts of their weights differ";
    if (elementOf(left.tensor) != elementOf(right.tensor) ||
        elementOf(a.op->getResult(0)) != elementOf(b.op->getResult(0)))
      return "their element types differ";
    auto init = [](Operation *op) { return constantElement(cast<linalg::LinalgOp>(op).getDpsInits()[0]); };
    if (!sameBodies(a.op, b.op) || !init(a.op) || init(a.op) != init(b.op))
      return "their bodies or inits differ";
    return "";
  }

  /// Returns the shape of the weights, with 0 for the columns.
  SmallVector<int64_t> otherSizes(const TensorAccess &weights, const Candidate &candidate) const {
    SmallVector<int64_t> sizes(cast<RankedTensorType>(weights.tensor.getType()).getShape());
    for (auto [axis, index] : llvm::enumerate(weights.map.getResults()))
      if (pureDim(index) == candidate.roles.n)
        sizes[axis] = 0;
    return sizes;
  }

  /// Offers the merge with the best layout.
  void offer(ArrayRef<Candidate> group) {
    HorizontalMerge merge;
    for (const Candidate &candidate : group)
      merge.contractions.push_back(candidate.id);
    merge.savedSeconds = -std::numeric_limits<double>::infinity();
    for (const ColumnLayout &layout : layoutsOf(group))
      if (double saved = savedSeconds(group, layout); saved > merge.savedSeconds) {
        merge.savedSeconds = saved;
        merge.columns = layout;
      }
    extendEpilogue(merge, group);
    found.offers.push_back(std::move(merge));
  }

  /// Returns the layouts to choose from: by heads if readers split the columns so, and by the greatest common divisor.
  std::vector<ColumnLayout> layoutsOf(ArrayRef<Candidate> group) const {
    int64_t divisor = 0, head = 0;
    bool agree = true;
    for (const Candidate &candidate : group) {
      divisor = std::gcd(divisor, columnsOf(candidate));
      int64_t own = headWidth(exprOf(candidate).op->getResult(0), axisOf(candidate), kStepsToHeads);
      agree &= own == 0 || head == 0 || own == head;
      head = own ? own : head;
    }
    std::vector<ColumnLayout> layouts;
    if (agree && head > 0 && divisor % head == 0)
      layouts.push_back(layoutOf(group, divisor / head, head));
    layouts.push_back(layoutOf(group, 1, divisor));
    return layouts;
  }

  ColumnLayout layoutOf(ArrayRef<Candidate> group, int64_t heads, int64_t width) const {
    ColumnLayout layout{heads, width, {}};
    for (const Candidate &candidate : group)
      layout.slots.push_back(columnsOf(candidate) / heads / width);
    return layout;
  }

  int64_t axisOf(const Candidate &candidate) const { return resultAxis(exprOf(candidate).op, candidate.roles.n); }

  /// Returns the seconds saved against one kernel for each contraction: launches and reads of the shared tensor, minus
  /// the time for columns that pad register blocks. The estimate includes only what is certain; the plan decides later
  /// how the merged contraction is tiled.
  double savedSeconds(ArrayRef<Candidate> group, const ColumnLayout &layout) const {
    const TensorExpr &first = exprOf(group.front());
    int64_t block = lanesOfBlock(first), separate = 0;
    for (const Candidate &candidate : group)
      separate += llvm::alignTo(columnsOf(candidate), block);
    int64_t together = layout.heads * layout.allSlots() * llvm::alignTo(layout.width, block);
    double points = static_cast<double>(first.domainSize()) / columnsOf(group.front());
    TensorAccess weights = weightsOf(group.front());
    double weightBytes = bytesOf(weights.tensor) / columnsOf(group.front());
    double bandwidth = target.level(tile::Space::global).bandwidth;
    double column = points * 2 / target.flopsPerSecond + weightBytes / bandwidth;
    double shared = bytesOf(first.inputs[group.front().roles.lhsInput].tensor) / bandwidth;
    return (group.size() - 1) * (target.launchSeconds + shared) - (together - separate) * column;
  }

  int64_t lanesOfBlock(const TensorExpr &contraction) const {
    int64_t bits = elementOf(contraction.op->getResult(0)).getIntOrFloatBitWidth();
    return registerBlock(target.vectorRegisters).vectors * target.vectorBytes * 8 / bits;
  }

  //===--------------------------------------------------------------------===//
  // Elementwise ops that follow all contractions alike
  //===--------------------------------------------------------------------===//

  void extendEpilogue(HorizontalMerge &merge, ArrayRef<Candidate> group) const {
    SmallVector<Value> values;
    for (const Candidate &candidate : group)
      values.push_back(exprOf(candidate).op->getResult(0));
    for (int64_t axis = axisOf(group.front()); axis >= 0;) {
      std::optional<std::vector<unsigned>> step = nextStep(values, axis);
      if (!step)
        return;
      for (auto [value, id] : llvm::zip(values, *step)) {
        axis = resultAxis(graph.exprs()[id].op, stepInput(graph.exprs()[id].op, value, axis)->loop);
        value = graph.exprs()[id].op->getResult(0);
      }
      merge.epilogue.push_back(std::move(*step));
    }
  }

  /// Returns the next step, one expression for each value, or nothing.
  std::optional<std::vector<unsigned>> nextStep(ArrayRef<Value> values, int64_t axis) const {
    std::vector<unsigned> step;
    for (Value value : values) {
      int64_t id = value.hasOneUse() ? graph.indexOf(*value.getUsers().begin()) : -1;
      if (id < 0 || !mayFollow(id, value, axis))
        return std::nullopt;
      if (!step.empty() && !isSameStep(step.front(), id, values.front(), value, axis))
        return std::nullopt;
      step.push_back(id);
    }
    return step;
  }

  /// Returns true for an elementwise op that computes each element from one element of `before`.
  bool mayFollow(unsigned id, Value before, int64_t axis) const {
    const TensorExpr &expr = graph.exprs()[id];
    std::optional<StepInput> input = stepInput(expr.op, before, axis);
    if (!input || expr.kind != ExprKind::elementwise || expr.op->getNumResults() != 1 ||
        resultAxis(expr.op, input->loop) < 0)
      return false;
    auto op = cast<linalg::LinalgOp>(expr.op);
    bool readsInit = !op.getBlock()->getArguments().back().use_empty();
    return !readsInit && !op.hasIndexSemantics() && llvm::all_of(op.getIndexingMapsArray(), isProjection) &&
           op.getIndexingMapsArray().back().isPermutation();
  }

  bool isSameStep(unsigned a, unsigned b, Value beforeA, Value beforeB, int64_t axis) const {
    auto left = cast<linalg::LinalgOp>(graph.exprs()[a].op), right = cast<linalg::LinalgOp>(graph.exprs()[b].op);
    StepInput into = *stepInput(left, beforeA, axis), other = *stepInput(right, beforeB, axis);
    if (into.operand != other.operand || into.loop != other.loop ||
        left.getIndexingMapsArray() != right.getIndexingMapsArray() || !sameBodies(left, right) ||
        elementOf(left->getResult(0)) != elementOf(right->getResult(0)))
      return false;
    SmallVector<int64_t> ranges = left.getStaticLoopRanges(), others = right.getStaticLoopRanges();
    others[into.loop] = ranges[into.loop]; // the numbers of columns may differ
    if (ranges != others)
      return false;
    for (auto [x, y] : llvm::zip(left.getDpsInputOperands(), right.getDpsInputOperands()))
      if (x->getOperandNumber() != into.operand && !mayLieBeside(left, *x, *y, into.loop, beforeA, beforeB))
        return false;
    return true;
  }

  /// Returns true if two operands of a step can be merged. Operands that vary along the columns must be weights; others
  /// must be the same tensor, and be available before the contractions.
  bool mayLieBeside(linalg::LinalgOp op, OpOperand &a, OpOperand &b, int64_t loop, Value beforeA, Value beforeB) const {
    if (a.get() == beforeA || b.get() == beforeB || elementOf(a.get()) != elementOf(b.get()))
      return false;
    bool known = isKnownAtLoad(graph, atLoad, a.get()) && isKnownAtLoad(graph, atLoad, b.get());
    if (op.getMatchingIndexingMap(&a).isFunctionOfDim(loop))
      return known;
    return a.get() == b.get() && (known || isa<BlockArgument>(a.get()));
  }

  const TensorGraph &graph;
  const Target &target;
  std::vector<bool> atLoad;
  HorizontalMerges found;
};
} // namespace

HorizontalMerges tilewright::findHorizontalMerges(const TensorGraph &graph, const Target &target) {
  return MergeFinder(graph, target).run();
}

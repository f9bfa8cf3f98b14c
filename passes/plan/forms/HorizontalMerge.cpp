#include "passes/plan/forms/HorizontalMerge.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/target/MicroKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
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

std::string HorizontalMerge::verify(const TensorGraph &graph) const {
  if (contractions.size() < 2 || columns.slots.size() != contractions.size())
    return "a merge has two parts or more, each with columns";
  for (const std::vector<unsigned> &step : epilogue)
    if (step.size() != contractions.size())
      return "a step of the epilogue has one expression for each part";
  std::vector<bool> atLoad = computedAtLoad(graph);
  for (auto [part, id] : llvm::enumerate(contractions)) {
    std::optional<ContractionRoles> roles = blockRoles(graph, atLoad, id);
    if (!roles || graph.exprs()[id].domain[roles->lane] != columns.heads * columns.slots[part] * columns.width)
      return "the columns of part " + std::to_string(part) + " are not those of its contraction";
  }
  return "";
}

void HorizontalMerges::print(raw_ostream &os) const {
  for (const HorizontalMerge &merge : merges) {
    os << "merge ";
    llvm::interleaveComma(merge.contractions, os);
    os << ": columns " << merge.columns.toString() << ", " << merge.epilogue.size() << " steps after, saves "
       << llvm::format("%.3g us", merge.savedSeconds * 1e6) << "\n";
  }
  for (const DeclinedMerge &pair : declined)
    os << "keep " << pair.first << " and " << pair.second << " apart: " << pair.reason << "\n";
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

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// The width of the innermost dim into which some reader splits dim `axis` of a tensor, as heads are; 0: none does
/// within `steps` ops.
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
// The decision
//===----------------------------------------------------------------------===//

namespace {
/// A contraction that may become a part.
struct Part {
  unsigned id;
  ContractionRoles roles;
};

class MergeFinder {
public:
  MergeFinder(const TensorGraph &graph, const Target &target)
      : graph(graph), target(target), atLoad(computedAtLoad(graph)) {}

  HorizontalMerges run() {
    llvm::MapVector<Value, std::vector<Part>> byTensor;
    for (unsigned id = 0; id < graph.exprs().size(); ++id)
      if (std::optional<ContractionRoles> roles = blockRoles(graph, atLoad, id))
        byTensor[graph.exprs()[id].inputs[roles->rowInput].tensor].push_back({id, *roles});
    for (auto &[tensor, parts] : byTensor)
      for (std::vector<Part> rest = std::move(parts); rest.size() > 1;)
        rest = takeGroup(rest);
    return std::move(found);
  }

private:
  static constexpr unsigned kStepsToHeads = 8; ///< ops between a projection and the reshape of its columns into heads

  /// Merges what goes with the first part, and gives the others.
  std::vector<Part> takeGroup(ArrayRef<Part> parts) {
    std::vector<Part> group = {parts.front()}, rest;
    for (const Part &part : parts.drop_front()) {
      std::string why = whyNotTogether(parts.front(), part);
      if (why.empty())
        group.push_back(part);
      else
        rest.push_back(part);
      if (!why.empty())
        found.declined.push_back({parts.front().id, part.id, std::move(why)});
    }
    if (group.size() > 1)
      decide(group);
    return rest;
  }

  const TensorExpr &exprOf(const Part &part) const { return graph.exprs()[part.id]; }
  TensorAccess weightsOf(const Part &part) const { return throughCopies(exprOf(part).inputs[part.roles.laneInput]); }
  int64_t columnsOf(const Part &part) const { return exprOf(part).domain[part.roles.lane]; }

  std::string whyNotTogether(const Part &first, const Part &second) const {
    const TensorExpr &a = exprOf(first), &b = exprOf(second);
    if (!hasConstantLanes(graph, atLoad, first.id, first.roles) ||
        !hasConstantLanes(graph, atLoad, second.id, second.roles))
      return "what the shared tensor is multiplied with is computed in each call";
    SmallVector<int64_t> domain(b.domain);
    if (first.roles.lane != second.roles.lane || first.roles.rowInput != second.roles.rowInput ||
        a.domain.size() != domain.size() || a.reductions != b.reductions)
      return "they run over different dims";
    domain[second.roles.lane] = columnsOf(first);
    if (ArrayRef<int64_t>(a.domain) != ArrayRef<int64_t>(domain) ||
        a.inputs[first.roles.rowInput].map != b.inputs[second.roles.rowInput].map || a.results != b.results)
      return "they read the shared tensor at different places";
    TensorAccess left = weightsOf(first), right = weightsOf(second);
    if (left.map != right.map || !isProjection(left.map) || otherSizes(left, first) != otherSizes(right, second))
      return "their weights lie in different orders";
    if (elementOf(left.tensor) != elementOf(right.tensor) ||
        elementOf(a.op->getResult(0)) != elementOf(b.op->getResult(0)))
      return "their elements have different types";
    auto init = [](Operation *op) { return constantElement(cast<linalg::LinalgOp>(op).getDpsInits()[0]); };
    if (!sameBodies(a.op, b.op) || !init(a.op) || init(a.op) != init(b.op))
      return "they do not compute the same";
    return "";
  }

  /// The sizes of the weights besides the columns.
  SmallVector<int64_t> otherSizes(const TensorAccess &weights, const Part &part) const {
    SmallVector<int64_t> sizes(cast<RankedTensorType>(weights.tensor.getType()).getShape());
    for (auto [axis, index] : llvm::enumerate(weights.map.getResults()))
      if (pureDim(index) == part.roles.lane)
        sizes[axis] = 0;
    return sizes;
  }

  void decide(ArrayRef<Part> group) {
    HorizontalMerge merge;
    for (const Part &part : group)
      merge.contractions.push_back(part.id);
    double best = -std::numeric_limits<double>::infinity();
    for (const ColumnLayout &layout : layoutsOf(group))
      if (double saved = savedSeconds(group, layout); saved > best) {
        best = saved;
        merge.columns = layout;
      }
    if (best <= 0) {
      std::string more;
      llvm::raw_string_ostream(more) << llvm::format("%.3g us", -best * 1e6);
      for (const Part &part : group.drop_front())
        found.declined.push_back({group.front().id, part.id,
                                  "columns " + merge.columns.toString() + " fill up register blocks for " + more +
                                      " more than one launch less saves"});
      return;
    }
    merge.savedSeconds = best;
    extendEpilogue(merge, group);
    found.merges.push_back(std::move(merge));
  }

  /// By heads where readers split the columns so, else by their greatest common divisor.
  std::vector<ColumnLayout> layoutsOf(ArrayRef<Part> group) const {
    int64_t divisor = 0, head = 0;
    bool agree = true;
    for (const Part &part : group) {
      divisor = std::gcd(divisor, columnsOf(part));
      int64_t own = headWidth(exprOf(part).op->getResult(0), axisOf(part), kStepsToHeads);
      agree &= own == 0 || head == 0 || own == head;
      head = own ? own : head;
    }
    std::vector<ColumnLayout> layouts;
    if (agree && head > 0 && divisor % head == 0)
      layouts.push_back(layoutOf(group, divisor / head, head));
    layouts.push_back(layoutOf(group, 1, divisor));
    return layouts;
  }

  ColumnLayout layoutOf(ArrayRef<Part> group, int64_t heads, int64_t width) const {
    ColumnLayout layout{heads, width, {}};
    for (const Part &part : group)
      layout.slots.push_back(columnsOf(part) / heads / width);
    return layout;
  }

  int64_t axisOf(const Part &part) const { return resultAxis(exprOf(part).op, part.roles.lane); }

  /// Against each contraction in a kernel of its own: launches and reads of the shared tensor, less the columns that
  /// fill up register blocks. A sum of what is known for certain; how the merged contraction is tiled is the plan's.
  double savedSeconds(ArrayRef<Part> group, const ColumnLayout &layout) const {
    const TensorExpr &first = exprOf(group.front());
    int64_t block = lanesOfBlock(first), separate = 0;
    for (const Part &part : group)
      separate += llvm::alignTo(columnsOf(part), block);
    int64_t together = layout.heads * layout.allSlots() * llvm::alignTo(layout.width, block);
    double points = static_cast<double>(first.domainSize()) / columnsOf(group.front());
    TensorAccess weights = weightsOf(group.front());
    double weightBytes = static_cast<double>(tensorBytes(weights.tensor)) / columnsOf(group.front());
    double bandwidth = target.level(tile::Space::global).bandwidth;
    double column = points * 2 / target.flopsPerSecond + weightBytes / bandwidth;
    double shared = tensorBytes(first.inputs[group.front().roles.rowInput].tensor) / bandwidth;
    return (group.size() - 1) * (target.launchSeconds + shared) - (together - separate) * column;
  }

  int64_t lanesOfBlock(const TensorExpr &contraction) const {
    int64_t bits = elementOf(contraction.op->getResult(0)).getIntOrFloatBitWidth();
    return registerBlock(target.vectorRegisters).vectors * target.vectorBytes * 8 / bits;
  }

  //===--------------------------------------------------------------------===//
  // What follows the parts alike
  //===--------------------------------------------------------------------===//

  void extendEpilogue(HorizontalMerge &merge, ArrayRef<Part> group) const {
    SmallVector<Value> values;
    for (const Part &part : group)
      values.push_back(exprOf(part).op->getResult(0));
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

  /// Elementwise ops of whole tensors, each element from one of the part.
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
    others[into.loop] = ranges[into.loop]; // columns may differ in number
    if (ranges != others)
      return false;
    for (auto [x, y] : llvm::zip(left.getDpsInputOperands(), right.getDpsInputOperands()))
      if (x->getOperandNumber() != into.operand && !mayLieBeside(left, *x, *y, into.loop, beforeA, beforeB))
        return false;
    return true;
  }

  /// Operands by column are weights; others are one tensor, there before the parts are.
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

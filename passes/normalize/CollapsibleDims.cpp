#include "passes/normalize/CollapsibleDims.h"

#include "passes/graph/TensorExpr.h"
#include "passes/target/LaneBytes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Two neighbouring dims of a tensor, or two loops of an op that are neighbours in some tensor: the owner (a value or
/// an op) and both indices.
using Pair = std::tuple<void *, int64_t, int64_t>;

RankedTensorType staticTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type : RankedTensorType();
}

/// Returns the op as a generic whose loops can be collapsed, or null.
linalg::GenericOp collapsible(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || !generic.hasPureTensorSemantics() ||
      !llvm::all_of(generic->getOperands(), [](Value value) { return bool(staticTensor(value)); }))
    return {};
  FailureOr<TensorExpr> expr = describe(generic);
  return succeeded(expr) && expr->kind != ExprKind::contraction ? generic : linalg::GenericOp();
}

/// Returns true if the op does not depend on how its elements are divided into dims.
bool isIndifferent(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return isa<tensor::EmptyOp, linalg::FillOp, func::ReturnOp>(op) || name == "hal.tensor.import" ||
         name == "hal.tensor.export" || name == "hal.tensor.barrier" || name == "util.global.load" ||
         name.starts_with("iree_tensor_ext.compute_barrier.");
}

/// Returns the number of points of the collapsed loops that contain a loop for which `isCounted` holds. `next` holds
/// the next loop of the same collapsed loop, or -1.
int64_t pointsOf(linalg::GenericOp op, ArrayRef<int64_t> next, llvm::function_ref<bool(int64_t)> isCounted) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t points = 1;
  for (int64_t loop = 0; loop < static_cast<int64_t>(next.size()); ++loop) {
    if (llvm::is_contained(next, loop))
      continue;
    int64_t group = 1;
    bool counted = false;
    for (int64_t member = loop; member >= 0; member = next[member]) {
      group *= ranges[member];
      counted |= isCounted(member);
    }
    points *= counted ? group : 1;
  }
  return points;
}

/// An access that varies along only one of two loops. If these are collapsed, the input has to be repeated.
struct Repeat {
  linalg::GenericOp op;
  AffineMap map;
  Pair pair;
};

/// Collects the pairs of a function and decides which classes are collapsed.
class Finder {
public:
  Finder(func::FuncOp function, const Target &target)
      : lanes(target.vectorBytes / kLaneBytes), costs(target.costs.cpu) {
    function.walk([&](Operation *op) { add(op); });
    findRefused();
    admitRepeats();
  }

  CollapsibleDims find() {
    CollapsibleDims found;
    for (linalg::GenericOp op : generics)
      findLoops(op, found);
    for (Value tensor : tensors)
      findDims(tensor, found);
    return found;
  }

private:
  void add(Operation *op) {
    if (linalg::GenericOp generic = collapsible(op))
      return add(generic);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op); expand && addsUnitDims(expand))
      return add(expand);
    if (isIndifferent(op))
      return;
    for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
      if (RankedTensorType type = staticTensor(value))
        for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
          refuse({value.getAsOpaquePointer(), dim, dim + 1});
  }

  void add(linalg::GenericOp op) {
    generics.push_back(op);
    for (OpOperand &operand : op->getOpOperands())
      if (!op.isDpsInit(&operand) || !isStart(operand.get()))
        add(op, operand.get(), op.getMatchingIndexingMap(&operand), mayBeRepeated(op, operand));
    for (OpResult result : op->getResults())
      add(op, result, op.getMatchingIndexingMap(op.getTiedOpOperand(result)), /*repeatable=*/false);
    op.getBody()->walk([&](linalg::IndexOp index) {
      for (int64_t other = 0; other < static_cast<int64_t>(op.getNumLoops()); ++other)
        for (auto [first, second] : {std::pair<int64_t, int64_t>(index.getDim(), other), {other, index.getDim()}})
          refuse({op.getOperation(), first, second});
    });
  }

  /// Returns true if an input may be repeated along loops that it does not vary along: no collapsible op computes it.
  static bool mayBeRepeated(linalg::GenericOp op, OpOperand &operand) {
    Value tensor = operand.get();
    if (auto expand = tensor.getDefiningOp<tensor::ExpandShapeOp>(); expand && addsUnitDims(expand))
      tensor = expand.getSrc();
    Operation *maker = tensor.getDefiningOp();
    return op.isDpsInput(&operand) && !(maker && collapsible(maker)) &&
           llvm::all_of(op.getMatchingIndexingMap(&operand).getResults(),
                        [](AffineExpr index) { return isa<AffineDimExpr, AffineConstantExpr>(index); });
  }

  /// Adds the constraints that one access puts on the loops of its op and the dims of its tensor.
  void add(linalg::GenericOp op, Value tensor, AffineMap map, bool repeatable) {
    tensors.insert(tensor);
    pieces.unionSets(op.getOperation(), tensor.getAsOpaquePointer());
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    ArrayRef<AffineExpr> results = map.getResults();
    auto loopAt = [&](size_t position) -> int64_t {
      auto dim = dyn_cast<AffineDimExpr>(results[position]);
      return dim ? static_cast<int64_t>(dim.getPosition()) : -1;
    };
    auto isFirst = [](AffineExpr index) { return index == getAffineConstantExpr(0, index.getContext()); };
    auto occursOnce = [&](int64_t loop) {
      return llvm::count_if(results, [&](AffineExpr index) { return index.isFunctionOfDim(loop); }) == 1;
    };
    for (size_t position = 0; position + 1 < results.size(); ++position) {
      Pair dims{tensor.getAsOpaquePointer(), static_cast<int64_t>(position), static_cast<int64_t>(position) + 1};
      int64_t first = loopAt(position), second = loopAt(position + 1);
      if (isFirst(results[position]) && isFirst(results[position + 1]))
        continue;
      if (first < 0 || second < 0 || kinds[first] != kinds[second])
        refuse(dims);
      else
        classes.unionSets(dims, {op.getOperation(), first, second});
    }
    for (int64_t loop = 0; loop < static_cast<int64_t>(op.getNumLoops()); ++loop)
      for (int64_t other = 0; other < static_cast<int64_t>(op.getNumLoops()); ++other) {
        bool follows = false;
        for (size_t position = 0; position + 1 < results.size(); ++position)
          follows |= loopAt(position) == loop && loopAt(position + 1) == other;
        follows &= occursOnce(loop) && occursOnce(other);
        bool first = map.isFunctionOfDim(loop), second = map.isFunctionOfDim(other);
        if (follows || (!first && !second))
          continue;
        if (repeatable && first != second)
          repeat(op, map, {op.getOperation(), loop, other});
        else
          refuse({op.getOperation(), loop, other});
      }
  }

  /// Dims that stay neighbours are collapsed on both sides or on neither.
  void add(tensor::ExpandShapeOp op) {
    void *from = op.getSrc().getAsOpaquePointer(), *to = op.getResult().getAsOpaquePointer();
    tensors.insert(op.getSrc());
    tensors.insert(op.getResult());
    pieces.unionSets(from, to);
    ArrayRef<int64_t> shape = op.getResultType().getShape();
    SmallVector<int64_t> resultDims = placesOf(op);
    llvm::BitVector known(shape.size());
    for (int64_t dim = 0; dim + 1 < static_cast<int64_t>(resultDims.size()); ++dim) {
      Pair before{from, dim, dim + 1};
      if (resultDims[dim + 1] != resultDims[dim] + 1) {
        refuse(before);
        continue;
      }
      classes.unionSets(before, {to, resultDims[dim], resultDims[dim + 1]});
      known.set(resultDims[dim]);
    }
    for (int64_t dim = 0; dim + 1 < static_cast<int64_t>(shape.size()); ++dim)
      if (!known[dim])
        refuse({to, dim, dim + 1});
  }

  void refuse(const Pair &pair) {
    classes.insert(pair);
    refused.push_back(pair);
  }

  void repeat(linalg::GenericOp op, AffineMap map, const Pair &pair) {
    classes.insert(pair);
    repeatsOf[op.getOperation()].push_back(repeats.size());
    repeats.push_back({op, map, pair});
  }

  /// Refuses the classes of refused pairs, and, until admitRepeats(), those that would need a repeated input.
  void findRefused() {
    for (const Pair &pair : refused)
      leaders.insert(classes.getLeaderValue(pair));
    for (const Repeat &each : repeats)
      if (leaders.insert(classes.getLeaderValue(each.pair)).second)
        open.insert(classes.getLeaderValue(each.pair));
  }

  bool isAllowed(const Pair &pair) const {
    return classes.contains(pair) && !leaders.contains(classes.getLeaderValue(pair));
  }

  /// Allows inputs to be repeated if that lengthens short rows and the repeated inputs stay small.
  void admitRepeats() {
    for (const Repeat &each : llvm::reverse(repeats)) {
      Pair leader = classes.getLeaderValue(each.pair);
      if (!open.erase(leader) || !lengthensShortRows(leader))
        continue;
      leaders.erase(leader);
      if (!staysSmall(leader))
        leaders.insert(leader);
    }
  }

  bool staysSmall(const Pair &leader) const {
    for (auto member = classes.findLeader(leader); member != classes.member_end(); ++member)
      for (unsigned number : repeatsOf.lookup(std::get<0>(*member)))
        if (isAllowed(repeats[number].pair) && !isSmall(repeats[number]))
          return false;
    return true;
  }

  bool isSmall(const Repeat &repeat) const {
    SmallVector<int64_t> next = nextLoops(repeat.op);
    int64_t laidOut = pointsOf(repeat.op, next, [&](int64_t loop) { return repeat.map.isFunctionOfDim(loop); });
    return costs.repeatedInput * laidOut <= pointsOf(repeat.op, next, [](int64_t) { return true; });
  }

  /// Returns true if some tensor has short rows and a pair of the class would extend them to the left.
  bool lengthensShortRows(const Pair &leader) const {
    for (auto member = classes.findLeader(leader); member != classes.member_end(); ++member) {
      auto [whose, dim, second] = *member;
      Value tensor = Value::getFromOpaquePointer(whose);
      if (!tensors.contains(tensor))
        continue;
      auto [begin, length] = lastRow(tensor);
      if (begin == second && isShort(length))
        return true;
    }
    return false;
  }

  /// Returns the outermost dim that is collapsed with the last non-unit dim, and the length of the collapsed row.
  std::pair<int64_t, int64_t> lastRow(Value tensor) const {
    ArrayRef<int64_t> shape = staticTensor(tensor).getShape();
    int64_t dim = shape.size() - 1;
    while (dim > 0 && shape[dim] == 1)
      --dim;
    int64_t length = shape[dim];
    for (; dim > 0 && isAllowed({tensor.getAsOpaquePointer(), dim - 1, dim}); --dim)
      length *= shape[dim - 1];
    return {dim, length};
  }

  /// Returns true if some op in the member's connected group has short rows.
  bool isWorthwhile(void *member) {
    if (worthwhile.empty())
      for (linalg::GenericOp op : generics)
        if (bool &known = worthwhile[pieces.getLeaderValue(op.getOperation())]; !known)
          known = llvm::any_of(op->getOperands(), [&](Value tensor) { return hasShortRows(staticTensor(tensor)); });
    return worthwhile.lookup(pieces.getLeaderValue(member));
  }

  bool hasShortRows(RankedTensorType type) const {
    ArrayRef<int64_t> shape = type.getShape();
    while (!shape.empty() && shape.back() == 1)
      shape = shape.drop_back();
    return shape.size() > 1 && isShort(shape.back());
  }

  bool isShort(int64_t row) const { return llvm::alignTo(row, lanes) >= costs.shortRow * row; }

  void findLoops(linalg::GenericOp op, CollapsibleDims &found) {
    if (isWorthwhile(op.getOperation()))
      found.loops[op] = nextLoops(op);
  }

  SmallVector<int64_t> nextLoops(linalg::GenericOp op) const {
    SmallVector<int64_t> next(op.getNumLoops(), -1);
    for (int64_t loop = 0; loop < static_cast<int64_t>(next.size()); ++loop)
      for (int64_t other = 0; other < static_cast<int64_t>(next.size()); ++other)
        if (isAllowed({op.getOperation(), loop, other}))
          next[loop] = other;
    return next;
  }

  void findDims(Value tensor, CollapsibleDims &found) {
    int64_t rank = staticTensor(tensor).getRank();
    if (rank < 2 || !isWorthwhile(tensor.getAsOpaquePointer()))
      return;
    llvm::BitVector joined(rank - 1);
    for (int64_t dim = 0; dim + 1 < rank; ++dim)
      if (isAllowed({tensor.getAsOpaquePointer(), dim, dim + 1}))
        joined.set(dim);
    if (joined.any())
      found.tensors[tensor] = std::move(joined);
  }

  int64_t lanes;
  const CpuCosts &costs;
  SmallVector<linalg::GenericOp> generics;
  llvm::SetVector<Value> tensors; ///< operands and results of collapsible ops
  llvm::EquivalenceClasses<Pair> classes;
  SmallVector<Pair> refused;
  SmallVector<Repeat> repeats;
  llvm::DenseMap<void *, SmallVector<unsigned>> repeatsOf; ///< by op: indices into `repeats`
  llvm::DenseSet<Pair> leaders;                            ///< leaders of refused classes
  llvm::DenseSet<Pair> open; ///< leaders of classes that are refused only because an input would be repeated
  llvm::EquivalenceClasses<void *> pieces; ///< connected groups of ops and tensors
  llvm::DenseMap<void *, bool> worthwhile; ///< by leader of a group: true if it has short rows
};
} // namespace

bool tilewright::isStart(Value tensor) {
  return isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(tensor.getDefiningOp());
}

bool tilewright::addsUnitDims(tensor::ExpandShapeOp op) {
  ArrayRef<int64_t> shape = op.getResultType().getShape();
  return op.getResultType().hasStaticShape() && llvm::all_of(op.getReassociationIndices(), [&](const auto &group) {
           return llvm::count_if(group, [&](int64_t dim) { return shape[dim] != 1; }) <= 1;
         });
}

SmallVector<int64_t> tilewright::placesOf(tensor::ExpandShapeOp op) {
  ArrayRef<int64_t> shape = op.getResultType().getShape();
  return llvm::map_to_vector(op.getReassociationIndices(), [&](const ReassociationIndices &group) {
    const int64_t *found = llvm::find_if(group, [&](int64_t dim) { return shape[dim] != 1; });
    return found == group.end() ? group.front() : *found;
  });
}

CollapsibleDims tilewright::collapsibleDims(func::FuncOp function, const Target &target) {
  return Finder(function, target).find();
}

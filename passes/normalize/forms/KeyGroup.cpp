#include "passes/normalize/forms/KeyGroup.h"

#include "passes/graph/Contraction.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/graph/StartValue.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Grows the group from a maximum to the ops that depend on it and those that compute its input, and checks each of
/// them.
class GroupFinder {
public:
  GroupFinder(const TensorGraph &graph, unsigned maximum) : graph(graph), exprs(graph.exprs()) {
    group.maximum = maximum;
    relations = relateTo(
        exprs, maximum,
        [&](unsigned expr, unsigned input) {
          for (unsigned edge : graph.inEdges(expr))
            if (graph.edges()[edge].input == input)
              return static_cast<int64_t>(graph.edges()[edge].producer);
          return int64_t(-1);
        },
        /*throughRoundings=*/true);
  }

  KeyGroup find() {
    const TensorExpr &own = exprs[group.maximum];
    group.keys = own.domain[own.reductions.front()];
    dims[group.maximum] = own.reductions.front();
    for (unsigned id = 0; id < exprs.size(); ++id)
      if (id == group.maximum || (follows(id) && exprs[id].kind != ExprKind::movement))
        included.insert(id);
    takeInputs(group.maximum);
    for (unsigned id = 0; id < exprs.size() && group.reason.empty(); ++id)
      if (included.contains(id))
        addMember(id);
    if (group.reason.empty())
      checkUsers();
    return std::move(group);
  }

private:
  /// Returns true if the expression depends on the maximum.
  bool follows(unsigned id) const {
    return relations[id] == Relation::shifted || relations[id] == Relation::proportional ||
           relations[id] == Relation::sum;
  }

  void refuse(std::string why) {
    if (group.reason.empty())
      group.reason = std::move(why);
  }

  /// Returns the access to the tensor behind views, stopping at results of members.
  TensorAccess behindViews(unsigned id, TensorAccess access) const {
    while (access.guard == IntegerSet()) {
      int64_t producer = graph.indexOf(access.tensor.getDefiningOp());
      if (producer < 0 || included.contains(producer) || exprs[producer].kind != ExprKind::movement ||
          exprs[producer].inputs.size() != 1 || exprs[producer].inputs[0].guard != IntegerSet())
        return access;
      ArrayRef<int64_t> domain = exprs[id].domain;
      AffineMap map = composeInDomain(exprs[producer].pointOf(0), access.map, domain);
      map = composeInDomain(exprs[producer].inputs[0].map, map, domain);
      if (llvm::any_of(map.getResults(),
                       [](AffineExpr index) { return !isa<AffineDimExpr, AffineConstantExpr>(index); }))
        return access;
      access.tensor = exprs[producer].inputs[0].tensor;
      access.map = map;
    }
    return access;
  }

  /// Returns the position of the only index that is the dim. Returns -1 if no index varies along the dim, and -2 if the
  /// access uses the dim in another way.
  static int64_t positionOf(AffineMap map, int64_t dim) {
    int64_t position = -1;
    for (auto [i, index] : llvm::enumerate(map.getResults())) {
      if (!index.isFunctionOfDim(dim))
        continue;
      if (position != -1 || !isa<AffineDimExpr>(index))
        return -2;
      position = i;
    }
    return position;
  }

  /// Adds the ops that compute inputs along the split dim to the group of their reader, back to a contraction.
  void takeInputs(unsigned reader) {
    if (exprs[reader].kind == ExprKind::contraction)
      return;
    for (const TensorAccess &input : exprs[reader].inputs) {
      TensorAccess access = behindViews(reader, input);
      int64_t position = positionOf(access.map, dims[reader]), producer = graph.indexOf(access.tensor.getDefiningOp());
      if (position < 0)
        continue;
      keyPosition[access.tensor] = position;
      if (producer < 0 || included.contains(producer) || !isTakenWhole(producer))
        continue;
      auto dim = dyn_cast<AffineDimExpr>(exprs[producer].results[0].getResult(position));
      if (!dim)
        continue;
      dims[producer] = dim.getPosition();
      included.insert(producer);
      takeInputs(producer);
    }
  }

  /// Returns true for arithmetic that only the group reads.
  bool isTakenWhole(unsigned id) const {
    const TensorExpr &expr = exprs[id];
    bool computes =
        expr.kind == ExprKind::elementwise || (expr.kind == ExprKind::contraction && whyNoSumOfProducts(expr).empty());
    return computes && isa<linalg::LinalgOp>(expr.op) && expr.op->getNumResults() == 1 && groupAloneReads(id);
  }

  /// Returns true if only the group reads the expression, directly or through views.
  bool groupAloneReads(unsigned id) const {
    return !graph.escapes(id) && llvm::all_of(graph.outEdges(id), [&](unsigned edge) {
      unsigned reader = graph.edges()[edge].consumer;
      return included.contains(reader) || (movesOne(exprs[reader]) && groupAloneReads(reader));
    });
  }

  /// Returns true for the views that `behindViews` looks through.
  static bool movesOne(const TensorExpr &expr) { return expr.kind == ExprKind::movement && expr.inputs.size() == 1; }

  void addMember(unsigned id) {
    const TensorExpr &expr = exprs[id];
    KeyMember member{id, -1, AffineMap(), false, {}};
    if (!isa<linalg::LinalgOp>(expr.op) || expr.op->getNumResults() != 1)
      return refuse("one of its ops is not a structured op with one result");
    member.sums = !expr.oneReliesOnOne() && follows(id);
    AffineMap ofMaximum;
    for (const TensorAccess &input : expr.inputs) {
      TensorAccess access = behindViews(id, input);
      if (access.guard != IntegerSet())
        return refuse("one of its ops has a guarded input");
      if (int64_t producer = graph.indexOf(access.tensor.getDefiningOp());
          producer >= 0 && (relations[producer] == Relation::sum ||
                            (!included.contains(producer) && relations[producer] != Relation::independent)))
        return refuse("one of its ops needs another one's result over all keys");
      if (OpOperand &operand = expr.op->getOpOperand(access.operand); access.tensor == operand.get())
        access.map = cast<linalg::LinalgOp>(expr.op).getMatchingIndexingMap(&operand); // keeps unit dims
      member.reads.push_back(access);
      if (auto known = keyPosition.find(access.tensor); known != keyPosition.end() && !dims.contains(id))
        if (auto dim = dyn_cast<AffineDimExpr>(access.map.getResult(known->second)))
          dims[id] = dim.getPosition();
      if (access.tensor == exprs[group.maximum].op->getResult(0))
        ofMaximum = access.map;
      else if (auto known = maxima.find(access.tensor); known != maxima.end())
        ofMaximum = composeInDomain(known->second, access.map, expr.domain);
    }
    if (!dims.contains(id))
      return refuse("the key dim of one of its ops is not known");
    member.dim = dims[id];
    bool reduces = llvm::is_contained(expr.reductions, member.dim);
    if (expr.domain[member.dim] != group.keys || reduces != (id == group.maximum || member.sums))
      return refuse("one of its sums is along another dim than the keys");
    for (const TensorAccess &access : member.reads)
      if (positionOf(access.map, member.dim) == -2)
        return refuse("one of its ops does not read the keys with a plain index");
    if (!llvm::all_of(llvm::seq<int64_t>(0, expr.domain.size()),
                      [&](int64_t dim) { return isIndex(member, expr, dim); }))
      return refuse("one of its ops has a dim that no tensor has as a plain index, behind views");
    if (member.sums && !startsFromZero(expr.op))
      return refuse("one of its sums does not start from zero");
    Value result = expr.op->getResult(0);
    if (follows(id) && !ofMaximum)
      return refuse("one of its ops depends on the maximum without a known index");
    if (ofMaximum) {
      if (ofMaximum.isFunctionOfDim(member.dim) ||
          llvm::any_of(expr.reductions, [&](int64_t dim) { return ofMaximum.isFunctionOfDim(dim); }))
        return refuse("one of its ops reads the maximum of other rows");
      ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
      maxima[result] = member.maximum = composeInDomain(ofMaximum, expr.pointOf(0), shape);
    }
    if (!reduces) {
      int64_t position = positionOf(expr.results[0], member.dim);
      if (position < 0)
        return refuse("one of its ops does not write the keys with a plain index");
      keyPosition[result] = position;
    }
    group.members.push_back(std::move(member));
  }

  /// Returns true if the dim is a plain index of the op's result or of one of its reads, which gives its extent.
  static bool isIndex(const KeyMember &member, const TensorExpr &expr, int64_t dim) {
    AffineExpr index = getAffineDimExpr(dim, expr.op->getContext());
    auto op = cast<linalg::LinalgOp>(expr.op);
    AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    return llvm::is_contained(written.getResults(), index) ||
           llvm::any_of(member.reads,
                        [&](const TensorAccess &access) { return llvm::is_contained(access.map.getResults(), index); });
  }

  /// Checks that only members read values relative to a maximum, and that other ops read the sums behind all members.
  void checkUsers() {
    Operation *last = exprs[group.members.back().expr].op;
    bool sums = llvm::any_of(group.members, [](const KeyMember &member) { return member.sums; });
    if (!sums)
      refuse("no sum is relative to the maximum");
    for (const KeyMember &member : group.members) {
      bool isResult = member.sums; // not the maximum: that of a row of minus infinity differs after the split
      if (!isResult && graph.escapes(member.expr))
        refuse("an op outside the group reads exponentials");
      for (unsigned edge : graph.outEdges(member.expr))
        checkUser(member, graph.edges()[edge].consumer, isResult, last);
    }
  }

  void checkUser(const KeyMember &member, unsigned user, bool isResult, Operation *last) {
    if (included.contains(user))
      return;
    const TensorExpr &expr = exprs[user];
    if (movesOne(expr) && expr.op->isBeforeInBlock(last)) {
      for (unsigned edge : graph.outEdges(user))
        checkUser(member, graph.edges()[edge].consumer, isResult, last);
      if (graph.escapes(user))
        refuse("an op outside the group reads a view of its results");
      return;
    }
    if (!isResult || expr.op->isBeforeInBlock(last))
      refuse("an op outside the group reads a result before all sums are complete");
  }

  const TensorGraph &graph;
  ArrayRef<TensorExpr> exprs;
  KeyGroup group;
  SmallVector<Relation> relations;
  llvm::DenseSet<unsigned> included;
  llvm::DenseMap<unsigned, int64_t> dims;     ///< by expression: the dim that is split
  llvm::DenseMap<Value, int64_t> keyPosition; ///< by tensor: position of the keys among its dims
  llvm::DenseMap<Value, AffineMap> maxima;    ///< by result: index of its maximum
};
} // namespace

KeyGroup tilewright::findKeyGroup(const TensorGraph &graph, unsigned maximum) {
  return GroupFinder(graph, maximum).find();
}

std::string tilewright::kindOfGroup(const TensorGraph &graph, const KeyGroup &group) {
  std::string kind;
  llvm::raw_string_ostream os(kind);
  for (const KeyMember &member : group.members) {
    auto op = cast<linalg::LinalgOp>(graph.exprs()[member.expr].op);
    os << op->getName() << op.getIndexingMaps();
    llvm::interleaveComma(op->getOperandTypes(), os);
    for (const TensorAccess &read : member.reads)
      os << read.map;
    for (Operation &inner : *op.getBlock())
      os << inner.getName();
  }
  return kind;
}

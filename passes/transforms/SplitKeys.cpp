#include "passes/transforms/SplitKeys.h"

#include "passes/analysis/AffineAlgebra.h"
#include "passes/analysis/Contraction.h"
#include "passes/analysis/RunningMaximum.h"
#include "passes/plan/GreedyPlanner.h"
#include "passes/plan/PlanNumerics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// What is cut
//===----------------------------------------------------------------------===//

namespace {
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
  bool follows(unsigned id) const {
    return relations[id] == Relation::shifted || relations[id] == Relation::proportional ||
           relations[id] == Relation::sum;
  }

  void refuse(std::string why) {
    if (group.reason.empty())
      group.reason = std::move(why);
  }

  /// The access behind views, down to what another member computes.
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

  /// The one index of an access that is the dim, -1 if none varies along it, -2 if it is read in another way.
  static int64_t placeOf(AffineMap map, int64_t dim) {
    int64_t place = -1;
    for (auto [i, index] : llvm::enumerate(map.getResults())) {
      if (!index.isFunctionOfDim(dim))
        continue;
      if (place != -1 || !isa<AffineDimExpr>(index))
        return -2;
      place = i;
    }
    return place;
  }

  /// What computes an input along the dim goes with its reader, down to a contraction.
  void takeInputs(unsigned reader) {
    if (exprs[reader].kind == ExprKind::contraction)
      return;
    for (const TensorAccess &input : exprs[reader].inputs) {
      TensorAccess access = behindViews(reader, input);
      int64_t place = placeOf(access.map, dims[reader]), producer = graph.indexOf(access.tensor.getDefiningOp());
      if (place < 0)
        continue;
      keyPlace[access.tensor] = place;
      if (producer < 0 || included.contains(producer) || !isTakenWhole(producer))
        continue;
      auto dim = dyn_cast<AffineDimExpr>(exprs[producer].results[0].getResult(place));
      if (!dim)
        continue;
      dims[producer] = dim.getPosition();
      included.insert(producer);
      takeInputs(producer);
    }
  }

  /// Arithmetic that the group alone reads.
  bool isTakenWhole(unsigned id) const {
    const TensorExpr &expr = exprs[id];
    bool computes =
        expr.kind == ExprKind::elementwise || (expr.kind == ExprKind::contraction && whyNoSumOfProducts(expr).empty());
    return computes && isa<linalg::LinalgOp>(expr.op) && expr.op->getNumResults() == 1 && !graph.escapes(id) &&
           llvm::all_of(graph.outEdges(id),
                        [&](unsigned edge) { return included.contains(graph.edges()[edge].consumer); });
  }

  void addMember(unsigned id) {
    const TensorExpr &expr = exprs[id];
    KeyMember member{id, -1, AffineMap(), false, {}};
    if (!isa<linalg::LinalgOp>(expr.op) || expr.op->getNumResults() != 1)
      return refuse("one of its ops is no structured op of one result");
    member.sums = !expr.oneReliesOnOne() && follows(id);
    AffineMap ofMaximum;
    for (const TensorAccess &input : expr.inputs) {
      TensorAccess access = behindViews(id, input);
      if (access.guard != IntegerSet())
        return refuse("one of its ops reads under a guard");
      if (int64_t producer = graph.indexOf(access.tensor.getDefiningOp());
          producer >= 0 && (relations[producer] == Relation::sum ||
                            (!included.contains(producer) && relations[producer] != Relation::independent)))
        return refuse("one of its ops reads another one's result in a way that parts have not");
      member.reads.push_back(access);
      if (auto known = keyPlace.find(access.tensor); known != keyPlace.end() && !dims.contains(id))
        if (auto dim = dyn_cast<AffineDimExpr>(access.map.getResult(known->second)))
          dims[id] = dim.getPosition();
      if (access.tensor == exprs[group.maximum].op->getResult(0))
        ofMaximum = access.map;
      else if (auto known = maxima.find(access.tensor); known != maxima.end())
        ofMaximum = composeInDomain(known->second, access.map, expr.domain);
    }
    if (!dims.contains(id))
      return refuse("it is not known which dim of one of its ops the keys are");
    member.dim = dims[id];
    bool reduces = llvm::is_contained(expr.reductions, member.dim);
    if (expr.domain[member.dim] != group.keys || reduces != (id == group.maximum || member.sums))
      return refuse("its sums are along another dim");
    for (const TensorAccess &access : member.reads)
      if (placeOf(access.map, member.dim) == -2)
        return refuse("one of its ops reads along the keys in another order");
    if (member.sums && !startsAtZero(expr))
      return refuse("one of its sums does not start at zero");
    Value result = expr.op->getResult(0);
    if (follows(id) && !ofMaximum)
      return refuse("one of its ops follows from the maximum in another way");
    if (ofMaximum) {
      if (ofMaximum.isFunctionOfDim(member.dim) ||
          llvm::any_of(expr.reductions, [&](int64_t dim) { return ofMaximum.isFunctionOfDim(dim); }))
        return refuse("one of its ops reads the maximum of other rows");
      ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
      maxima[result] = member.maximum = composeInDomain(ofMaximum, expr.pointOf(0), shape);
    }
    if (!reduces) {
      int64_t place = placeOf(expr.results[0], member.dim);
      if (place < 0)
        return refuse("one of its ops writes along the keys in another order");
      keyPlace[result] = place;
    }
    group.members.push_back(std::move(member));
  }

  static bool startsAtZero(const TensorExpr &sum) {
    auto init = dyn_cast_or_null<FloatAttr>(constantElement(cast<linalg::LinalgOp>(sum.op).getDpsInits()[0]));
    return init && init.getValue().isZero();
  }

  /// Nobody outside reads what is relative to a part's maximum, and results are read behind all members only.
  void checkUsers() {
    Operation *last = exprs[group.members.back().expr].op;
    bool sums = llvm::any_of(group.members, [](const KeyMember &member) { return member.sums; });
    if (!sums)
      refuse("nothing is summed relative to it");
    for (const KeyMember &member : group.members) {
      bool isResult = member.sums; // the maximum of a row of minus infinity is another number afterwards
      if (!isResult && graph.escapes(member.expr))
        refuse("something else reads exponentials");
      for (unsigned edge : graph.outEdges(member.expr))
        checkUser(member, graph.edges()[edge].consumer, isResult, last);
    }
  }

  void checkUser(const KeyMember &member, unsigned user, bool isResult, Operation *last) {
    if (included.contains(user))
      return;
    const TensorExpr &expr = exprs[user];
    bool isView = expr.kind == ExprKind::movement && expr.inputs.size() == 1;
    if (isView && expr.op->isBeforeInBlock(last)) {
      for (unsigned edge : graph.outEdges(user))
        checkUser(member, graph.edges()[edge].consumer, isResult, last);
      if (graph.escapes(user))
        refuse("something else reads a view of its results");
      return;
    }
    if (!isResult || expr.op->isBeforeInBlock(last))
      refuse("something else reads it before all sums are known");
  }

  const TensorGraph &graph;
  ArrayRef<TensorExpr> exprs;
  KeyGroup group;
  SmallVector<Relation> relations;
  llvm::DenseSet<unsigned> included;
  llvm::DenseMap<unsigned, int64_t> dims;
  llvm::DenseMap<Value, int64_t> keyPlace;
  llvm::DenseMap<Value, AffineMap> maxima;
};
} // namespace

KeyGroup tilewright::findKeyGroup(const TensorGraph &graph, unsigned maximum) {
  return GroupFinder(graph, maximum).find();
}

std::string tilewright::kindOfGroup(const TensorGraph &graph, const KeyGroup &group) {
  std::string kind = group.reason;
  llvm::raw_string_ostream os(kind);
  for (const KeyMember &member : group.members) {
    auto op = cast<linalg::LinalgOp>(graph.exprs()[member.expr].op);
    os << op->getName() << op.getIndexingMaps();
    llvm::interleaveComma(op->getOperandTypes(), os);
    for (const TensorAccess &read : member.reads) // behind transposes
      os << read.map;
    for (Operation &inner : *op.getBlock())
      os << inner.getName();
  }
  return kind;
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

namespace {
class KeySplitter {
public:
  KeySplitter(const TensorGraph &graph, const KeyGroup &group, int64_t parts, StringRef form)
      : graph(graph), group(group), parts(parts), last(graph.exprs()[group.members.back().expr].op),
        builder(last->getContext()), form(builder.getStringAttr(form)) {
    builder.setInsertionPointAfter(last);
  }

  void run() {
    for (const KeyMember &member : group.members)
      partial[resultOf(member)] = buildPartial(member);
    Operation *maximum = graph.exprs()[group.maximum].op;
    Value before = maximum->getResult(0), own = partial[before];
    AffineMap all = identity(own);
    Value total = combine(maximum, {own}, {all}, [](OpBuilder &at, Location loc, ValueRange values) {
      return arith::MaximumFOp::create(at, loc, values[0], values[1]).getResult();
    });
    for (const KeyMember &member : group.members)
      if (member.sums)
        finish(member, own, total);
  }

private:
  Value resultOf(const KeyMember &member) const { return graph.exprs()[member.expr].op->getResult(0); }
  AffineMap identity(Value tensor) {
    return builder.getMultiDimIdentityMap(cast<RankedTensorType>(tensor.getType()).getRank());
  }

  /// An index into a tensor whose dim at `place` is cut, in a domain with the parts as dim 0; -1: it is not.
  AffineMap indexInParts(AffineMap map, int64_t place, bool leads) {
    SmallVector<AffineExpr> indices;
    AffineExpr part = builder.getAffineDimExpr(0);
    if (leads)
      indices.push_back(part);
    for (auto [i, index] : llvm::enumerate(map.shiftDims(1).getResults())) {
      if (static_cast<int64_t>(i) == place)
        indices.push_back(part);
      indices.push_back(index);
    }
    return AffineMap::get(map.getNumDims() + 1, 0, indices, builder.getContext());
  }

  static int64_t placeOf(AffineMap map, int64_t dim) {
    for (auto [i, index] : llvm::enumerate(map.getResults()))
      if (index.isFunctionOfDim(dim))
        return i;
    return -1;
  }

  Value cut(Value tensor, int64_t place, Location loc) {
    Value &view = views[{tensor.getAsOpaquePointer(), place}];
    if (view)
      return view;
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[place] /= parts;
    shape.insert(shape.begin() + place, parts);
    SmallVector<ReassociationIndices> groups;
    for (int64_t dim = 0, next = 0; dim < type.getRank(); ++dim) {
      groups.push_back({next++});
      if (dim == place)
        groups.back().push_back(next++);
    }
    return view = tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), tensor, groups);
  }

  Value buildPartial(const KeyMember &member) {
    const TensorExpr &expr = graph.exprs()[member.expr];
    Location loc = expr.op->getLoc();
    IRRewriter rewriter(builder);
    auto copy = cast<linalg::LinalgOp>(rewriter.clone(*expr.op));
    if (!isa<linalg::GenericOp>(copy.getOperation()))
      copy = *linalg::generalizeNamedOp(rewriter, copy);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : copy.getDpsInputOperands()) {
      auto [tensor, map] =
          readInParts(member, input->getOperandNumber(), copy.getMatchingIndexingMap(input), input->get());
      inputs.push_back(tensor);
      maps.push_back(map);
    }
    AffineMap written = copy.getMatchingIndexingMap(copy.getDpsInitOperand(0));
    int64_t place = placeOf(written, member.dim);
    auto type = cast<RankedTensorType>(expr.op->getResult(0).getType());
    SmallVector<int64_t> shape(type.getShape());
    if (place >= 0)
      shape[place] /= parts;
    shape.insert(shape.begin(), parts);
    maps.push_back(indexInParts(written, -1, /*leads=*/true));
    Value init = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    if (!expr.oneReliesOnOne()) {
      Value start = arith::ConstantOp::create(builder, loc, startOf(member, constantElement(copy.getDpsInits()[0])));
      init = linalg::FillOp::create(builder, loc, start, init).getResult(0);
    }
    SmallVector<utils::IteratorType> iterators = {utils::IteratorType::parallel};
    llvm::append_range(iterators, copy.getIteratorTypesArray());
    auto op = linalg::GenericOp::create(
        builder, loc, init.getType(), inputs, init, maps, iterators,
        [&](OpBuilder &at, Location, ValueRange values) { cloneBody(at, *copy.getBlock(), member, values); });
    if (Attribute before = expr.op->getAttr(kFormAttr))
      op->setAttr(kFormAttr, before);
    else if (!expr.oneReliesOnOne() && (member.sums || member.expr == group.maximum))
      op->setAttr(kFormAttr, form);
    copy.erase();
    return op.getResult(0);
  }

  /// A part may hold nothing but minus infinity, which no exponential is relative to: its maximum is a number.
  TypedAttr startOf(const KeyMember &member, TypedAttr start) const {
    if (member.expr != group.maximum)
      return start;
    auto type = cast<FloatType>(start.getType());
    return FloatAttr::get(type, APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true));
  }

  std::pair<Value, AffineMap> readInParts(const KeyMember &member, unsigned operand, AffineMap map, Value tensor) {
    for (const TensorAccess &read : member.reads)
      if (read.operand == operand) {
        if (Value own = partial.lookup(read.tensor))
          return {own, indexInParts(read.map, -1, /*leads=*/true)};
        int64_t place = placeOf(read.map, member.dim);
        if (place < 0)
          return {read.tensor, indexInParts(read.map, -1, /*leads=*/false)};
        return {cut(read.tensor, place, tensor.getLoc()), indexInParts(read.map, place, /*leads=*/false)};
      }
    return {tensor, map.shiftDims(1)}; // a scalar
  }

  void cloneBody(OpBuilder &at, Block &body, const KeyMember &member, ValueRange values) {
    IRMapping mapping;
    mapping.map(body.getArguments(), values);
    for (Operation &inner : body)
      if (auto index = dyn_cast<linalg::IndexOp>(inner))
        mapping.map(index.getResult(), indexOf(at, inner.getLoc(), index.getDim(), member));
      else
        at.clone(inner, mapping);
  }

  Value indexOf(OpBuilder &at, Location loc, int64_t dim, const KeyMember &member) {
    Value inPart = linalg::IndexOp::create(at, loc, dim + 1);
    if (dim != member.dim)
      return inPart;
    Value size = arith::ConstantIndexOp::create(at, loc, group.keys / parts);
    Value start = arith::MulIOp::create(at, loc, linalg::IndexOp::create(at, loc, 0), size);
    return arith::AddIOp::create(at, loc, start, inPart);
  }

  using Body = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

  /// Over the parts of the inputs, from where the op starts. Its result is that of the op.
  Value combine(Operation *op, ArrayRef<Value> inputs, ArrayRef<AffineMap> indices, Body body) {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    TypedAttr number = constantElement(cast<linalg::LinalgOp>(op).getDpsInits()[0]);
    Value start = arith::ConstantOp::create(builder, loc, number);
    Value init = linalg::FillOp::create(builder, loc, start, empty).getResult(0);
    SmallVector<utils::IteratorType> iterators(type.getRank() + 1, utils::IteratorType::parallel);
    iterators[0] = utils::IteratorType::reduction;
    SmallVector<AffineMap> maps(indices);
    maps.push_back(builder.getMultiDimIdentityMap(type.getRank() + 1).dropResult(0));
    auto reduced = linalg::GenericOp::create(builder, loc, type, inputs, init, maps, iterators,
                                             [&](OpBuilder &at, Location own, ValueRange values) {
                                               linalg::YieldOp::create(at, own, body(at, own, values));
                                             });
    reduced->setAttr(kFormAttr, form);
    return reduced.getResult(0);
  }

  /// The exponentials are in the sum's own nest: what a part's kernel leaves must not wait for the maximum of all.
  void finish(const KeyMember &member, Value maxima, Value maximum) {
    Value before = resultOf(member), own = partial[before];
    AffineMap ofMaximum = member.maximum.shiftDims(1);
    SmallVector<AffineMap> indices = {identity(own), indexInParts(member.maximum, -1, /*leads=*/true), ofMaximum};
    Value sum = combine(graph.exprs()[member.expr].op, {own, maxima, maximum}, indices,
                        [&](OpBuilder &at, Location loc, ValueRange values) {
                          Value above = arith::SubFOp::create(at, loc, values[2], values[1]);
                          Value divisor = math::ExpOp::create(at, loc, above); // infinite: the part counts nothing
                          Value term = arith::DivFOp::create(at, loc, values[0], divisor);
                          return arith::AddFOp::create(at, loc, values[3], term).getResult();
                        });
    replaceBehind(before, sum);
  }

  void replaceBehind(Value before, Value after) {
    before.replaceUsesWithIf(after, [&](OpOperand &use) { return last->isBeforeInBlock(use.getOwner()); });
  }

  const TensorGraph &graph;
  const KeyGroup &group;
  int64_t parts;
  Operation *last;
  OpBuilder builder;
  StringAttr form;
  llvm::DenseMap<Value, Value> partial;
  std::map<std::pair<const void *, int64_t>, Value> views;
};
} // namespace

void tilewright::splitKeys(const TensorGraph &graph, const KeyGroup &group, int64_t parts, StringRef form) {
  KeySplitter(graph, group, parts, form).run();
}

//===----------------------------------------------------------------------===//
// The decision
//===----------------------------------------------------------------------===//

namespace {
constexpr int64_t kLeastKeys = 64; ///< of a part
constexpr double kClearly = 0.8;   ///< of the time of one part

/// The group alone, in a function of its own.
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

  /// Nothing if the planner does not take all of it.
  std::optional<double> seconds(const Target &target, int64_t parts, bool gridSync) {
    if (parts > 1) {
      TensorGraph graph = TensorGraph::build(*body);
      KeyGroup group = findKeyGroup(graph, graph.indexOf(maximum));
      if (!group.reason.empty())
        return std::nullopt;
      splitKeys(graph, group, parts, kPartsOfRowsForm);
      eraseDead(*body);
    }
    TensorGraph graph = TensorGraph::build(*body);
    PlanOptions options;
    options.gridSync = gridSync;
    return plannedSeconds(graph, target, options);
  }

  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  static Operation *last(const TensorGraph &graph, const KeyGroup &group) {
    return graph.exprs()[group.members.back().expr].op;
  }

  /// With what starts its sums, and the views that it reads through; everything else is given.
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

KeySplit tilewright::decideKeySplit(const TensorGraph &graph, const KeyGroup &group, const Target &target,
                                    bool gridSync) {
  KeySplit best;
  if (best.reason = group.reason; !best.reason.empty())
    return best;
  const TensorExpr &maximum = graph.exprs()[group.maximum];
  if (maximum.domainSize() / group.keys > 2 * target.cores) {
    best.reason = "its rows fill the device";
    return best;
  }
  std::optional<double> one = GroupTrial(graph, group).seconds(target, 1, gridSync);
  if (!one) {
    best.reason = "the planner leaves part of it to IREE";
    return best;
  }
  best.oneSeconds = best.twoSeconds = *one;
  for (int64_t parts = 2; group.keys / parts >= kLeastKeys; parts *= 2) {
    if (group.keys % parts != 0)
      break;
    std::optional<double> seconds = GroupTrial(graph, group).seconds(target, parts, gridSync);
    if (seconds && *seconds < std::min(best.twoSeconds, kClearly * *one)) {
      best.parts = parts;
      best.twoSeconds = *seconds;
    }
  }
  if (best.parts == 1)
    best.reason = "parts of its keys are not predicted to take clearly less time";
  return best;
}

std::string KeySplit::form() const {
  return llvm::formatv("{0} ({1} parts: {2:f1} us predicted, one: {3:f1} us)", kPartsOfRowsForm, parts,
                       twoSeconds * 1e6, oneSeconds * 1e6);
}

void KeySplit::print(llvm::raw_ostream &os) const {
  if (parts > 1)
    os << "keys in " << parts << " parts";
  else
    os << "keys in one part: " << reason;
  if (oneSeconds > 0)
    os << llvm::format(" (one part %.3g us, several %.3g us)", oneSeconds * 1e6, twoSeconds * 1e6);
}

// Chooses the scope of every edge inside a fusion group. Reductions hand their results over at block scope. Movement
// gets a buffer only if lanes could not be loaded from its source. An elementwise value is computed in registers by the
// nest that reads it; if several nests read it, or if it leaves the kernel as well, it is buffered if it is expensive
// and recomputed from staged inputs if it is cheap. If one nest evaluates a value more often than it has elements
// (windows, repeated elements), the kernel is predicted both ways.
#include "passes/plan/scopes/ChooseScopes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "passes/backend/Backend.h"
#include "passes/cost/Confidence.h"
#include "passes/graph/Bindings.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/MovementSource.h"
#include "passes/layout/OperandAccess.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/tiling/FindIterationSpace.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/Strides.h"
#include "passes/support/WorkNotes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tilewright;

namespace {
class ScopeChooser {
public:
  ScopeChooser(const TensorGraph &graph, ArrayRef<unsigned> exprs, bool threadOnly, const Target &target)
      : graph(graph), threadOnly(threadOnly), smallValue(target.costs.common.smallValue) {
    part.exprs.assign(exprs.begin(), exprs.end());
    // Contractions do not count: they read every element many times, so their points do not compare with those of other
    // nests.
    for (unsigned expr : exprs)
      if (graph.exprs()[expr].kind != ExprKind::contraction)
        largest = std::max(largest, graph.exprs()[expr].domainSize());
  }

  llvm::DenseMap<unsigned, EdgeChoice> choose() {
    for (unsigned expr : llvm::reverse(part.exprs))
      chooseFor(expr);
    return std::move(edges);
  }

private:
  using Nests = llvm::SmallSet<unsigned, 4>;

  void chooseFor(unsigned expr) {
    Nests readers;
    SmallVector<unsigned> inside;
    for (unsigned edge : graph.outEdges(expr)) {
      unsigned consumer = graph.edges()[edge].consumer;
      if (!part.contains(consumer))
        continue;
      inside.push_back(edge);
      for (unsigned nest : nestsOf[consumer])
        readers.insert(nest);
    }
    bool leaves = llvm::any_of(graph.exprs()[expr].op->getResults(),
                               [&](Value value) { return leavesGroup(graph, part, value); });
    EdgeChoice choice = decide(expr, readers, leaves);
    for (unsigned edge : inside)
      edges[edge] = choice;
    Nests &own = nestsOf[expr];
    if (leaves || choice.scope == tile::Scope::block)
      own.insert(expr);
    if (choice.scope == tile::Scope::thread)
      own.insert(readers.begin(), readers.end());
  }

  EdgeChoice decide(unsigned expr, const Nests &readers, bool leaves) const {
    using tile::Scope;
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    if (!tensorExpr.oneReliesOnOne())
      return {Scope::block, false, "a reduction: later nests read the finished tile"};
    if (tensorExpr.kind == ExprKind::movement && liesAcrossLanes(expr))
      return {Scope::block, false,
              "a contraction reads it along its lanes and the tensor lies across them: laid out once"};
    if (tensorExpr.kind == ExprKind::movement && smallValue * tensorExpr.domainSize() <= largest && wrapsRows(expr))
      return {Scope::block, false, "its short rows repeat along a longer one: laid out once for the tile"};
    if (tensorExpr.kind == ExprKind::movement)
      return {Scope::thread, true, "movement: its readers compute the index instead"};
    if (feedsContraction(expr))
      return {Scope::block, false, "a contraction reads each element many times: computed once for its tile"};
    if (threadOnly)
      return {Scope::thread, true, "recomputed where it is read: predicted to be faster than buffering it"};
    if (leaves)
      return {Scope::block, false, "it is also stored for readers outside the kernel: computed once"};
    if (readers.size() <= 1) {
      bool slower = !readers.empty() && tensorExpr.domainSize() < largest;
      return {Scope::thread, slower, "one nest reads it: it stays in registers"};
    }
    std::string nests = std::to_string(readers.size()) + " nests read it";
    if (smallValue * tensorExpr.domainSize() <= largest)
      return {Scope::thread, true, nests + " and it is small compared with them: recomputed in each, once a row"};
    if (isDear(expr))
      return {Scope::block, false, nests + " and it needs a division or a transcendental function: computed once"};
    if (isFullSize(tensorExpr.domainSize()) && numFullSizeSources(expr) >= 2)
      return {Scope::block, false, nests + " and it combines several tensors: one buffer instead of several"};
    return {Scope::thread, true, nests + " and it is cheap: recomputed in each"};
  }

  /// Returns true if a contraction of the group reads the expression, directly or through movement.
  bool feedsContraction(unsigned expr) const {
    return llvm::any_of(graph.outEdges(expr), [&](unsigned edge) {
      unsigned consumer = graph.edges()[edge].consumer;
      const TensorExpr &reader = graph.exprs()[consumer];
      return part.contains(consumer) && (reader.kind == ExprKind::contraction ||
                                         (reader.kind == ExprKind::movement && feedsContraction(consumer)));
    });
  }

  /// Returns true if a contraction of the group loads its lanes from the result of this movement, and the movement's
  /// source is not contiguous along them.
  bool liesAcrossLanes(unsigned expr) const {
    return llvm::any_of(graph.outEdges(expr), [&](unsigned edge) {
      const TensorEdge &entry = graph.edges()[edge];
      const TensorExpr &reader = graph.exprs()[entry.consumer];
      if (!part.contains(entry.consumer) || reader.kind != ExprKind::contraction || reader.inputs.size() != 2)
        return false;
      auto roles = contractionRoles(reader, reader.inputs[0].map, reader.inputs[1].map);
      return roles && roles->rhsInput == entry.input &&
             contiguousDim(accessBehind(reader, reader.inputs[entry.input])) != roles->n;
    });
  }

  /// Returns true for a reshape whose rows repeat the elements of a shorter row over and over.
  bool wrapsRows(unsigned expr) const {
    const TensorExpr &view = graph.exprs()[expr];
    if (!isa<tensor::CollapseShapeOp>(view.op))
      return false;
    return llvm::any_of(graph.inEdges(expr), [&](unsigned edge) {
      const TensorEdge &entry = graph.edges()[edge];
      TensorAccess behind = accessBehind(view, view.inputs[entry.input]);
      bool repeats = cast<RankedTensorType>(behind.tensor.getType()).getNumElements() < view.domainSize();
      return repeats && llvm::any_of(behind.map.getResults(), [](AffineExpr index) {
               return index.getKind() == AffineExprKind::Mod || index.getKind() == AffineExprKind::FloorDiv;
             });
    });
  }

  /// Returns a reader's access to the source of movement, as far as the movement belongs to the group.
  TensorAccess accessBehind(const TensorExpr &reader, const TensorAccess &access) const {
    return tilewright::accessBehind(graph, reader, access, [&](unsigned movement) { return part.contains(movement); });
  }

  bool isFullSize(int64_t size) const { return 2 * size > largest; }

  bool isDear(unsigned expr) const {
    return llvm::any_of(chain(expr), [&](unsigned member) { return specialOps(graph.exprs()[member]) > 0; });
  }

  /// Returns the expression and the one-relies-on-one expressions of its size that recomputing it would recompute.
  SmallVector<unsigned> chain(unsigned expr) const {
    SmallVector<unsigned> members = {expr};
    for (size_t i = 0; i < members.size(); ++i)
      for (unsigned edge : graph.inEdges(members[i])) {
        unsigned producer = graph.edges()[edge].producer;
        const TensorExpr &tensorExpr = graph.exprs()[producer];
        if (part.contains(producer) && tensorExpr.oneReliesOnOne() &&
            2 * tensorExpr.domainSize() > graph.exprs()[expr].domainSize() && !llvm::is_contained(members, producer))
          members.push_back(producer);
      }
    return members;
  }

  /// Returns the number of tensors of full size that recomputing the expression would read.
  unsigned numFullSizeSources(unsigned expr) const {
    SmallVector<unsigned> members = chain(expr);
    llvm::DenseSet<Value> sources;
    for (unsigned member : members)
      for (const TensorAccess &access : graph.exprs()[member].inputs) {
        Operation *definition = access.tensor.getDefiningOp();
        int64_t producer = definition ? graph.indexOf(definition) : -1;
        bool recomputed = producer >= 0 && llvm::is_contained(members, static_cast<unsigned>(producer));
        if (!recomputed && isFullSize(cast<RankedTensorType>(access.tensor.getType()).getNumElements()))
          sources.insert(access.tensor);
      }
    return sources.size();
  }

  const TensorGraph &graph;
  bool threadOnly;
  int64_t smallValue; ///< a value is small if the largest nest has this many times its points
  GroupChoice part;
  int64_t largest = 1;                     ///< points of the largest nest, contractions excluded
  llvm::DenseMap<unsigned, Nests> nestsOf; ///< loop nests that evaluate an expression
  llvm::DenseMap<unsigned, EdgeChoice> edges;
};
} // namespace

llvm::DenseMap<unsigned, EdgeChoice> tilewright::chooseScopes(const TensorGraph &graph, ArrayRef<unsigned> exprs,
                                                              bool threadOnly, const Target &target) {
  return ScopeChooser(graph, exprs, threadOnly, target).choose();
}

//===----------------------------------------------------------------------===//
// Values that are evaluated more often than they have elements
//===----------------------------------------------------------------------===//

namespace {
/// Windows, gathers, repeated elements and broadcasts along an outer loop make a nest evaluate a value once for each
/// point that reads it. A buffer between the two evaluates it once per element. The iteration space decides what the
/// buffer costs and if it fits.
class RepeatedValues {
public:
  RepeatedValues(const TensorGraph &graph, const PlannedGroup &part, const Target &target)
      : graph(graph), part(part), target(target) {
    for (const GroupRoot &root : part.space.roots) {
      llvm::SmallMapVector<unsigned, double, 8> evaluations;
      NestLoops loops(graph, part.space, root);
      for (const Evaluation &evaluation : root.evaluated)
        evaluations[evaluation.expr] += loops.pointsEvaluated(evaluation);
      for (auto [expr, points] : evaluations)
        if (expr != root.expr && graph.exprs()[expr].arithmetic() > 0)
          add(expr, points * part.space.timesComputed(root));
    }
  }

  /// Returns the scopes with repeated values handed over at scope block instead, if their repetition takes enough of
  /// the kernel's time.
  std::optional<llvm::DenseMap<unsigned, EdgeChoice>> kept() const {
    double without = part.predicted.seconds - seconds;
    if (!isFaster(without, part.predicted.seconds, target.costs.confidence.forms))
      return std::nullopt;
    llvm::DenseMap<unsigned, EdgeChoice> edges = part.edges;
    for (unsigned expr : repeated)
      if (!isOfRepeated(expr))
        for (unsigned edge : graph.outEdges(expr))
          if (auto choice = edges.find(edge); choice != edges.end())
            choice->second = {tile::Scope::block, false,
                              "its readers use each element several times: computed once, in a buffer"};
    return edges;
  }

private:
  void add(unsigned id, double points) {
    const TensorExpr &expr = graph.exprs()[id];
    double size = expr.domainSize();
    if (points < target.costs.confidence.repeatedValues * size)
      return;
    repeated.insert(id);
    double ofPoint = expr.arithmetic() / size * 2 / target.flopsPerSecond + specialOps(expr) / target.specialPerSecond;
    seconds += (points - size) * ofPoint;
  }

  /// Returns true if the value is repeated only because its readers are, so that a buffer for them suffices.
  bool isOfRepeated(unsigned expr) const {
    if (llvm::any_of(part.space.roots, [&](const GroupRoot &root) { return root.expr == expr; }))
      return false;
    return llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
      auto choice = part.edges.find(edge);
      unsigned consumer = graph.edges()[edge].consumer;
      return choice != part.edges.end() && choice->second.scope == tile::Scope::thread &&
             (repeated.contains(consumer) ||
              (graph.exprs()[consumer].kind == ExprKind::movement && isOfRepeated(consumer)));
    });
  }

  const TensorGraph &graph;
  const PlannedGroup &part;
  const Target &target;
  llvm::SmallSetVector<unsigned, 8> repeated;
  double seconds = 0; ///< time that evaluating them more than once takes
};
} // namespace

/// Chooses scopes for a target. Movement never gets a buffer where kernels read their operands in either order.
static llvm::DenseMap<unsigned, EdgeChoice> scopesOn(const Target &target, const TensorGraph &graph,
                                                     ArrayRef<unsigned> exprs, bool threadOnly) {
  llvm::DenseMap<unsigned, EdgeChoice> edges = tilewright::chooseScopes(graph, exprs, threadOnly, target);
  if (!target.traits.readsTransposed)
    return edges;
  for (auto &[edge, choice] : edges)
    if (graph.exprs()[graph.edges()[edge].producer].kind == ExprKind::movement)
      choice = {tile::Scope::thread, true, "movement: its readers compute the index instead"};
  return edges;
}

/// Returns true if points of the domain may share an index, as those of overlapping windows do. A dim that was split,
/// such as heads of rows, gives each point an index of its own.
static bool isWindow(AffineExpr index, unsigned numDims, ArrayRef<int64_t> domain) {
  SmallVector<std::pair<int64_t, int64_t>> steps; ///< stride and extent of each dim
  AffineMap map = AffineMap::get(numDims, 0, index);
  for (unsigned dim = 0; dim < numDims; ++dim)
    if (index.isFunctionOfDim(dim) && domain[dim] > 1) {
      std::optional<int64_t> stride = strideAlong(map, {1}, dim);
      if (!stride)
        return false; // a quotient or a remainder of a dim that was merged
      steps.push_back({std::abs(*stride), domain[dim]});
    }
  llvm::sort(steps);
  int64_t span = 1;
  for (auto [stride, extent] : steps) {
    if (stride < span)
      return true;
    span += stride * (extent - 1);
  }
  return false;
}

/// Returns true if a nest reads what another one left in a buffer under a guard or through windows.
static bool readsBufferedWindows(const RootAccess &access, ArrayRef<int64_t> domain) {
  return access.producer >= 0 &&
         (access.guard != IntegerSet() || llvm::any_of(access.map.getResults(), [&](AffineExpr index) {
            return isWindow(index, access.map.getNumDims(), domain);
          }));
}

/// Returns true if register blocks of a CPU can read lhs under its guard: whole runs of channels are inside or outside,
/// so that an address is chosen once for all of their steps along K.
static bool readsUnderGuard(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles,
                            const Target &target, NumericsMode numerics) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  const RootAccess &lhs = root.accesses[roles.lhsInput];
  std::optional<MicroKernel> kernel = microKernelFor(graph, root, target, numerics);
  if (root.accesses[roles.rhsInput].guard != IntegerSet() || expr.reductions.size() != 1 || !kernel ||
      kernel->unit != StepUnit::vector)
    return false;
  auto type = cast<RankedTensorType>(lhs.tensor.getType());
  OperandAccess access{lhs.map,     type.getShape(), tile::elementBytes(type.getElementType()),
                       expr.domain, expr.domain,     lhs.guard};
  int64_t k = expr.reductions[0], run = target.costs.cpu.guardedRun;
  return access.alignedElements(k, run) == run && access.isGuardedByRuns(k, run);
}

/// Returns true for a pad with another number than zero, which copies of operands do not fill in.
static bool padsWithNumber(const TensorExpr &expr) {
  auto pad = dyn_cast<tensor::PadOp>(expr.op);
  TypedAttr value = pad ? constantElement(pad.getConstantPaddingValue()) : TypedAttr();
  return value && value != Builder(value.getContext()).getZeroAttr(value.getType());
}

/// Returns why no register block can compute a contraction of the group, if none can. Where a thread fills the lanes of
/// vectors, the micro kernel loads whole vectors along them.
static std::optional<Declined> whyNoRegisterBlock(const TensorGraph &graph, const IterationSpace &space,
                                                  const Target &target) {
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    if (expr.kind != ExprKind::contraction)
      continue;
    std::optional<ContractionRoles> roles = rolesOf(graph, root);
    if (!roles)
      return Declined{"both operands of its contraction, or none, change along the innermost dim of the result",
                      "a layout of the result whose innermost dim comes from one operand"};
    bool isGuarded = llvm::any_of(root.accesses, [](const RootAccess &access) { return access.guard != IntegerSet(); });
    if (isGuarded && !target.traits.threadBlocks && // blocks copy their operands, with zeros outside of the guard
        !readsUnderGuard(graph, root, *roles, target, space.numerics))
      return Declined{"its contraction would read an operand under a guard", "a pad that is stored"};
    if (llvm::any_of(root.evaluated,
                     [&](const Evaluation &evaluation) { return padsWithNumber(graph.exprs()[evaluation.expr]); }))
      return Declined{"its contraction would read a pad with another number than zero", "a pad that is stored"};
    auto readsWindows = [&](const RootAccess &access) { return readsBufferedWindows(access, expr.domain); };
    if (target.traits.threadBlocks && llvm::any_of(root.accesses, readsWindows))
      return Declined{"its contraction would read windows of a buffer", "an image that is stored"};
    if (target.lanes() == 1)
      continue;
    int64_t n = root.dims[roles->n];
    if (n != space.vector && llvm::is_contained(space.grid, n))
      return Declined{"its contraction's lanes would be cut into tiles that are no whole vectors",
                      "a dim of lanes that is a multiple of the vector"};
    if (!liesAlongLanes(graph, root, *roles, target))
      return Declined{"the elements that its contraction multiplies with lie across the lanes",
                      "an operand that is stored transposed"};
  }
  return std::nullopt;
}

OrDeclined<PlannedGroup> tilewright::planGroupWith(const GroupProblem &problem, ArrayRef<unsigned> exprs,
                                                   llvm::DenseMap<unsigned, EdgeChoice> edges, RowPlacement rows) {
  const TensorGraph &graph = problem.graph;
  const Target &target = problem.target;
  noteWork(graph.exprs()[exprs.back()].op);
  if (std::optional<Declined> why = whyNotGathered(graph, exprs))
    return *why;
  PlannedGroup part;
  part.choice.exprs.assign(exprs.begin(), exprs.end());
  part.edges = std::move(edges);
  for (auto &[edge, choice] : part.edges)
    part.choice.scopes[edge] = choice.scope;
  OrDeclined<IterationSpace> space = findIterationSpace(graph, part.choice, target, problem.numerics, rows);
  if (!space)
    return space.why();
  part.space = std::move(*space);
  if (std::optional<Declined> why = whyNoRegisterBlock(graph, part.space, target))
    return *why;
  int64_t bindings = countBindings(part.space.inputs, part.space.outputs, [](Value) { return false; }, target);
  if (bindings > target.maxBindings)
    return Declined{std::to_string(bindings) + " bindings; the target has " + std::to_string(target.maxBindings),
                    kRoomierTarget.str()};
  part.work = workOf(graph, part.space, target);
  part.predicted = estimate(part.work, target);
  return part;
}

/// Returns the group with repeated values in buffers, if it is then predicted to take clearly less time.
static std::optional<PlannedGroup> keepRepeated(const GroupProblem &problem, const PlannedGroup &part,
                                                RowPlacement rows) {
  std::optional<llvm::DenseMap<unsigned, EdgeChoice>> edges =
      RepeatedValues(problem.graph, part, problem.target).kept();
  if (!edges)
    return std::nullopt;
  OrDeclined<PlannedGroup> kept = planGroupWith(problem, part.choice.exprs, *edges, rows);
  if (!kept || !isFaster(kept->predicted.seconds, part.predicted.seconds, problem.target.costs.confidence.forms))
    return std::nullopt;
  return std::move(*kept);
}

OrDeclined<PlannedGroup> tilewright::planGroupAnew(const GroupProblem &problem, ArrayRef<unsigned> exprs,
                                                   RowPlacement rows) {
  const TensorGraph &graph = problem.graph;
  OrDeclined<PlannedGroup> part =
      planGroupWith(problem, exprs, scopesOn(problem.target, graph, exprs, /*threadOnly=*/false), rows);
  bool keepsElementwise = !part || llvm::any_of(part->choice.scopes, [&](auto &entry) {
    return entry.second == tile::Scope::block && graph.exprs()[graph.edges()[entry.first].producer].oneReliesOnOne();
  });
  if (keepsElementwise) {
    OrDeclined<PlannedGroup> other =
        planGroupWith(problem, exprs, scopesOn(problem.target, graph, exprs, /*threadOnly=*/true), rows);
    if (!part || (other && other->predicted.seconds < part->predicted.seconds))
      part = std::move(other);
  }
  if (part)
    if (std::optional<PlannedGroup> kept = keepRepeated(problem, *part, rows))
      return std::move(*kept);
  return part;
}

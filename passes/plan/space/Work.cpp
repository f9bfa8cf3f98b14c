#include "passes/plan/space/Work.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/ElementBytes.h"
#include "passes/graph/Eligibility.h"
#include "passes/layout/Blocking.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/OverlappingWindows.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/Strides.h"
#include "passes/target/AccessBytes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tilewright;

/// Returns an upper bound on the bytes of a tensor that are read at `points` points of a domain.
static double touchedBytes(Value tensor, double points) {
  return std::min(static_cast<double>(tensorBytes(tensor)), points * elementBytesOf(tensor));
}

//===----------------------------------------------------------------------===//
// Fusion groups
//===----------------------------------------------------------------------===//

/// Returns the bytes that pass through buffers. A result is written once if later nests read it, and read once by each
/// of them. An input that several nests read is buffered by the first.
static double bufferTraffic(const TensorGraph &graph, const IterationSpace &space) {
  double bytes = 0;
  for (const GroupRoot &root : space.roots) {
    if (space.threads > 0 && (isHandedOver(graph, space, root) || growsInRegisters(graph, space, root)))
      continue;
    for (Value result : graph.exprs()[root.expr].op->getResults())
      if (size_t readers = space.readingNests(result).size())
        bytes +=
            static_cast<double>(tensorBytes(result)) * (readers + space.timesComputed(root)) * space.visitedShare(root);
  }
  for (Value input : space.inputs)
    if (size_t readers = space.readingNests(input).size(); readers > 1)
      bytes += static_cast<double>(tensorBytes(input)) * readers;
  return bytes;
}

namespace {
/// Adds the cost of accesses that are not contiguous: elements gathered one by one, and cache lines that a tile only
/// partly uses.
class AccessPenalty {
public:
  AccessPenalty(const TensorGraph &graph, const IterationSpace &space, const CpuCosts &costs, GroupWork &work)
      : graph(graph), space(space), costs(costs), work(work) {
    laidForLanes = isCpu() && llvm::none_of(space.roots, [&](const GroupRoot &root) {
                     return graph.exprs()[root.expr].kind == ExprKind::contraction;
                   });
  }

  void add() {
    for (const GroupRoot &root : space.roots) {
      if (graph.exprs()[root.expr].kind == ExprKind::contraction)
        continue;
      for (const RootAccess &access : root.accesses)
        if (access.gathered)
          addTable(root, access.map);
        else if (!isInBuffer(root, access))
          add(root, access.map, access.tensor, /*isRead=*/true);
      const TensorExpr &expr = graph.exprs()[root.expr];
      for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results))
        if (!laidForLanes || llvm::is_contained(space.outputs, result))
          add(root, map, result, /*isRead=*/false);
    }
  }

private:
  /// Returns true if the root reads a buffer whose layout is contiguous along the lanes: a tile of a result, or of an
  /// input that an earlier nest has buffered.
  bool isInBuffer(const GroupRoot &root, const RootAccess &access) const {
    auto reads = [&](const GroupRoot &other) {
      return other.nest < root.nest &&
             llvm::any_of(other.accesses, [&](const RootAccess &each) { return each.tensor == access.tensor; });
    };
    bool isKept = llvm::is_contained(space.tileStaged, access.tensor) && llvm::any_of(space.roots, reads);
    return laidForLanes && (access.producer >= 0 || isKept);
  }

  /// Adds the gathers of a table, unless lanes read neighbouring elements of one row.
  void addTable(const GroupRoot &root, AffineMap map) {
    int64_t lane = space.laneDim(root);
    if (lane >= 0 && map.getNumResults() > 0 && pureDim(map.getResults().back()) != lane)
      work.arithmetic += costs.gatherOperations * graph.exprs()[root.expr].domainSize() * space.timesComputed(root);
  }

  void add(const GroupRoot &root, AffineMap map, Value tensor, bool isRead) {
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t lane = space.laneDim(root), innermost = type.getRank() - 1;
    while (innermost >= 0 && type.getDimSize(innermost) == 1)
      --innermost;
    if (innermost < 0 || lane < 0 || !map.isFunctionOfDim(lane))
      return;
    double points = graph.exprs()[root.expr].domainSize(),
           computed = points * space.timesComputed(root) * space.visitedShare(root);
    if (int64_t apart = isRead && isCpu() ? strideOf(map, innermost, lane) : 0; apart > 1 && apart <= costs.stridedLanes) {
      work.arithmetic += costs.stridedOperations * apart * computed;
      work.blockBytes += touchedBytes(tensor, points) * (apart - 1);
      return;
    }
    int64_t contiguous = unitStrideDim(map.getResult(innermost));
    if (contiguous != lane) {
      bool turned = isCopy(root) || (isCpu() && isTurned(root, contiguous, lane, elementBytesOf(tensor)));
      work.arithmetic += (turned ? costs.transposeOperations : costs.gatherOperations) * computed;
    }
    int64_t place = contiguous < 0 ? -1 : root.dims[contiguous];
    int64_t run = (place < 0 ? 1 : space.tiles[place]) * elementBytesOf(tensor);
    if (run < kCpuLineBytes && type.getDimSize(innermost) * elementBytesOf(tensor) > run)
      work.blockBytes += touchedBytes(tensor, points) * (static_cast<double>(kCpuLineBytes) / run - 1);
  }

  bool isCpu() const { return space.threads == 0; }

  /// Returns the elements between neighbouring lanes; 0 if they vary or do not stay within the innermost dim.
  static int64_t strideOf(AffineMap map, int64_t innermost, int64_t lane) {
    AffineExpr index = map.getResult(innermost), along = getAffineDimExpr(lane, map.getContext());
    for (auto [position, other] : llvm::enumerate(map.getResults()))
      if (static_cast<int64_t>(position) != innermost && other.isFunctionOfDim(lane))
        return 0;
    auto step = dyn_cast<AffineConstantExpr>(
        simplifyAffineExpr(index.replace(along, along + 1) - index, map.getNumDims(), map.getNumSymbols()));
    return step ? step.getValue() : 0;
  }

  /// Returns true if code generation transposes tiles of the access in registers (tile-stage-transposes).
  bool isTurned(const GroupRoot &root, int64_t contiguous, int64_t lane, int64_t elementBytes) const {
    auto sizeOf = [&](int64_t dim) { return dim < 0 || root.dims[dim] < 0 ? 1 : space.tiles[root.dims[dim]]; };
    return elementBytes >= costs.transposedBytes && sizeOf(lane) >= costs.transposedLanes && sizeOf(contiguous) > 1;
  }

  bool isCopy(const GroupRoot &root) const {
    return root.accesses.size() == 1 && llvm::all_of(root.evaluated, [&](const Evaluation &evaluation) {
             return graph.exprs()[evaluation.expr].kind == ExprKind::movement;
           });
  }

  const TensorGraph &graph;
  const IterationSpace &space;
  const CpuCosts &costs;
  GroupWork &work;
  bool laidForLanes; ///< true if buffers are contiguous along the lanes (see PartSlices)
};
} // namespace

/// Adds a contraction's multiply-adds, each of which is one operation of the micro kernel. Each register block of rows
/// loads the rhs panel again, so a block with few rows takes as long as that load.
static void addMultiplications(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root,
                               GroupWork &work) {
  std::optional<ContractionRoles> roles = rolesOf(graph, root);
  int64_t place = roles && roles->m >= 0 ? root.dims[roles->m] : -1;
  int64_t extent = place < 0 ? 1 : space.extents[place], tile = place < 0 ? 1 : space.tiles[place];
  const TensorExpr &expr = graph.exprs()[root.expr];
  if (auto factors = expr.op->getAttrOfType<DenseElementsAttr>(kFactorsAttr)) { // nothing is multiplied with its zeros
    int64_t products = llvm::count_if(factors.getValues<float>(), [](float factor) { return factor != 0; });
    work.arithmetic += static_cast<double>(expr.domainSize()) * products / factors.getNumElements() / space.speed *
                       space.visitedShare(root);
    return;
  }
  double perRow = static_cast<double>(expr.domainSize()) / extent;
  auto timeOf = [&](int64_t rows) { return rows == 0 ? 0.0 : std::max<double>(rows, space.leastRows); };
  auto blocksOf = [&](int64_t rows) {
    int64_t rest = rows % space.block.rows, both = space.block.rows + rest;
    if (rest == 0 || rows <= space.block.rows || !leavesIdle(rest, space.block.vectors) || extent % tile != 0)
      return rows - rest + timeOf(rest);
    return rows - both + timeOf(both / 2) + timeOf(both - both / 2); // the last two blocks share their rows
  };
  work.arithmetic +=
      perRow * (extent / tile * blocksOf(tile) + blocksOf(extent % tile)) / space.speed * space.visitedShare(root);
}

/// Adds the copies of a matrix whose rows lie apart into panels, which tiles with enough rows make anew. With fewer
/// rows, each register block reads the matrix in place. If nothing prefetches it, that takes as long as the copy at the
/// number of rows where copies begin to pay.
static void addPanelCopies(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root,
                           const ContractionRoles &roles, const CpuCosts &costs, GroupWork &work) {
  const RootAccess &rhs = root.accesses[roles.rhsInput];
  int64_t m = roles.m < 0 ? -1 : root.dims[roles.m];
  ArrayRef<int64_t> reduced = graph.exprs()[root.expr].reductions;
  if (space.rowsToCopy == 0 || m < 0 || reduced.size() != 1 || panelWidth(rhs.map, roles.n))
    return;
  auto type = cast<RankedTensorType>(rhs.tensor.getType());
  std::optional<int64_t> apart = strideAlong(rhs.map, denseStrides(type.getShape()), reduced[0]);
  if (apart == space.block.vectors * space.lanes)
    return; // the matrix is one panel
  double copies = 1;
  if (space.tiles[m] < space.rowsToCopy)
    copies = apart && *apart * elementBytesOf(rhs.tensor) <= costs.prefetchedStride
                 ? 0
                 : static_cast<double>(space.tiles[m]) / space.rowsToCopy;
  for (int64_t place : space.grid) {
    auto dim = llvm::find(root.dims, place);
    if (dim == root.dims.end() || !rhs.map.isFunctionOfDim(dim - root.dims.begin()))
      copies *= llvm::divideCeil(space.extents[place], space.tiles[place]);
  }
  work.arithmetic += costs.panelCopyOperations * copies * space.visitedShare(root) *
                     static_cast<double>(type.getNumElements());
}

/// Adds the bytes of a tensor that a root reads again, since tiles differ in grid dims along which the tensor does not
/// change. Between two such reads, the tiles along the inner dims read the rest. If a core's private cache holds that
/// rest beside the buffers, the reads count as block memory. This holds only for rhs, which is read panel by panel;
/// each tile starts its lhs rows anew.
static void addRepeatedReads(const IterationSpace &space, const GroupRoot &root, const RootAccess &access, bool isLanes,
                             const CpuCosts &costs, GroupWork &work) {
  double inside = tensorBytes(access.tensor), all = inside;
  double reads = 1, distant = 1; ///< reads of the whole tensor; reads that miss the private cache
  for (int64_t place : space.grid) {
    double count = llvm::divideCeil(space.extents[place], space.tiles[place]);
    auto dim = llvm::find(root.dims, place);
    if (dim != root.dims.end() && access.map.isFunctionOfDim(dim - root.dims.begin())) {
      inside /= count;
      continue;
    }
    reads *= count;
    if (!isLanes || inside + space.footprintBytes > costs.usableCache * space.cacheBytes)
      distant *= count;
  }
  work.repeatedBytes += (distant - 1) * all;
  work.blockBytes += (reads - distant) * all;
}

/// Returns the points of the grid as a fraction of the points its tiles would have if none were cut at the border.
static double filledShare(const IterationSpace &space) {
  double share = 1;
  for (int64_t place : space.grid)
    share *= static_cast<double>(space.extents[place]) /
             (llvm::divideCeil(space.extents[place], space.tiles[place]) * space.tiles[place]);
  return share;
}

static void addContractions(const TensorGraph &graph, const IterationSpace &space, const CpuCosts &costs,
                            GroupWork &work) {
  for (const GroupRoot &root : space.roots) {
    if (graph.exprs()[root.expr].kind != ExprKind::contraction)
      continue;
    work.tiles = space.numTiles();
    work.filled = filledShare(space);
    addMultiplications(graph, space, root, work);
    if (space.threads > 0)
      continue; // on a GPU the L2 serves the repeated reads of all blocks; latencySeconds accounts for them
    std::optional<ContractionRoles> roles = rolesOf(graph, root);
    if (roles)
      addPanelCopies(graph, space, root, *roles, costs, work);
    for (auto [input, access] : llvm::enumerate(root.accesses))
      if (access.producer < 0)
        addRepeatedReads(space, root, access, roles && roles->rhsInput == input, costs, work);
  }
}

/// Adds the traffic of accumulators along a walked dim. They are read and written for each block, twice if they are
/// rescaled.
static void addWalk(const TensorGraph &graph, const IterationSpace &space, GroupWork &work) {
  int64_t dim = walkedDim(space.extents, space.tiles, space.grid);
  double blocks = space.blocksPerTile() * space.countedShare();
  for (const GroupRoot &root : space.roots)
    if (space.blocksPerTile() > 1 && !(space.threads > 0 && growsInRegisters(graph, space, root)) &&
        llvm::any_of(graph.exprs()[root.expr].reductions, [&](int64_t reduced) { return root.dims[reduced] == dim; })) {
      Value result = graph.exprs()[root.expr].op->getResult(0);
      work.blockBytes += 4.0 * tensorBytes(result) * blocks;
      work.arithmetic += static_cast<double>(cast<RankedTensorType>(result.getType()).getNumElements()) * blocks;
    }
}

/// Adds the horizontal reductions that end each reduction along the lanes.
static void addLaneReductions(const TensorGraph &graph, const IterationSpace &space, const CpuCosts &costs,
                              GroupWork &work) {
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    if (space.threads > 0 || expr.kind == ExprKind::contraction ||
        !llvm::is_contained(expr.reductions, space.laneDim(root)))
      continue;
    for (Value result : expr.op->getResults())
      work.arithmetic += costs.laneReductionOperations *
                         static_cast<double>(cast<RankedTensorType>(result.getType()).getNumElements()) *
                         space.timesComputed(root);
  }
}

/// Returns the slowdown of polynomials whose row is one register, since their steps then wait for each other.
static double waitingFor(const IterationSpace &space, const GroupRoot &root, const CpuCosts &costs) {
  int64_t lane = space.threads > 0 ? -1 : space.laneDim(root), place = lane < 0 ? -1 : root.dims[lane];
  return place >= 0 && space.tiles[place] <= space.lanes ? costs.oneRegisterSlowdown : 1;
}

GroupWork tilewright::workOf(const TensorGraph &graph, const IterationSpace &space, const Target &target) {
  const CostParameters &costs = target.costs;
  GroupWork work;
  work.workgroups = space.workgroups;
  work.footprintBytes = space.footprintBytes;
  work.latencySeconds = space.latencySeconds;
  llvm::MapVector<Value, double> touched;
  for (const GroupRoot &root : space.roots) {
    double points = graph.exprs()[root.expr].domainSize();
    work.barriers = std::max<double>(work.barriers, root.nest);
    for (const RootAccess &access : root.accesses)
      if (access.producer < 0)
        touched[access.tensor] += touchedBytes(access.tensor, points);
    NestLoops loops(graph, space, root);
    double joined = space.threads == 0 && joinsWindows(graph, space, root, target) ? costs.cpu.joinedWindows : 1;
    for (const Evaluation &evaluation : root.evaluated) {
      const TensorExpr &expr = graph.exprs()[evaluation.expr];
      double times = loops.pointsEvaluated(evaluation) / std::max<double>(1, expr.domainSize()) *
                     space.timesComputed(root) * space.visitedShare(root) * space.lanesPerPoint(root);
      if (expr.kind != ExprKind::contraction) {
        work.arithmetic += joined * times * expr.arithmetic();
        work.elementwise +=
            times * (expr.arithmetic() + costs.gpu.polynomialInstructions * polynomials(expr) * expr.domainSize());
      }
      work.special += times * waitingFor(space, root, costs.cpu) * specialOps(expr) * expr.domainSize();
    }
  }
  for (auto &[tensor, bytes] : touched)
    work.inputBytes += std::min(bytes, static_cast<double>(tensorBytes(tensor)));
  for (Value tensor : space.outputs)
    work.outputBytes += tensorBytes(tensor);
  work.blockBytes = bufferTraffic(graph, space);
  addContractions(graph, space, costs.cpu, work);
  addWalk(graph, space, work);
  addLaneReductions(graph, space, costs.cpu, work);
  AccessPenalty(graph, space, costs.cpu, work).add();
  return work;
}

//===----------------------------------------------------------------------===//
// Dispatches of IREE alone
//===----------------------------------------------------------------------===//

namespace {
class IreeModel {
public:
  IreeModel(const TensorGraph &graph, ArrayRef<unsigned> exprs) : graph(graph) {
    for (unsigned expr : exprs)
      assign(expr);
    llvm::erase_if(clusters, [&](ArrayRef<unsigned> cluster) {
      return llvm::all_of(cluster, [&](unsigned expr) { return isView(graph.exprs()[expr]); });
    });
  }
  std::vector<SmallVector<unsigned>> clusters;

private:
  void assign(unsigned expr) {
    int64_t joined = -1;
    for (unsigned edge : graph.inEdges(expr)) {
      unsigned producer = graph.edges()[edge].producer;
      auto known = clusterOf.find(producer);
      if (known != clusterOf.end() && mayJoin(expr, producer, known->second))
        joined = known->second;
    }
    if (joined < 0) {
      joined = clusters.size();
      clusters.emplace_back();
    }
    clusterOf[expr] = joined;
    clusters[joined].push_back(expr);
  }

  bool mayJoin(unsigned expr, unsigned producer, unsigned cluster) const {
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    if (firstReader(producer) != expr)
      return false;
    if (!tensorExpr.oneReliesOnOne() && (hasReduction(cluster) || graph.outEdges(producer).size() > 1))
      return false;
    // No value may leave the dispatch and come back.
    return llvm::none_of(graph.inEdges(expr), [&](unsigned edge) {
      unsigned other = graph.edges()[edge].producer;
      return !llvm::is_contained(clusters[cluster], other) &&
             llvm::any_of(clusters[cluster], [&](unsigned member) { return graph.dependsOn(other, member); });
    });
  }

  bool hasReduction(unsigned cluster) const {
    return llvm::any_of(clusters[cluster], [&](unsigned expr) { return !graph.exprs()[expr].oneReliesOnOne(); });
  }

  unsigned firstReader(unsigned expr) const {
    unsigned first = graph.exprs().size();
    for (unsigned edge : graph.outEdges(expr))
      first = std::min(first, graph.edges()[edge].consumer);
    return first;
  }

  const TensorGraph &graph;
  llvm::DenseMap<unsigned, unsigned> clusterOf;
};
} // namespace

std::vector<SmallVector<unsigned>> tilewright::dispatchesOfIree(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  return IreeModel(graph, exprs).clusters;
}

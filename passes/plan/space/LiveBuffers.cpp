#include "passes/plan/space/LiveBuffers.h"

#include "dialects/tile/TileDialect.h"
#include "passes/layout/BufferLines.h"
#include "passes/graph/Rounding.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/support/BestFit.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

static bool contracts(const TensorGraph &graph, const GroupRoot &root) {
  return graph.exprs()[root.expr].kind == ExprKind::contraction;
}

static bool readsResults(const GroupRoot &root) {
  return llvm::any_of(root.accesses, [](const RootAccess &access) { return access.producer >= 0; });
}

static bool grows(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return walked >= 0 && llvm::any_of(graph.exprs()[root.expr].reductions,
                                     [&](int64_t reduced) { return root.dims[reduced] == walked; });
}

/// Returns true if the numerics allow the expression's accumulation to be regrouped over lanes.
static bool regroups(const TensorExpr &expr, const IterationSpace &space) {
  return llvm::all_of(llvm::zip(combiningKinds(expr), expr.op->getResultTypes()), [&](auto result) {
    auto [kind, type] = result;
    bool inOrder = space.numerics == NumericsMode::strict && isNarrowFloat(getElementTypeOrSelf(type));
    return kind && !(inOrder && isSumOrProduct(kind));
  });
}

/// Returns true if the root reads each accumulator once, at the accumulator's own point. It then reads neither a slice
/// along N nor a permutation.
static bool readsAtTheirPoints(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction,
                               const GroupRoot &reader) {
  AffineMap written = graph.exprs()[contraction.expr].results[0];
  bool repeats = llvm::any_of(reader.dims, [&](int64_t place) {
    return place >= 0 && space.tiles[place] > 1 && !llvm::is_contained(contraction.dims, place);
  });
  auto placeOf = [](const GroupRoot &root, AffineExpr index) {
    int64_t dim = pureDim(index);
    return dim < 0 ? -1 : root.dims[dim];
  };
  return !repeats && llvm::all_of(reader.accesses, [&](const RootAccess &access) {
    return access.producer != static_cast<int64_t>(contraction.expr) ||
           llvm::all_of(llvm::zip(written.getResults(), access.map.getResults()), [&](auto index) {
             int64_t place = placeOf(contraction, std::get<0>(index));
             return place < 0 || place == placeOf(reader, std::get<1>(index));
           });
  });
}

/// Returns true if the root can read a contraction's accumulators from registers: point by point, or in a reduction
/// along N.
static bool takesAccumulators(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction,
                              const GroupRoot &reader) {
  const TensorExpr &expr = graph.exprs()[reader.expr];
  std::optional<ContractionRoles> roles = rolesOf(graph, contraction);
  auto isTaken = [&](size_t dim) {
    bool isLane = reader.dims[dim] >= 0 && reader.dims[dim] == contraction.dims[roles->n];
    bool isReduced = llvm::is_contained(expr.reductions, dim);
    return isLane ? isReduced : !isReduced || expr.domain[dim] == 1;
  };
  bool alongLanes = roles && (expr.oneReliesOnOne() ||
                              (llvm::all_of(llvm::seq(expr.domain.size()), isTaken) && regroups(expr, space)));
  return expr.kind != ExprKind::contraction && alongLanes && readsAtTheirPoints(graph, space, contraction, reader) &&
         llvm::all_of(reader.accesses,
                      [&](const RootAccess &access) {
                        bool takesOthers = access.producer >= 0 &&
                                           static_cast<unsigned>(access.producer) != contraction.expr &&
                                           contracts(graph, space.root(access.producer));
                        return !takesOthers && access.guard == IntegerSet() &&
                               !getElementTypeOrSelf(access.tensor.getType()).isInteger(1);
                      }) &&
         llvm::none_of(expr.op->getResultTypes(), [](Type type) { return getElementTypeOrSelf(type).isInteger(1); });
}

/// Returns true if a thread holds all accumulators of a tile at once, because the tile has one matrix.
static bool isOneTile(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction) {
  std::optional<ContractionRoles> roles = rolesOf(graph, contraction);
  const TensorExpr &expr = graph.exprs()[contraction.expr];
  for (auto [dim, place] : llvm::enumerate(contraction.dims)) {
    int64_t own = dim;
    bool isBatch = own != roles->m && own != roles->n && !llvm::is_contained(expr.reductions, own);
    if (isBatch && place >= 0 && space.tiles[place] > 1)
      return false;
  }
  return true;
}

/// Returns true if the contraction has read all its buffered operands before the nest reads the first accumulator.
static bool hasReadAll(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction,
                       unsigned nest) {
  return !readsResults(contraction) || (nest == contraction.nest + 1 && isOneTile(graph, space, contraction));
}

bool tilewright::isHandedOver(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction) {
  if (!contracts(graph, contraction))
    return false;
  Value accumulators = graph.exprs()[contraction.expr].op->getResult(0);
  SmallVector<unsigned> nests = space.readingNests(accumulators);
  llvm::sort(nests);
  if (nests.empty())
    return false;
  if (!hasReadAll(graph, space, contraction, nests.front()))
    return false;
  bool leaves = llvm::is_contained(space.outputs, accumulators); // the copy to memory runs after all nests
  bool keeps = nests.size() > 1 || leaves;
  for (const GroupRoot &root : space.roots) {
    // The accumulators occupy registers until the last nest has read them.
    if (contracts(graph, root) && nests.front() < root.nest && (leaves || root.nest < nests.back()))
      return false;
    if (!llvm::is_contained(nests, root.nest))
      continue;
    if (!takesAccumulators(graph, space, contraction, root))
      return false;
    keeps |= !graph.exprs()[root.expr].oneReliesOnOne();
  }
  return !keeps || isOneTile(graph, space, contraction);
}

bool tilewright::growsInRegisters(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction) {
  if (!contracts(graph, contraction) || !grows(graph, space, contraction) || !isOneTile(graph, space, contraction))
    return false;
  SmallVector<unsigned> nests = space.readingNests(graph.exprs()[contraction.expr].op->getResult(0));
  return llvm::all_of(space.roots, [&](const GroupRoot &root) {
    return !llvm::is_contained(nests, root.nest) ||
           (graph.exprs()[root.expr].oneReliesOnOne() && takesAccumulators(graph, space, contraction, root));
  });
}

/// Returns the elements of a tile along the innermost index.
static int64_t lineOf(const IterationSpace &space, const GroupRoot &root, AffineMap map) {
  int64_t dim = map.getNumResults() == 0 ? -1 : pureDim(map.getResults().back());
  return dim < 0 || root.dims[dim] < 0 ? 1 : space.tiles[root.dims[dim]];
}

/// Returns true if the results of the nest are kept for all tiles along the last grid dim (tile.keep).
static bool isKept(const IterationSpace &space, unsigned nest) {
  return !space.grid.empty() && llvm::none_of(space.roots, [&](const GroupRoot &root) {
    return root.nest == nest && llvm::is_contained(root.dims, space.grid.back());
  });
}

namespace {
/// The order in which roots run: the nests before the loop over blocks of a walked dim, the start of the accumulators,
/// the loop (one op), and the nests after it. A nest with roots of several phases appears in each of them.
class RunOrder {
public:
  RunOrder(const IterationSpace &space, ArrayRef<WalkPhase> phases) : space(space), phases(phases) {
    for (const GroupRoot &root : space.roots)
      nests = std::max(nests, root.nest + 1);
    for (auto [root, phase] : llvm::zip(space.roots, phases)) {
      if (phase == WalkPhase::before)
        lastBefore = std::max(lastBefore, root.nest);
      if (phase == WalkPhase::after)
        firstBehind = std::min(firstBehind, loop() + root.nest);
    }
  }

  unsigned start() const { return nests; }
  unsigned last() const { return loop() + nests; }

  /// Returns the position at which a root, given by its number, starts to run.
  unsigned firstAt(unsigned root) const {
    unsigned nest = space.roots[root].nest;
    switch (phaseOf(root)) {
    case WalkPhase::before:
      return nest;
    case WalkPhase::inside:
      return loop();
    case WalkPhase::after:
      return loop() + nest;
    }
    llvm_unreachable("a phase");
  }

  /// Returns the position at which all threads have finished reading the root's operands. There is no barrier before
  /// the accumulators start, and the last nest of the loop may be merged with the first nest after it.
  unsigned lastAt(unsigned root) const {
    if (phaseOf(root) == WalkPhase::inside)
      return std::min(firstBehind, last());
    return phaseOf(root) == WalkPhase::before && space.roots[root].nest == lastBefore ? start() : firstAt(root);
  }

  /// Returns the numbers of the roots that read the result in another nest than root `own`.
  SmallVector<unsigned> readersOf(Value result, unsigned own) const {
    SmallVector<unsigned> readers;
    for (auto [number, reader] : llvm::enumerate(space.roots)) {
      bool isOther = reader.nest != space.roots[own].nest || phaseOf(number) != phaseOf(own);
      if (isOther && llvm::any_of(reader.accesses, [&](const RootAccess &access) { return access.tensor == result; }))
        readers.push_back(number);
    }
    return readers;
  }

  bool sharesPhase(unsigned root, ArrayRef<unsigned> others) const {
    return llvm::all_of(others, [&](unsigned other) { return phaseOf(other) == phaseOf(root); });
  }

private:
  WalkPhase phaseOf(unsigned root) const { return phases.empty() ? WalkPhase::before : phases[root]; }
  unsigned loop() const { return nests + 1; }

  const IterationSpace &space;
  ArrayRef<WalkPhase> phases;
  unsigned nests = 0, lastBefore = 0, firstBehind = ~0u;
};
} // namespace

int64_t tilewright::liveBufferBytes(const TensorGraph &graph, const IterationSpace &space, ArrayRef<WalkPhase> phases,
                                    const Target &target) {
  SmallVector<LiveBuffer> buffers;
  RunOrder order(space, phases);
  for (auto [number, root] : llvm::enumerate(space.roots)) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    bool grown = grows(graph, space, root);
    for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results)) {
      SmallVector<unsigned> readers = order.readersOf(result, number);
      bool handedOver = !grown && order.sharesPhase(number, readers) && isHandedOver(graph, space, root);
      if ((readers.empty() && !grown) || handedOver || growsInRegisters(graph, space, root))
        continue;
      int64_t elements = 1;
      for (AffineExpr index : map.getResults())
        if (int64_t dim = pureDim(index); dim >= 0 && root.dims[dim] >= 0)
          elements *= space.tiles[root.dims[dim]];
      Type element = cast<RankedTensorType>(result.getType()).getElementType();
      int64_t line = lineOf(space, root, map), elementBytes = tile::elementBytes(element);
      int64_t padded = operandLine(line, elementBytes, target.costs.gpu.wholeStepBytes, /*ofLanes=*/false);
      int64_t bytes = llvm::alignTo(elements / line * padded * elementBytes, kBufferAlignment);
      // An accumulator along a walked dim has a second buffer for the value of each block, and a maximum has two more
      // for its references and factors. A contraction of one matrix adds its blocks from registers.
      if (grown && !contracts(graph, root))
        bytes *= 4;
      else if (grown && !hasReadAll(graph, space, root, root.nest + 1))
        bytes *= 2;
      // Reduced results are copied to memory after all nests.
      bool isCopied = !expr.oneReliesOnOne() && llvm::is_contained(space.outputs, result);
      LiveBuffer &buffer = buffers.emplace_back(LiveBuffer{bytes, 0, order.last()});
      if (isKept(space, root.nest))
        continue;
      buffer.first = grown ? order.start() : order.firstAt(number);
      if (readers.empty() || isCopied)
        continue;
      buffer.last = buffer.first;
      for (unsigned reader : readers)
        buffer.last = std::max(buffer.last, order.lastAt(reader));
    }
  }
  return placeByBestFit(buffers).end;
}

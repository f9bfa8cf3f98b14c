#include "passes/plan/tiling/gpu/L2Traffic.h"

#include "passes/graph/ElementBytes.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/tiling/gpu/BlockReads.h"
#include "passes/plan/tiling/gpu/CopyWidths.h"
#include "passes/target/AccessBytes.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;

/// Returns the average number of sectors of a run of `bytes` that begins at a random multiple of `grain`.
static double sectorsOf(int64_t bytes, int64_t grain) {
  grain = std::gcd(grain, kSectorBytes);
  auto reached = static_cast<double>(llvm::alignTo(bytes, grain) + kSectorBytes - grain);
  return bytes == 0 ? 0 : reached / kSectorBytes;
}

namespace {
/// A dim of an operand. Blocks copy it in tiles, each padded to `filled` elements in shared memory.
struct TiledDim {
  int64_t extent, tile, filled;

  int64_t tiles() const { return llvm::divideCeil(extent, tile); }
};

/// The copies that the warps of a block make of an operand with contiguous lines. They walk over the padded tile and
/// copy `together` elements at once.
struct WarpCopies {
  TiledDim line, lines;
  int64_t together; ///< elements that a warp copies at once
  int64_t bytes;    ///< bytes per element
  int64_t row;      ///< elements from one line to the next
  bool single;      ///< true if copied element by element; reads beyond the tile repeat its last element
  bool shifted;     ///< true if lines begin inside pieces, which are then copied as well

  /// Returns the bytes of whole sectors relative to the bytes of the elements, on average.
  double sectorShare() const {
    double sectors = 0;
    if (together >= line.filled && line.tile >= line.extent && line.extent == row) // lines are contiguous
      sectors = ofStretch(lines.extent * row, linesAtOnce() * row, kSectorBytes);
    else
      sectors = static_cast<double>(lines.extent) * ofLine();
    if (single)
      sectors += static_cast<double>(lines.tiles() * lines.filled - lines.extent) * requestsOfLine();
    if (shifted) // all lines except those that begin at a piece
      sectors +=
          static_cast<double>(lines.extent * (line.extent / line.tile) * (piece() - 1)) / static_cast<double>(piece());
    return sectors * kSectorBytes / static_cast<double>(lines.extent * line.extent * bytes);
  }

private:
  int64_t piece() const { return together / kWarpLanes; } ///< elements that a thread copies at once
  int64_t linesAtOnce() const { return std::max<int64_t>(1, together / line.filled); }
  double requestsOfLine() const {
    return static_cast<double>(line.tiles() * line.filled) / static_cast<double>(together);
  }

  double ofLine() const {
    return static_cast<double>(line.extent / line.tile) * ofTile(line.tile) + ofTile(line.extent % line.tile);
  }
  double ofTile(int64_t elements) const {
    if (elements == 0)
      return 0;
    int64_t run = std::min(line.tile, together);
    int64_t empty = single ? std::max<int64_t>(0, line.filled / together - llvm::divideCeil(elements, together)) : 0;
    int64_t grain = shifted ? piece() : std::gcd(row, line.tile);
    return ofStretch(elements, run, grain * bytes) + static_cast<double>(empty);
  }
  /// Returns the sectors of contiguous elements that begin at a multiple of `grain` bytes and are copied in runs.
  double ofStretch(int64_t elements, int64_t run, int64_t grain) const {
    grain = std::gcd(grain, run * bytes);
    return static_cast<double>(elements / run) * sectorsOf(run * bytes, grain) +
           sectorsOf(elements % run * bytes, grain);
  }
};

/// Counts how often blocks read the elements of an access of a root.
class Visits {
public:
  Visits(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root)
      : space(space), root(root), domain(graph.exprs()[root.expr].domain), roles(rolesOf(graph, root)),
        contracts(graph.exprs()[root.expr].kind == ExprKind::contraction),
        walked(walkedDim(space.extents, space.tiles, space.grid)) {}

  double bytes(const RootAccess &access, bool resident) const {
    double count = elementBytesOf(access.tensor) * (resident ? 1 : space.visitedShare(root));
    for (int64_t dim = 0; dim < static_cast<int64_t>(domain.size()); ++dim)
      count *= access.map.isFunctionOfDim(dim) ? static_cast<double>(domain[dim]) : again(dim, resident);
    for (int64_t place : space.grid)
      count *= llvm::is_contained(root.dims, place) ? 1 : tilesAlong(place);
    return count;
  }

private:
  double tilesAlong(int64_t place) const {
    return static_cast<double>(llvm::divideCeil(space.extents[place], space.tiles[place]));
  }

  /// Returns how often the access is repeated along a dim along which it does not change. It is read once per tile, but
  /// a contraction computes the matrices of a batch one after another.
  double again(int64_t dim, bool resident) const {
    int64_t place = root.dims[dim];
    if (place < 0)
      return 1;
    if (contracts && (!roles || (dim != roles->m && dim != roles->n)))
      return static_cast<double>(domain[dim]);
    if (place == walked)
      return resident ? 1 : static_cast<double>(space.blocksPerTile());
    return llvm::is_contained(space.grid, place) ? tilesAlong(place) : 1;
  }

  const IterationSpace &space;
  const GroupRoot &root;
  ArrayRef<int64_t> domain;
  std::optional<ContractionRoles> roles;
  bool contracts;
  int64_t walked;
};
} // namespace

double tilewright::l2TrafficOfOperand(const TensorGraph &graph, const IterationSpace &space,
                                      const GroupRoot &contraction, unsigned operand, const GemmTiling &tiling) {
  const RootAccess &access = contraction.accesses[operand];
  if (access.producer >= 0)
    return 0;
  auto type = cast<RankedTensorType>(access.tensor.getType());
  const TensorExpr &expr = graph.exprs()[contraction.expr];
  std::optional<ContractionRoles> roles = rolesOf(graph, contraction);
  bool isLhs = roles && operand == roles->lhsInput;
  int64_t bytes = elementBytesOf(access.tensor), width = copyBytes(graph, contraction, operand);
  int64_t row = type.getRank() == 0 ? 1 : type.getShape().back();
  int64_t inner = type.getRank() == 0 ? -1 : unitStrideDim(access.map.getResult(type.getRank() - 1));
  int64_t point = !roles ? -1 : isLhs ? roles->m : roles->n, points = isLhs ? tiling.heldM : tiling.n;
  auto tiled = [&](int64_t dim) -> TiledDim {
    if (dim < 0)
      return {1, 1, 1};
    int64_t extent = expr.domain[dim];
    if (llvm::is_contained(expr.reductions, dim))
      return {extent, tiling.step, tiling.step};
    int64_t tile = contraction.dims[dim] < 0 ? 1 : space.tiles[contraction.dims[dim]];
    return {extent, std::min(tile, extent), dim == point ? points : tile};
  };
  bool shifted = isLhs ? tiling.lhsShifted : tiling.rhsShifted;
  if (shifted)
    width = pieceBytes(graph, contraction, operand);
  bool single = width < kLeastAsyncBytes;
  int64_t longest = expr.reductions.empty() ? -1 : *llvm::max_element(expr.reductions, [&](int64_t a, int64_t b) {
    return expr.domain[a] < expr.domain[b];
  });
  TiledDim line = inner >= 0 ? tiled(inner) : TiledDim{row, row, row};
  TiledDim lines = tiled(inner == point ? longest : point);
  WarpCopies copies{line, lines, kWarpLanes * (single ? 1 : width / bytes), bytes, row, single, shifted};
  return Visits(graph, space, contraction).bytes(access, isLhs && tiling.residentSteps > 0) * copies.sectorShare();
}

/// Returns the bytes of whole sectors relative to the bytes of a result, on average. Four threads store each row of a
/// tensor core's accumulators. They store two or four neighbours at once or, if lines do not allow that, first one and
/// then the other of each pair.
static double storedShare(Value output) {
  auto type = cast<RankedTensorType>(output.getType());
  int64_t bytes = elementBytesOf(output), line = type.getRank() == 0 ? 1 : type.getShape().back();
  constexpr int64_t kThreads = 4, kPair = 2, kWide = 4;
  int64_t run = bytes < kWide && line % (2 * kPair) == 0 ? 2 * kPair : line % kPair == 0 ? kPair : 1;
  int64_t together = kThreads * std::max(run, kPair) * bytes;
  double sectors = run > 1 ? sectorsOf(together, line * bytes) : kPair * sectorsOf(together - bytes, line * bytes);
  return sectors * kSectorBytes / static_cast<double>(together);
}

/// Returns the bytes of whole sectors relative to the bytes that a nest reads, if its lanes follow the lines of the
/// tensor.
static double readShare(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root,
                        const RootAccess &access) {
  auto type = cast<RankedTensorType>(access.tensor.getType());
  int64_t inner = type.getRank() == 0 ? -1 : unitStrideDim(access.map.getResult(type.getRank() - 1));
  if (inner < 0 || root.dims[inner] < 0)
    return 1;
  int64_t row = type.getShape().back(), rows = type.getNumElements() / row;
  int64_t extent = graph.exprs()[root.expr].domain[inner], tile = std::min(extent, space.tiles[root.dims[inner]]);
  TiledDim line{extent, tile, tile}, lines{rows, rows, rows};
  return WarpCopies{line, lines, kWarpLanes, elementBytesOf(access.tensor), row, /*single=*/false, /*shifted=*/false}
      .sectorShare();
}

double tilewright::l2TrafficBesideOperands(const TensorGraph &graph, const IterationSpace &space, bool onTensorCores) {
  double traffic = 0;
  llvm::SmallSetVector<std::pair<Value, AffineMap>, 4> seen; // several nests read a buffered copy
  for (const GroupRoot &root : space.roots) {
    if (graph.exprs()[root.expr].kind == ExprKind::contraction)
      continue;
    for (const RootAccess &access : root.accesses)
      if (access.producer < 0 && seen.insert({access.tensor, overSpace(access.map, root.dims, space.extents.size())}))
        traffic += Visits(graph, space, root).bytes(access, /*resident=*/false) * readShare(graph, space, root, access);
  }
  for (Value output : space.outputs)
    traffic += static_cast<double>(tensorBytes(output)) * (onTensorCores ? storedShare(output) : 1);
  return traffic;
}

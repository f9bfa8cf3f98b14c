#include "passes/plan/AskedBytes.h"

#include "passes/plan/CopyWidths.h"
#include "passes/plan/WalkedDim.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;

static constexpr int64_t kSectorBytes = 32, kWarpLanes = 32, kLeastCopy = 4, kWidestCopy = 16;

static int64_t elementBytesOf(Value tensor) {
  return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

/// The bytes of whole sectors over those of a run that begins at any multiple of `aligned`, on average.
static double sectorShare(double run, int64_t aligned) {
  int64_t begins = std::gcd(aligned, kSectorBytes);
  return begins == kSectorBytes && std::fmod(run, kSectorBytes) == 0
             ? 1
             : (run + static_cast<double>(kSectorBytes - begins)) / run;
}

namespace {
/// How often blocks come to the elements that an access of a root touches.
class Visits {
public:
  Visits(const TensorGraph &graph, const IndexSpace &space, const PartRoot &root)
      : space(space), root(root), domain(graph.exprs()[root.expr].domain), roles(rolesOf(graph, root)),
        contracts(graph.exprs()[root.expr].kind == ExprKind::contraction),
        walked(walkedDim(space.extents, space.tiles, space.grid)) {}

  double bytes(const RootAccess &access, bool kept) const {
    double count = elementBytesOf(access.tensor) * space.visitedShare(root);
    for (int64_t dim = 0; dim < static_cast<int64_t>(domain.size()); ++dim)
      count *= access.map.isFunctionOfDim(dim) ? static_cast<double>(domain[dim]) : again(dim, kept);
    for (int64_t place : space.grid)
      count *= llvm::is_contained(root.dims, place) ? 1 : tilesAlong(place);
    return count;
  }

private:
  double tilesAlong(int64_t place) const {
    return static_cast<double>(llvm::divideCeil(space.extents[place], space.tiles[place]));
  }

  /// Of a dim along which the access does not change: once a tile, but a contraction takes the matrices of a batch one
  /// after another.
  double again(int64_t dim, bool kept) const {
    int64_t place = root.dims[dim];
    if (place < 0)
      return 1;
    if (contracts && (!roles || (dim != roles->row && dim != roles->lane)))
      return static_cast<double>(domain[dim]);
    if (place == walked)
      return kept ? 1 : static_cast<double>(space.blocksPerTile());
    return llvm::is_contained(space.grid, place) ? tilesAlong(place) : 1;
  }

  const IndexSpace &space;
  const PartRoot &root;
  ArrayRef<int64_t> domain;
  std::optional<ContractionRoles> roles;
  bool contracts;
  int64_t walked;
};
} // namespace

double tilewright::askedOfOperand(const TensorGraph &graph, const IndexSpace &space, const PartRoot &contraction,
                                  unsigned operand, int64_t step, bool kept) {
  const RootAccess &access = contraction.accesses[operand];
  if (access.producer >= 0)
    return 0;
  auto type = cast<RankedTensorType>(access.tensor.getType());
  int64_t bytes = elementBytesOf(access.tensor), aligned = copyBytes(graph, contraction, operand);
  int64_t inner = type.getRank() == 0 ? -1 : unitStrideDim(access.map.getResult(type.getRank() - 1));
  bool alongTerms = inner >= 0 && llvm::is_contained(graph.exprs()[contraction.expr].reductions, inner);
  int64_t place = inner < 0 ? -1 : contraction.dims[inner];
  int64_t line = alongTerms ? step : place < 0 ? 1 : space.tiles[place];
  // A warp asks for 32 copies at a time.
  int64_t copy = aligned < kLeastCopy ? bytes : std::min(aligned, kWidestCopy);
  double run = static_cast<double>(std::min(line * bytes, kWarpLanes * copy));
  // Copies are aligned to what rows are, and those of 16 bytes to whole sectors where their rows are.
  int64_t row = type.getRank() == 0 ? bytes : type.getShape().back() * bytes;
  return Visits(graph, space, contraction).bytes(access, kept) * sectorShare(run, row);
}

double tilewright::askedBesideOperands(const TensorGraph &graph, const IndexSpace &space) {
  double asked = 0;
  llvm::SmallSetVector<Value, 4> seen; // what several nests read is kept
  for (const PartRoot &root : space.roots) {
    if (graph.exprs()[root.expr].kind == ExprKind::contraction)
      continue;
    for (const RootAccess &access : root.accesses)
      if (access.producer < 0 && seen.insert(access.tensor))
        asked += Visits(graph, space, root).bytes(access, /*kept=*/false);
  }
  for (Value output : space.outputs)
    asked += static_cast<double>(tensorBytes(output));
  return asked;
}

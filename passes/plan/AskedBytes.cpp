#include "passes/plan/AskedBytes.h"

#include "passes/plan/BlockReads.h"
#include "passes/plan/CopyWidths.h"
#include "passes/plan/WalkedDim.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;

static constexpr int64_t kSectorBytes = BlockReads::kSectorBytes, kWarpLanes = 32;

static int64_t elementBytesOf(Value tensor) {
  return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

namespace {
/// The elements of a tensor along its innermost dim, as a block copies them: tiles, each in runs that a warp asks for
/// at once.
struct Line {
  int64_t extent, tile, run; ///< elements
  int64_t bytes;             ///< of one
  int64_t pitch;             ///< in bytes, from line to line

  /// The bytes of whole sectors over those of the elements, on average.
  double sectorShare() const {
    double sectors = static_cast<double>(extent / tile) * ofTile(tile) + ofTile(extent % tile);
    return sectors * kSectorBytes / static_cast<double>(extent * bytes);
  }

private:
  double ofTile(int64_t elements) const {
    return static_cast<double>(elements / run) * ofRun(run) + ofRun(elements % run);
  }
  double ofRun(int64_t elements) const {
    int64_t begins = std::gcd(std::gcd(pitch, tile * bytes), std::gcd(run * bytes, kSectorBytes));
    if (elements == 0)
      return 0;
    if (begins == kSectorBytes)
      return static_cast<double>(llvm::divideCeil(elements * bytes, kSectorBytes));
    return static_cast<double>(elements * bytes + kSectorBytes - begins) / kSectorBytes;
  }
};

/// How often blocks come to the elements that an access of a root touches.
class Visits {
public:
  Visits(const TensorGraph &graph, const IndexSpace &space, const PartRoot &root)
      : space(space), root(root), domain(graph.exprs()[root.expr].domain), roles(rolesOf(graph, root)),
        contracts(graph.exprs()[root.expr].kind == ExprKind::contraction),
        walked(walkedDim(space.extents, space.tiles, space.grid)) {}

  double bytes(const RootAccess &access, bool kept) const {
    double count = elementBytesOf(access.tensor) * (kept ? 1 : space.visitedShare(root));
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
  const TensorExpr &expr = graph.exprs()[contraction.expr];
  int64_t bytes = elementBytesOf(access.tensor), width = copyBytes(graph, contraction, operand);
  int64_t row = type.getRank() == 0 ? 1 : type.getShape().back();
  int64_t inner = type.getRank() == 0 ? -1 : unitStrideDim(access.map.getResult(type.getRank() - 1));
  Line line{row, row, 1, bytes, row * bytes};
  if (inner >= 0) {
    bool alongTerms = llvm::is_contained(expr.reductions, inner);
    line.extent = expr.domain[inner];
    line.tile = alongTerms ? step : contraction.dims[inner] < 0 ? 1 : space.tiles[contraction.dims[inner]];
  }
  int64_t copy = width < kLeastCopyBytes ? bytes : width;
  line.run = std::min(line.tile, kWarpLanes * copy / bytes);
  bool inOneRun = line.tile >= line.extent && line.extent == row; // lines lie behind one another
  return Visits(graph, space, contraction).bytes(access, kept) * (inOneRun ? 1 : line.sectorShare());
}

double tilewright::askedBesideOperands(const TensorGraph &graph, const IndexSpace &space) {
  double asked = 0;
  llvm::SmallSetVector<std::pair<Value, AffineMap>, 4> seen; // what several nests read of a tensor is kept
  for (const PartRoot &root : space.roots) {
    if (graph.exprs()[root.expr].kind == ExprKind::contraction)
      continue;
    for (const RootAccess &access : root.accesses)
      if (access.producer < 0 && seen.insert({access.tensor, overSpace(access.map, root.dims, space.extents.size())}))
        asked += Visits(graph, space, root).bytes(access, /*kept=*/false);
  }
  for (Value output : space.outputs)
    asked += static_cast<double>(tensorBytes(output));
  return asked;
}

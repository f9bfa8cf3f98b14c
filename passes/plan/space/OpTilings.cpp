#include "passes/plan/space/OpTilings.h"

#include "passes/layout/Blocking.h"
#include "passes/target/KBlocking.h"

using namespace mlir;
using namespace tilewright;

LevelTiling tilewright::blockTiling(ArrayRef<int64_t> tiles, ArrayRef<int64_t> grid, ArrayRef<int64_t> dims) {
  LevelTiling tiling{tile::Scope::block, {}, {}};
  for (auto [dim, place] : llvm::enumerate(dims)) {
    tiling.sizes.push_back(place < 0 ? 1 : tiles[place]);
    tiling.order.push_back(dim);
  }
  llvm::sort(tiling.order, [&](int64_t a, int64_t b) {
    auto outer = [&](int64_t dim) { return llvm::find(grid, dims[dim]) - grid.begin(); };
    return std::tuple(outer(a), dims[a], a) < std::tuple(outer(b), dims[b], b);
  });
  return tiling;
}

/// The loops are, outermost first: batch dims by single points, N by panels, M by blocks of rows, then the reduced
/// dims. A loop over blocks of K is inside that over N, or outside as the blocking says; without one, it is outside if
/// one block of rows has all of M.
LevelTiling tilewright::registerTiling(const TensorGraph &graph, const GroupRoot &root, ArrayRef<int64_t> dims,
                                       ArrayRef<int64_t> tiles, const MicroKernel &kernel, StringRef label,
                                       const std::optional<BlockingChoice> &blocking, const Target &target) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  LevelTiling tiling{tile::Scope::thread, std::vector<int64_t>(dims.size(), 1), {}};
  std::optional<ContractionRoles> roles = rolesOf(graph, root);
  if (!roles)
    return tiling;
  RegisterBlock block = kernel.blockFor(target);
  auto sizeOf = [&](int64_t dim) { return dims[dim] < 0 ? 1 : tiles[dims[dim]]; };
  auto walk = [&](int64_t dim, int64_t step) {
    tiling.sizes[dim] = std::min(step, sizeOf(dim));
    tiling.order.push_back(dim);
  };
  int64_t kBlock = kBlocking(label);
  bool streams =
      blocking ? blocking->kOutermost : kBlock > 0 && (roles->m < 0 || sizeOf(roles->m) <= block.rows);
  for (int64_t dim = 0; dim < static_cast<int64_t>(dims.size()); ++dim)
    if (dim != roles->m && dim != roles->n && !llvm::is_contained(expr.reductions, dim))
      walk(dim, 1);
  if (streams)
    walk(expr.reductions[0], kBlock);
  int64_t bytes = tile::elementBytes(getElementTypeOrSelf(expr.op->getResult(0).getType())); // of an accumulator
  int64_t lanes = target.vectorBytes / bytes, rows = roles->m < 0 ? 1 : sizeOf(roles->m);
  TileColumns columns{sizeOf(roles->n), expr.domain[roles->n],
                      panelWidth(root.accesses[roles->rhsInput].map, roles->n)};
  int64_t vectors = blocking ? blocking->vectors
                             : chooseVectors(kernel, block, rows, lanes, columns, target.costs.cpu);
  walk(roles->n, vectors * lanes);
  if (kBlock > 0 && !streams)
    walk(expr.reductions[0], kBlock);
  if (roles->m >= 0)
    walk(roles->m, block.rows);
  for (int64_t dim : expr.reductions)
    if (!llvm::is_contained(tiling.order, dim)) // else a micro kernel step covers its loop inside a block of K
      walk(dim, 1);
  return tiling;
}

// Tiles of the workgroups of a CPU.
#ifndef TILEWRIGHT_PLAN_TILING_CPUTILES_H
#define TILEWRIGHT_PLAN_TILING_CPUTILES_H

#include "passes/plan/tiling/TileFootprint.h"
#include "passes/plan/tiling/cpu/ChainMovement.h"

namespace tilewright {

class CpuTiles {
public:
  CpuTiles(const TensorGraph &graph, const GroupChoice &part, const Target &target, IterationSpace &space,
           const TileFootprint &footprint)
      : graph(graph), part(part), target(target), space(space), footprint(footprint) {}

  /// Sets the tiles of a space all of whose grid dims are walked one by one.
  void choose();
  /// As many as the work of the part pays for.
  int64_t wantedWorkgroups();

private:
  struct Tiling {
    std::vector<int64_t> tiles;
    double seconds;
  };

  bool isContraction(const GroupRoot &root) const { return graph.exprs()[root.expr].kind == ExprKind::contraction; }
  bool contracts() const {
    return llvm::any_of(space.roots, [&](const GroupRoot &root) { return isContraction(root); });
  }
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }
  /// Two for each core; one core has nothing to share.
  int64_t mostWorkgroups() const { return target.cores > 1 ? 2 * target.cores : 1; }
  /// Half of what the workgroup has, so that tiles stay in the cache beside what streams through.
  bool fits() const;
  /// Whole register blocks. Every split of the row dim into even pieces with every number of lane blocks is predicted,
  /// and of the quickest the one taken that is so with what its code moves between caches (BlockMovement.h); a batch
  /// dim is walked one by one. What a tile holds along a reduced dim may be blocks of it, where that is clearly
  /// quicker.
  void chooseContractionTiles();
  std::vector<Tiling> contractionTilings();
  /// The slowest level decides (Chimera eq. 3), but filling the innermost cache is not hidden whole.
  double withMovement(llvm::ArrayRef<OperatorChain> chains, double seconds);
  llvm::SmallVector<int64_t> walkedTiles(int64_t dim) const;
  /// The register block of the part's first contraction.
  void chooseBlock();
  /// Rows in the time in which the outer cache of a core hands over the lanes that they are multiplied with.
  double rowsPerPanel() const;
  double contractionSeconds();
  /// The place of the dim that register blocks take their rows from, if it is in the grid.
  int64_t rowDim() const;
  llvm::SmallVector<int64_t> rowTiles(int64_t row) const;
  llvm::SmallVector<int64_t> laneTiles() const;
  void chooseVectorTile();
  /// A tile that crosses a global tensor's innermost dim one element at a time uses little of each cache line: such a
  /// grid dim is cut by lines instead, and the vector dim short enough for the lines of a tile to stay in L1.
  void fillCacheLines();
  void fillCacheLine(const GroupRoot &root, mlir::AffineMap map, mlir::Value tensor);
  int64_t pointsPerTile() const;
  /// Rows of a few elements share a tile, innermost rows first. Where results are streamed, the chain at the end of a
  /// row is hidden by the next tile, which begins meanwhile, and rows of two tiles share L1.
  void growSmallTiles();

  const TensorGraph &graph;
  const GroupChoice &part;
  const Target &target;
  IterationSpace &space;
  const TileFootprint &footprint;
  int64_t wanted = 0; ///< workgroups; 0: not known yet
};

} // namespace tilewright

#endif

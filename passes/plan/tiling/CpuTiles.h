// Chooses tiles for the workgroups of a CPU. Elementwise ops and reductions get tiles in closed form. Contractions are
// searched, since their tiles decide what moves between caches: every candidate's time is predicted, and the movement
// of the fastest ones is counted (Chimera 4.3).
#ifndef TILEWRIGHT_PLAN_TILING_CPUTILES_H
#define TILEWRIGHT_PLAN_TILING_CPUTILES_H

#include "passes/plan/space/TileFootprint.h"
#include "passes/plan/tiling/cpu/ChainMovement.h"

namespace tilewright {

class CpuTiles {
public:
  CpuTiles(const TensorGraph &graph, const GroupChoice &group, const Target &target, IterationSpace &space,
           const TileFootprint &footprint)
      : graph(graph), group(group), target(target), space(space), footprint(footprint) {}

  /// Sets the tiles of a space whose grid dims all have tiles of one point.
  void choose();
  /// Returns the number of workgroups for which the group has enough work.
  int64_t wantedWorkgroups();

private:
  struct Tiling {
    std::vector<int64_t> tiles;
    double seconds;
  };

  const CpuCosts &costs() const { return target.costs.cpu; }
  bool isContraction(const GroupRoot &root) const { return graph.exprs()[root.expr].kind == ExprKind::contraction; }
  bool contracts() const {
    return llvm::any_of(space.roots, [&](const GroupRoot &root) { return isContraction(root); });
  }
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }
  /// Four workgroups per core balance the load if a core comes late; a single core has nothing to balance. With two,
  /// 26 workloads take 1.02 of the time on two cores of a shared Zen 3 (2026-11-29), `g1-chain` and `gpt2-block` 1.1.
  int64_t mostWorkgroups() const { return target.cores > 1 ? 4 * target.cores : 1; }
  /// Returns true if buffers take at most half the cache, so that they stay there while other data streams through.
  bool fits() const;
  /// Chooses tiles of whole register blocks. It predicts every split of M into even tiles with every number of rhs
  /// panels. Of the fastest tilings it takes the one that is fastest with the movement of its code between caches
  /// (BlockMovement.h). Batch dims have tiles of one point. A tile may walk a reduced dim in blocks, if that is clearly
  /// faster.
  void chooseContractionTiles();
  std::vector<Tiling> contractionTilings();
  /// Returns the time with movement counted. The slowest level decides (Chimera eq. 3), but filling the innermost cache
  /// is not fully hidden.
  double withMovement(llvm::ArrayRef<OperatorChain> chains, double seconds);
  llvm::SmallVector<int64_t> walkedTiles(int64_t dim) const;
  /// Sets the register block of the group's first contraction.
  void setRegisterBlock();
  /// Returns the rows of a register block that can be multiplied while the outer private cache delivers one rhs panel.
  double rowsPerPanel() const;
  double contractionSeconds();
  int64_t mOf(const GroupRoot &root) const;
  /// Returns true if the matrix lhs of a contraction is known to code generation.
  bool hasFactors(const GroupRoot &root) const;
  void setRowsOfFactors();
  /// Returns the dim of the space that is M of the register blocks, if it is in the grid and lhs is no matrix that is
  /// known, else -1.
  int64_t mDim() const;
  llvm::SmallVector<int64_t> mTiles(int64_t row) const;
  llvm::SmallVector<int64_t> nTiles() const;
  void chooseVectorTile();
  /// Enlarges tiles that cross the innermost dim of a global tensor one element at a time, since they use little of
  /// each cache line. Such a grid dim gets tiles of whole lines, and the vector dim gets shorter tiles, so the lines of
  /// a tile stay in L1.
  void fillCacheLines();
  void fillCacheLine(const GroupRoot &root, mlir::AffineMap map, mlir::Value tensor);
  /// Gives a tile several overlapping windows of a reduction, which share what they read (NestWindows.cpp).
  void joinWindows();
  /// Returns how many windows a tile has along a dim of that extent. A tile has the same number everywhere.
  int64_t windowsOfTile(int64_t extent) const;
  int64_t pointsPerTile() const;
  /// Merges rows of a few elements into one tile, innermost rows first. If results are streamed, the dependent chain at
  /// the end of a row overlaps with the start of the next tile, and the rows of two tiles share L1.
  void growSmallTiles();

  const TensorGraph &graph;
  const GroupChoice &group;
  const Target &target;
  IterationSpace &space;
  const TileFootprint &footprint;
  int64_t wanted = 0; ///< wanted workgroups; 0: not computed yet
};

} // namespace tilewright

#endif

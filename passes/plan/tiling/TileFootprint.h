// What a workgroup keeps in its own memory while it computes tiles of a space, and how many bytes that takes.
#ifndef TILEWRIGHT_PLAN_TILING_TILEFOOTPRINT_H
#define TILEWRIGHT_PLAN_TILING_TILEFOOTPRINT_H

#include "passes/plan/space/IterationSpace.h"
#include "passes/plan/space/WalkedDim.h"
#include <map>

namespace tilewright {

class TileFootprint {
public:
  /// `space` may get other tiles later, of which the questions below are.
  TileFootprint(const TensorGraph &graph, const GroupChoice &part, const Target &target, const IterationSpace &space)
      : graph(graph), part(part), target(target), space(space) {}

  int64_t bytes() const;
  /// Inputs that several nests read, kept for the tile.
  std::vector<mlir::Value> tileStaged() const;
  /// Inputs that every tile reads, kept for the workgroup.
  std::vector<mlir::Value> workgroupStaged() const;
  /// Where the kernel moves more than the outermost cache holds, its large outputs are gone from it before they are
  /// read; a plain store would even read them first.
  std::vector<mlir::Value> streamed() const;

private:
  using Access = std::pair<const GroupRoot *, const RootAccess *>;

  bool isContraction(const GroupRoot &root) const { return graph.exprs()[root.expr].kind == ExprKind::contraction; }
  bool contracts() const {
    return llvm::any_of(space.roots, [&](const GroupRoot &root) { return isContraction(root); });
  }
  bool isGpu() const { return target.backend == Backend::cuda; }
  /// Of the roots, if tiles walk a dim.
  llvm::ArrayRef<WalkPhase> walkPhases() const;
  /// Tiles of results that later nests read, and of what grows along a walked dim another one for its blocks.
  int64_t resultBytes() const;
  /// Whether the tile program can keep what the access reads of an input (stageInputs in Movement.cpp).
  bool mayBeKept(const GroupRoot &root, const RootAccess &access) const;
  /// Accesses to inputs that several nests make, each by its first root: their slices are kept for the tile.
  std::vector<Access> readAgain() const;
  /// Those, and on a GPU what one nest reads again and again; a workgroup of a CPU has that in its own staging.
  std::vector<Access> keptForTile() const;
  bool repeatsInTile(const GroupRoot &reader, mlir::AffineMap map) const;
  /// The index of an access over the dims of the space.
  mlir::AffineMap inSpace(const GroupRoot &root, const RootAccess &access) const;
  int64_t sliceBytes(const GroupRoot &root, const RootAccess &access) const;
  bool usesGrid(const GroupRoot &root, mlir::AffineMap map) const;

  const TensorGraph &graph;
  const GroupChoice &part;
  const Target &target;
  const IterationSpace &space;
  mutable std::map<int64_t, llvm::SmallVector<WalkPhase>> phases; ///< known ones, by walked dim
};

} // namespace tilewright

#endif

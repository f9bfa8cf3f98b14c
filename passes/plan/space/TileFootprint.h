// Computes which tensors a workgroup buffers while it computes tiles of a space, and how many bytes of block memory
// they take.
#ifndef TILEWRIGHT_PLAN_SPACE_TILEFOOTPRINT_H
#define TILEWRIGHT_PLAN_SPACE_TILEFOOTPRINT_H

#include "passes/plan/space/IterationSpace.h"
#include "passes/plan/space/WalkedDim.h"
#include <map>

namespace tilewright {

class TileFootprint {
public:
  /// Keeps a reference to `space`. All queries refer to its tiles at the time of the query.
  TileFootprint(const TensorGraph &graph, const GroupChoice &group, const Target &target, const IterationSpace &space)
      : graph(graph), group(group), target(target), space(space) {}

  int64_t bytes() const;
  /// Returns the inputs that several nests read, which are buffered for each tile.
  std::vector<mlir::Value> tileStaged() const;
  /// Returns the inputs that every tile reads, which are buffered for each workgroup.
  std::vector<mlir::Value> workgroupStaged() const;
  /// Returns the outputs whose stores should bypass the caches. If a kernel moves more than the outermost cache holds,
  /// its large outputs are evicted before they are read, and a plain store would also read them first.
  std::vector<mlir::Value> streamed() const;

private:
  using Access = std::pair<const GroupRoot *, const RootAccess *>;

  bool isContraction(const GroupRoot &root) const { return graph.exprs()[root.expr].kind == ExprKind::contraction; }
  bool contracts() const {
    return llvm::any_of(space.roots, [&](const GroupRoot &root) { return isContraction(root); });
  }
  /// Returns true if buffers that are not live at the same time share memory, and lines of operands are padded.
  bool sharesMemory() const { return target.traits.sharesBufferMemory && contracts(); }
  /// Returns the phase of each root, if tiles walk a dim, else nothing.
  llvm::ArrayRef<WalkPhase> walkPhases() const;
  /// Returns the bytes of result tiles that later nests read. An accumulator along a walked dim has a second buffer for
  /// the value of each block.
  int64_t resultBytes() const;
  /// Returns true if the tile program can buffer the part of an input that the access reads (stageInputs in
  /// Movement.cpp).
  bool mayBeKept(const GroupRoot &root, const RootAccess &access) const;
  /// Returns the accesses to inputs that several nests make, each as made by its first root. Their slices are buffered
  /// for each tile.
  std::vector<Access> readAgain() const;
  /// Returns those accesses and, if the machine buffers them for a tile, the inputs that one nest reads repeatedly.
  std::vector<Access> keptForTile() const;
  bool repeatsInTile(const GroupRoot &reader, mlir::AffineMap map) const;
  /// Returns the map of an access over the dims of the space.
  mlir::AffineMap inSpace(const GroupRoot &root, const RootAccess &access) const;
  int64_t sliceBytes(const GroupRoot &root, const RootAccess &access) const;
  bool usesGrid(const GroupRoot &root, mlir::AffineMap map) const;

  const TensorGraph &graph;
  const GroupChoice &group;
  const Target &target;
  const IterationSpace &space;
  mutable std::map<int64_t, llvm::SmallVector<WalkPhase>> phases; ///< phases computed so far, by walked dim
};

} // namespace tilewright

#endif

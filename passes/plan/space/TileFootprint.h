// Computes which tensors a workgroup buffers while it computes tiles of a space, and how many bytes of block memory
// they take.
#ifndef TILEWRIGHT_PLAN_SPACE_TILEFOOTPRINT_H
#define TILEWRIGHT_PLAN_SPACE_TILEFOOTPRINT_H

#include "passes/layout/BufferedSlice.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/plan/space/WalkedDim.h"
#include <map>
#include <optional>

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
  /// A read of an input that the tile program may buffer; StagedInputs decides when all is known.
  struct Read {
    const GroupRoot *root;
    const RootAccess *access;
    mlir::AffineMap map;   ///< from the dims of the space
    BufferedSlice slice;
    bool isAgain = false;  ///< true if a later nest reads the same

    bool isSame(const Read &other) const { return access->tensor == other.access->tensor && map == other.map; }
  };

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
  /// Returns the reads that may be buffered. Of equal ones, the first is read again if the others are of other nests.
  /// They do not depend on the tiles, so they are found once.
  llvm::ArrayRef<Read> reads() const;
  /// Returns the reads whose slices are buffered for each tile: those that several nests make and, if the machine
  /// buffers them for a tile, those that one nest repeats.
  llvm::SmallVector<const Read *> keptForTile() const;
  bool repeatsInTile(const Read &read) const;
  int64_t sliceBytes(const Read &read) const;
  bool usesGrid(const GroupRoot &root, mlir::AffineMap map) const;

  const TensorGraph &graph;
  const GroupChoice &group;
  const Target &target;
  const IterationSpace &space;
  mutable std::optional<std::vector<Read>> found;               ///< all reads, once they are known
  mutable std::map<int64_t, llvm::SmallVector<WalkPhase>> phases; ///< phases computed so far, by walked dim
};

} // namespace tilewright

#endif

// Decides which inputs blocks copy to their own memory because they read them several times. A block copies the slice
// that several nests read, or that one nest reads several times, once per tile. It copies a whole input that every tile
// reads once per workgroup. Register blocks read their operands where they are, because the caches hold them.
#ifndef TILEWRIGHT_PLAN_SPACE_STAGEDINPUTS_H
#define TILEWRIGHT_PLAN_SPACE_STAGEDINPUTS_H

#include "passes/graph/ReducedWalk.h"
#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// The inputs of a group whose nests are assigned. It refers to the graph, the choice, the space and the ops.
class StagedInputs {
public:
  /// `ops` say which roots are computed by register blocks: those with a micro kernel.
  StagedInputs(const TensorGraph &graph, const GroupChoice &group, const IterationSpace &space,
               llvm::ArrayRef<OpPlan> ops);

  /// Returns how long a block holds each input of the space: for a tile, for a workgroup, or for the kernel, if it
  /// reads it where it is.
  llvm::SmallVector<tile::Lifetime> choose(const Target &target) const;
  /// Returns why a block cannot hold an input so, or an empty string.
  std::string whyNot(mlir::Value input, tile::Lifetime lifetime) const;

private:
  /// Reads of the same elements of an input, which may become reads of a copy.
  struct Read {
    const GroupRoot *root; ///< the first that reads it
    mlir::Value tensor;
    mlir::AffineMap map; ///< from the dims of the space
    bool isGuarded; ///< true if only some points read it
    bool isAgain = false; ///< true if a later nest reads the same

    bool isSame(const Read &other) const {
      return tensor == other.tensor && map == other.map && isGuarded == other.isGuarded;
    }
  };

  void collect(const GroupChoice &group, llvm::ArrayRef<OpPlan> ops);
  void add(Read read, const std::pair<WalkPhase, unsigned> &nest);
  bool isForTile(const Read &read) const;
  bool usesGrid(mlir::AffineMap map) const;
  bool repeatsInTile(const Read &read) const;
  bool isForWorkgroup(const Read &read) const;

  const TensorGraph &graph;
  const IterationSpace &space;
  llvm::SmallVector<Read> reads;                             ///< in the order in which nests read
  llvm::SmallVector<std::pair<WalkPhase, unsigned>> firsts; ///< the nest of each read's root
};

} // namespace tilewright

#endif

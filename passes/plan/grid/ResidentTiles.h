// Tiles that stay in shared memory across barriers of the grid: which inputs two parts of a kernel read block by block
// alike, so that the later one need not read them again (PowerFusion, Souffle: reuse on chip). Whether it pays is for
// ResidentAtGrid to predict; here is when it is possible at all. Pure.
#ifndef TILEWRIGHT_PLAN_GRID_RESIDENTTILES_H
#define TILEWRIGHT_PLAN_GRID_RESIDENTTILES_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// The tensor that a value is a view of, through reshapes.
mlir::Value viewedTensor(mlir::Value value);

/// The tiles of a tensor of shape `reshaped` that have the same elements, in the same order, as tiles `tiles` of shape
/// `shape`; nothing if those are no boxes. Tiles divide their extents.
std::optional<llvm::SmallVector<int64_t>> reshapedTiles(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> tiles,
                                                        llvm::ArrayRef<int64_t> reshaped);

/// Per dim of an input, the tile of it that a block reads, if every block reads one of its own, in the order of the
/// blocks; else nothing, with `why`.
std::optional<llvm::SmallVector<int64_t>> ownTiles(const TensorGraph &graph, const IterationSpace &space,
                                                   mlir::Value input, std::string &why);

/// Inputs of two parts that are views of one tensor.
struct CommonInput {
  unsigned writerInput, readerInput;
};
std::vector<CommonInput> commonInputs(const IterationSpace &writer, const IterationSpace &reader);

/// The tiles of `reader`'s space for which its blocks read of the input what those of `writer` do; nothing if there are
/// none.
std::optional<std::vector<int64_t>> tilesAlike(const TensorGraph &graph, const IterationSpace &writer,
                                               const IterationSpace &reader, CommonInput input);

/// Empty, or why blocks of the parts, with the tiles that they have, do not read the same of the input.
std::string whyNotAlike(const TensorGraph &graph, const IterationSpace &writer, const IterationSpace &reader,
                        CommonInput input);

} // namespace tilewright

#endif

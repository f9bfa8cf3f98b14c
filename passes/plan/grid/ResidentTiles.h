// Tiles that can stay in shared memory across grid barriers: the tensors that two groups of a kernel access by the same
// tile in each block, so that the later group need not read them again (on-chip reuse, as in PowerFusion and Souffle).
// The first group reads or computes them. This file decides what is possible; ResidentAtGrid predicts what pays, and
// PlaceHandOvers decides what has room. Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_GRID_RESIDENTTILES_H
#define TILEWRIGHT_PLAN_GRID_RESIDENTTILES_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns the tensor of which a value is a view, through reshapes.
mlir::Value viewedTensor(mlir::Value value);

/// Returns the tiles of shape `reshaped` that have the same elements, in the same order, as tiles `tiles` of shape
/// `shape`. Returns nothing if those are no boxes. Tiles must divide their extents.
std::optional<llvm::SmallVector<int64_t>> reshapedTiles(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> tiles,
                                                        llvm::ArrayRef<int64_t> reshaped);

/// Returns the size of a block's tile along each dim of an input, or of a result of a root, if every block accesses a
/// tile of its own and tiles follow the order of the blocks. Otherwise it returns nothing and sets `why`.
std::optional<llvm::SmallVector<int64_t>> ownTiles(const TensorGraph &graph, const IterationSpace &space,
                                                   mlir::Value tensor, std::string &why);

/// Returns why blocks of a group do not compute one tile each at once, as those that keep a tile do; or an empty string.
std::string whyNotOneTile(const IterationSpace &space);

/// Inputs of two groups that are views of the same tensor.
struct CommonInput {
  unsigned writerInput, readerInput;
};
std::vector<CommonInput> commonInputs(const IterationSpace &writer, const IterationSpace &reader);

/// Returns the tiles of `reader`'s space with which its blocks read the same tiles of the input as `writer`'s blocks,
/// or nothing.
std::optional<std::vector<int64_t>> tilesAlike(const TensorGraph &graph, const IterationSpace &writer,
                                               const IterationSpace &reader, CommonInput input);

/// Returns why blocks of the two groups, with their present tiles, do not access the same tiles of a tensor, or an empty
/// string. `written` is an input or a result of the writer, `read` an input of the reader.
std::string whyNotAlike(const TensorGraph &graph, const IterationSpace &writer, mlir::Value written,
                        const IterationSpace &reader, mlir::Value read);

} // namespace tilewright

#endif

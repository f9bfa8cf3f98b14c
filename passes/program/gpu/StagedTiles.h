// Decides which tiles of a part's bindings a block copies as a whole, for tile-stage-tiles: those for which the plan
// states it, and where it leaves that open, those for which fewer sectors of memory are touched so. The sectors follow
// from the nests and from which thread takes which element, which a plan does not state. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_STAGEDTILES_H
#define TILEWRIGHT_PROGRAM_GPU_STAGEDTILES_H

#include "passes/program/gpu/ThreadMapping.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A binding whose tile is contiguous, or consists of runs of whole sectors.
struct StagedTile {
  mlir::Value slice;
  bool isOutput = false;
  llvm::SmallVector<int64_t> sizes;            ///< tile size along each dim
  llvm::SmallVector<int64_t> gridDims;         ///< per dim: the dim of the grid that moves the tile along it, or -1
  double directSectors = 0, stagedSectors = 0; ///< sectors per tile that the nests, or a copy, touch
  mlir::Value held;                            ///< for an input: the buffer in which the nests already hold it, or null
  int64_t inPlaceOf = -1;                      ///< for an output: index of the staged input whose buffer it takes, or
                                               ///< -1
  int64_t cluster = 1; ///< for an input that all blocks read: number of blocks that copy it together
  int64_t bytes = 0;   ///< additional bytes of shared memory
  bool fits = true;

  void print(llvm::raw_ostream &os) const;
};

/// Returns how the plan says that the part accesses its tile of a slice.
tile::Access statedAccess(tile::ParallelOp part, mlir::Value slice);

/// Returns the tiles to stage, inputs first. `threads` is the number of threads per block.
llvm::SmallVector<StagedTile> chooseStagedTiles(tile::ParallelOp part, int64_t threads, const Target &target);

/// Returns the map from the offsets of the part's tile to the element of the binding where the tile starts.
mlir::AffineMap startOf(const StagedTile &tile, tile::ParallelOp part);

/// Returns the index into the tile's buffer of an access at `map` to the binding.
mlir::AffineMap localMapOf(const StagedTile &tile, mlir::AffineMap map);

} // namespace tilewright

#endif

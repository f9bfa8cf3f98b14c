// Which tiles of a part's bindings a block should copy as a whole: the decision behind tile-stage-tiles. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_STAGEDTILES_H
#define TILEWRIGHT_PROGRAM_GPU_STAGEDTILES_H

#include "passes/program/gpu/ThreadMapping.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A binding whose tile is one run of memory, or runs of whole sectors.
struct StagedTile {
  mlir::Value slice;
  bool isOutput = false;
  llvm::SmallVector<int64_t> sizes;            ///< of its tile
  llvm::SmallVector<int64_t> gridDims;         ///< per dim, the dim of the grid that moves the tile along it, or -1
  double directSectors = 0, stagedSectors = 0; ///< of a tile, touched by the nests or by a copy
  mlir::Value held;                            ///< of an input: the buffer that the nests kept it in, or null
  int64_t inPlaceOf = -1;                      ///< of an output: the staged input whose buffer it takes, or -1
  int64_t cluster = 1; ///< of an input that is the same in all blocks: how many copy it together
  int64_t bytes = 0;   ///< of shared memory that it adds
  bool fits = true;

  void print(llvm::raw_ostream &os) const;
};

/// Those that are worth it, inputs first. `threads` is the size of the program's blocks.
llvm::SmallVector<StagedTile> chooseStagedTiles(tile::ParallelOp part, int64_t threads, const Target &target);

/// From the offsets of the part's tile to the element of the binding where it starts.
mlir::AffineMap startOf(const StagedTile &tile, tile::ParallelOp part);

/// Where in the tile's buffer an access at `map` to the binding is.
mlir::AffineMap localMapOf(const StagedTile &tile, mlir::AffineMap map);

} // namespace tilewright

#endif

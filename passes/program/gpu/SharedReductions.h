// Reductions whose rows several blocks share: a block has a part of each row, because the reduced dim is in the grid.
// This file decides where the blocks exchange their partial results (ReduceAcrossBlocks.cpp). It is pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_SHAREDREDUCTIONS_H
#define TILEWRIGHT_PROGRAM_GPU_SHAREDREDUCTIONS_H

#include "dialects/tile/TileDialect.h"

#include "llvm/ADT/SetVector.h"

namespace tilewright {

/// A nest whose reduced dim `dim` is cut into tiles of the grid.
struct SharedReduction {
  tile::ComputeOp nest;
  int64_t dim;
};

/// A shared sum of (x - b)^2, where b depends on the results of an exchange, usually as the mean of x.
struct SharedSquares {
  SharedReduction sum;
  mlir::Value total;                                ///< buffer that b is computed from
  mlir::Value b;                                    ///< b in the body of the nest
  llvm::SetVector<mlir::Operation *> computesB;     ///< ops of the body that b depends on, loads of `total` included
};

/// One grid barrier: the reductions whose partial results the blocks exchange at it.
struct RowExchange {
  llvm::SmallVector<SharedReduction> sums;
  std::optional<SharedSquares> squares; ///< the first reader of `sums`, if it is exchanged at the same barrier
  tile::ComputeOp before;               ///< the first nest that reads a result
};

/// Returns the reduced dims of the nest that are cut into tiles of the grid.
llvm::SmallVector<int64_t> sharedDimsOf(tile::ComputeOp nest);

/// Finds the exchanges of a part in program order. Each comes as late as possible, so that reductions that do not
/// depend on each other share a barrier. Returns why the part has none that can be carried out, or an empty string.
std::string findExchanges(tile::ParallelOp part, llvm::SmallVectorImpl<RowExchange> &exchanges);

} // namespace tilewright

#endif

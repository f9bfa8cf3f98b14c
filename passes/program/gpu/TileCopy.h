// Nests that copy a tile as a whole: one contiguous run of memory, or runs of whole sectors. The threads of a block
// share them as codegen/gpu/copy/TileCopyEmitter.h describes.
#ifndef TILEWRIGHT_PROGRAM_GPU_TILECOPY_H
#define TILEWRIGHT_PROGRAM_GPU_TILECOPY_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/AccessBytes.h"

namespace tilewright {

/// Returns true if a tile of `sizes` of a dense tensor of `shape` is contiguous.
bool isOneRun(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> sizes);

/// Returns true if such a tile consists of runs of whole sectors, for any offset along the dims that it moves along.
bool isSectorRuns(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> sizes, int64_t elementBytes);

/// Creates the nest that copies between a tile of a binding and the buffer aligned to it.
tile::ComputeOp createTileCopy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, mlir::Value target,
                               mlir::ValueRange offsets, llvm::ArrayRef<int64_t> offsetDims);

/// Returns true if createTileCopy() made the nest.
bool isTileCopy(tile::ComputeOp compute);

} // namespace tilewright

#endif

// Nests that copy a tile as a whole: one run of memory, or runs of whole sectors. The threads of a block share them as
// codegen/gpu/copy/TileCopyEmitter.h says.
#ifndef TILEWRIGHT_PROGRAM_GPU_TILECOPY_H
#define TILEWRIGHT_PROGRAM_GPU_TILECOPY_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

constexpr int64_t kSectorBytes = 32;

/// Whether elements [offset, offset + sizes) of a dense tensor lie side by side.
bool isOneRun(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> sizes);

/// Whether such a tile, wherever it starts along the dims that it moves along, is runs of whole sectors.
bool isSectorRuns(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> sizes, int64_t elementBytes);

/// Makes the nest that copies between a tile of a binding and the buffer aligned to it.
tile::ComputeOp createTileCopy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, mlir::Value target,
                               mlir::ValueRange offsets, llvm::ArrayRef<int64_t> offsetDims);

/// Whether createTileCopy made it.
bool isTileCopy(tile::ComputeOp compute);

} // namespace tilewright

#endif

// A tile that is one run of memory, or runs of whole sectors, copied as a whole by the threads of a block.
#ifndef TILEWRIGHT_CODEGEN_GPU_TILECOPY_H
#define TILEWRIGHT_CODEGEN_GPU_TILECOPY_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/IRMapping.h"

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

/// Emits it: vectors of 16 bytes from the first whole sector to the last, single elements before and behind where it is
/// one run, so that every sector is touched once. Some vectors of a thread are on their way at the same time.
void emitTileCopy(mlir::OpBuilder &builder, tile::ComputeOp copy, const mlir::IRMapping &values, mlir::Value thread,
                  int64_t threads);

} // namespace tilewright

#endif

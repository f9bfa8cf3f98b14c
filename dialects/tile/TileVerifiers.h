// Questions that the verifiers of both levels ask.
#ifndef TILEWRIGHT_DIALECTS_TILE_TILEVERIFIERS_H
#define TILEWRIGHT_DIALECTS_TILE_TILEVERIFIERS_H

#include "dialects/tile/TileDialect.h"

namespace tilewright::tile {

/// Whether the dims are different ones of a space of this rank.
bool distinctDims(llvm::ArrayRef<int64_t> dims, int64_t rank);

/// Refuses a map over another space than that of the op around; `constraint` is the number that the message begins with.
mlir::LogicalResult verifySpace(mlir::Operation *op, unsigned numDims, unsigned numSymbols,
                                llvm::StringRef constraint);

} // namespace tilewright::tile

#endif

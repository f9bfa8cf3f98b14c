// Checks that the verifiers of both levels share.
#ifndef TILEWRIGHT_DIALECTS_TILE_TILEVERIFIERS_H
#define TILEWRIGHT_DIALECTS_TILE_TILEVERIFIERS_H

#include "dialects/tile/TileDialect.h"

namespace tilewright::tile {

/// Returns true if the dims are distinct dims of a space of this rank.
bool distinctDims(llvm::ArrayRef<int64_t> dims, int64_t rank);

/// Fails if a map is not over the space of the enclosing op. `constraint` is the number that the message begins with.
mlir::LogicalResult verifySpace(mlir::Operation *op, unsigned numDims, unsigned numSymbols,
                                llvm::StringRef constraint);

} // namespace tilewright::tile

#endif

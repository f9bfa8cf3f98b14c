// Buffers whose first element lies where a tile of a tensor starts, modulo the bytes of a vector: copies between the
// two are then of whole vectors, wherever the tile starts. And buffers that outlive their phase.
#ifndef TILEWRIGHT_TILE_BUFFERPLACES_H
#define TILEWRIGHT_TILE_BUFFERPLACES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright::tile {

/// Of a vector, as the threads of a block copy.
inline constexpr int64_t kCopyBytes = 16;

/// -1: nothing is kept in it.
int64_t keptNumber(AllocOp alloc);

/// Of a buffer, and what it may be shifted by.
int64_t bufferBytes(AllocOp alloc);

} // namespace tilewright::tile

#endif

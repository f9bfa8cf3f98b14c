// Buffers with special offsets: aligned buffers start at the same address as a tile of a tensor, modulo the bytes of a
// vector, so that copies between the two are of whole vectors wherever the tile starts; buffers of resident tiles have
// the same offset in several phases (tile.aligned_as and tile.resident_tile in TileAttributeNames.h).
#ifndef TILEWRIGHT_DIALECTS_TILE_BUFFEROFFSETS_H
#define TILEWRIGHT_DIALECTS_TILE_BUFFEROFFSETS_H

#include "dialects/tile/TileDialect.h"

namespace tilewright::tile {

/// Bytes of the vectors with which the threads of a block copy.
inline constexpr int64_t kCopyBytes = 16;

/// Returns the number of the resident tile that the buffer holds, or -1 if it holds none.
int64_t residentTileNumber(AllocOp alloc);

/// Returns the bytes of a buffer, including the most that alignment may shift it by.
int64_t bufferBytes(AllocOp alloc);

} // namespace tilewright::tile

#endif

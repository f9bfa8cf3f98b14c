// Reads the attributes of buffers with special offsets.
#include "dialects/tile/BufferOffsets.h"

#include "dialects/tile/TileAttributeNames.h"

using namespace tilewright;

int64_t tile::bufferBytes(AllocOp alloc) {
  return alloc.getType().getNumBytes() + (alloc->hasAttr(kAlignedAsAttr) ? kCopyBytes : 0);
}

int64_t tile::residentTileNumber(AllocOp alloc) {
  auto number = alloc->getAttrOfType<mlir::IntegerAttr>(kResidentTileAttr);
  return number ? number.getInt() : -1;
}

#include "passes/layout/ScratchPlaces.h"

#include "llvm/Support/MathExtras.h"

using namespace tilewright;

int64_t tilewright::lowestOffset(const ScratchUse &own, llvm::ArrayRef<ScratchUse> placed, int64_t alignment) {
  int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const ScratchUse &other : placed) {
      bool together = other.first <= own.last && own.first <= other.last;
      if (together && offset < other.offset + other.bytes && other.offset < offset + own.bytes) {
        offset = llvm::alignTo(other.offset + other.bytes, alignment);
        moved = true;
      }
    }
  }
  return offset;
}

#include "passes/normalize/layers/ColumnGroups.h"

#include "llvm/Support/MathExtras.h"

using namespace tilewright;

ColumnGroups tilewright::groupColumns(int64_t columns, int64_t weightBytes, int64_t layers, const Target &target) {
  constexpr int64_t kLeastColumns = 32; // a row of weights that a warp copies at once
  // Tiles of products have powers of two of columns. The least padding is best, then the most blocks.
  ColumnGroups best{1, columns};
  bool fits = false;
  for (int64_t own = kLeastColumns; own < columns; own *= 2) {
    int64_t count = llvm::divideCeil(columns, own), bytes = own * weightBytes + target.costs.gpu.waveBytes,
            together = llvm::divideCeil(count * layers, target.gpu.guaranteedSms);
    if (bytes <= target.blockBytes && together <= target.costs.gpu.waveBlocks &&
        together * (bytes + target.gpu.reservedSharedBytes) <= target.gpu.sharedBytesPerSm &&
        (!fits || count * own < best.count * best.columns)) {
      best = {count, own};
      fits = true;
    }
  }
  return best;
}

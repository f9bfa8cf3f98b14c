// Compares the issue cycles of the warp instructions saved with the seconds the L2 takes for the padding.
#include "passes/cost/BulkCopies.h"

#include "passes/cost/BlockLatency.h"
#include "passes/cost/ProductCost.h"
#include "passes/target/AccessBytes.h"

#include "llvm/Support/MathExtras.h"

using namespace tilewright;

BulkCopyGain tilewright::bulkCopyGain(const CopiedOperand &operand, const GemmTiling &tiling, int64_t threads,
                                      const Target &target) {
  int64_t steps = operand.tiles * operand.steps, perCopy = operand.copyBytes < kLeastAsyncBytes ? 2 : 1;
  BulkCopyGain gain;
  gain.copies = steps * perCopy * llvm::divideCeil(tiling.rhsSlotBytes, operand.copyBytes * target.gpu.warpLanes);
  gain.waits = steps * llvm::divideCeil(threads, target.gpu.warpLanes);
  gain.addedBytes = static_cast<double>(steps * tiling.rhsSlotBytes) - operand.plainBytes;
  // The tiles of the last wave have their SMs to themselves and count as a full wave.
  double tiles = static_cast<double>(operand.tiles), sms = static_cast<double>(target.cores);
  double share = static_cast<double>(llvm::divideCeil(operand.tiles, target.cores)) / tiles;
  gain.savedSeconds = static_cast<double>(gain.copies - gain.waits) * share * target.costs.gpu.memoryCycles /
                      kSchedulers / target.gpu.clockHz;
  gain.addedSeconds = gain.addedBytes * share * sms / l2Bandwidth(target);
  return gain;
}

// Gives every buffer of a tile program its offset in shared memory: best fit over live ranges (support/BestFit.h).
#include "dialects/tile/BufferOffsets.h"
#include "passes/Passes.h"
#include "passes/program/PartBuffers.h"

namespace tilewright {
#define GEN_PASS_DEF_ALLOCATEBUFFERS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// Places resident tiles in front of all other buffers, because they live through several phases. Returns their end, in
/// bytes.
int64_t placeResidentTiles(ProgramOp program) {
  ResidentBuffers resident = residentBuffersOf(program);
  BestFit fit = placeByBestFit(resident.ranges);
  for (auto [buffers, offset] : llvm::zip(resident.ops, fit.offsets))
    for (AllocOp buffer : buffers)
      buffer.setOffset(offset);
  return fit.end;
}

struct AllocateBuffers : tilewright::impl::AllocateBuffersBase<AllocateBuffers> {
  void runOnOperation() override {
    int64_t first = placeResidentTiles(getOperation());
    for (auto part : getOperation().getBody().getOps<ParallelOp>()) {
      PartBuffers buffers = buffersOf(part);
      BestFit fit = placeByBestFit(buffers.ranges);
      int64_t total = 0;
      for (auto [op, range, offset] : llvm::zip(buffers.ops, buffers.ranges, fit.offsets)) {
        op.setOffset(first + offset);
        total += range.bytes;
      }
      bytes += fit.end;
      shared += total - fit.end;
    }
  }
};
} // namespace

// Takes the least of what threads, registers and shared memory allow, in the units in which an SM allocates them.
#include "passes/target/Occupancy.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tilewright;

namespace {
constexpr int64_t kRegisterUnit = 8;   ///< granularity of a thread's register allocation
constexpr int64_t kSharedUnit = 128;   ///< granularity of a block's shared memory, in bytes
constexpr int64_t kPortableBlocks = 8; ///< largest portable cluster (CUDA programming guide)
} // namespace

int64_t tilewright::residentBlocks(const GpuLimits &gpu, int64_t threads, int64_t sharedBytes, int64_t registers) {
  int64_t perThread = alignTo(std::max<int64_t>(registers, 1), kRegisterUnit);
  int64_t warpsOfScheduler = gpu.registersPerSm / kSchedulers / (perThread * gpu.warpLanes);
  int64_t byThreads = gpu.threadsPerSm / threads;
  int64_t byRegisters = kSchedulers * warpsOfScheduler / divideCeil(threads, gpu.warpLanes);
  int64_t perBlock = alignTo(std::max<int64_t>(sharedBytes + gpu.reservedSharedBytes, 1), kSharedUnit);
  int64_t byShared = gpu.sharedBytesPerSm / perBlock;
  return std::min({gpu.blocksPerSm, byThreads, byRegisters, byShared});
}

int64_t tilewright::coResidentBlocks(const Target &target, int64_t residentBlocks) {
  return residentBlocks * target.gpu.guaranteedSms;
}

bool tilewright::hasRoomForPrefetch(const Target &target, const BlockResources &block, int64_t sharedBytes,
                                    int64_t sms) {
  if (sharedBytes > target.blockBytes)
    return false;
  int64_t before = residentBlocks(target.gpu, block.threads, block.sharedBytes, block.registers);
  int64_t after = residentBlocks(target.gpu, block.threads, sharedBytes, block.registers);
  return after >= std::min<int64_t>(before, divideCeil(block.blocks, sms));
}

int64_t tilewright::largestCluster(const Target &target) { return target.cpu == "sm_90" ? kPortableBlocks : 1; }

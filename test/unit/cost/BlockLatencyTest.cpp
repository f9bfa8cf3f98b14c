// Tests the latency model: it is monotone in the work, bounded by the bytes, and counts what limits residency.
#include "passes/cost/BlockLatency.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
Target h200() { return *lookupTarget("cuda:h200"); }

BlockWork rows(int64_t blocks, int64_t threads, double turns) {
  BlockWork work;
  work.blocks = blocks;
  work.threads = threads;
  work.bytes = 1e6;
  work.nests.push_back({turns, /*globalLoads=*/1, /*sharedLoads=*/0, /*instructions=*/4});
  return work;
}

TEST(BlockLatency, threads_registers_and_shared_memory_limit_residency) {
  GpuLimits gpu = h200().gpu;
  EXPECT_EQ(residentBlocks(gpu, 256, 0, 32), 8);  // limited by 2048 threads
  EXPECT_EQ(residentBlocks(gpu, 32, 0, 32), 32);  // limited by 32 blocks
  EXPECT_EQ(residentBlocks(gpu, 256, 0, 128), 2); // limited by 65536 registers
  EXPECT_EQ(residentBlocks(gpu, 64, 0, 176), 4);  // 16384 registers per scheduler hold 2 warps
  EXPECT_EQ(residentBlocks(gpu, 256, 100 * 1024, 32),
            2);                                    // limited by 228 KiB, of which the system reserves 1 KiB per block
  EXPECT_EQ(residentBlocks(gpu, 1024, 0, 255), 0); // no block fits
}

TEST(BlockLatency, a_block_that_does_not_fit_takes_forever) {
  BlockWork work = rows(1, 1024, 1);
  work.registers = 255;
  EXPECT_EQ(blockLatency(work, h200()).seconds, std::numeric_limits<double>::infinity());
}

TEST(BlockLatency, more_work_never_takes_less_time) {
  Target target = h200();
  double before = blockLatency(rows(500, 128, 4), target).seconds;
  for (double factor : {2.0, 16.0, 256.0}) {
    EXPECT_GE(blockLatency(rows(500 * factor, 128, 4), target).seconds, before);
    EXPECT_GE(blockLatency(rows(500, 128, 4 * factor), target).seconds, before);
    BlockWork more = rows(500, 128, 4);
    more.bytes *= factor;
    EXPECT_GE(blockLatency(more, target).seconds, before);
  }
}

TEST(BlockLatency, large_kernels_take_what_their_bytes_take) {
  Target target = h200();
  BlockWork work = rows(100000, 256, 4);
  work.bytes = 1e9;
  double bound = work.bytes / target.level(tile::Space::global).bandwidth;
  EXPECT_GE(blockLatency(work, target).seconds, bound);
  EXPECT_LT(blockLatency(work, target).seconds, 1.3 * bound);
}

TEST(BlockLatency, few_blocks_wait_for_the_ports_of_their_sms) {
  Target target = h200();
  BlockWork work = rows(4, 1024, 4);
  work.bytes = 4e6;
  EXPECT_GE(blockLatency(work, target).seconds, work.bytes / (4 * 64 * target.gpu.clockHz));
}

TEST(BlockLatency, what_blocks_read_again_takes_time) {
  BlockWork once = rows(10000, 256, 4), again = once;
  once.bytes = again.bytes = 1e8;
  again.movedBytes = 3e8;
  EXPECT_LT(blockLatency(once, h200()).seconds, blockLatency(again, h200()).seconds);
}

TEST(BlockLatency, combining_over_warps_costs_more_than_over_lanes) {
  BlockWork lanes = rows(100, 256, 4), warps = lanes;
  lanes.nests[0].accumulators = warps.nests[0].accumulators = 1;
  lanes.nests[0].combinedLanes = warps.nests[0].combinedLanes = 32;
  warps.nests[0].combinedWarps = 8;
  EXPECT_LT(blockLatency(lanes, h200()).seconds, blockLatency(warps, h200()).seconds);
}
} // namespace

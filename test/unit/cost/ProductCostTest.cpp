// Tests the cost of a contraction on an SM: each resource counts, and steps in flight cover waiting.
#include "passes/cost/ProductCost.h"
#include "passes/cost/ChooseGemm.h"
#include "passes/target/Warpgroups.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
class ProductCost : public ::testing::Test {
protected:
  Target target = *lookupTarget("cuda:h200");

  MicroKernel kernelFor(const char *type) const {
    return *chooseMicroKernel(target, {type, type, "f32"}, {1}, NumericsMode::standard);
  }

  GemmTiling tilingOf(const MicroKernel &kernel, int64_t m, int64_t n, int64_t k, int64_t threads, bool alone = false,
                      int64_t kSlices = 1) const {
    int64_t bytes = kernel.unit == StepUnit::thread ? 4 : 2;
    return *chooseGemmTiling({m, n, k, bytes, bytes, true}, threads, kernel, target.costs.gpu, {kSlices, alone});
  }

  ProductWork workOf(const MicroKernel &kernel, double m, double n, double k) const {
    ProductWork work{kernel, 1, k, 0};
    work.lhsBytes = work.rhsBytes = kernel.unit == StepUnit::thread ? 4 : 2;
    work.bytes = k * (m + n) * static_cast<double>(work.lhsBytes);
    work.lhsCopies = work.rhsCopies = target.costs.gpu.copyInstructions * static_cast<double>(work.lhsBytes) / 16;
    return work;
  }

  double cyclesOf(const ProductWork &work, const GemmTiling &tiling, Occupancy occupancy) const {
    return productSeconds(work, tiling, occupancy, target) * target.gpu.clockHz;
  }
};

TEST_F(ProductCost, more_steps_on_their_way_cover_more_of_the_latency) {
  MicroKernel kernel = kernelFor("f16");
  ProductWork work = workOf(kernel, 32, 32, 4096);
  GemmTiling few = tilingOf(kernel, 32, 32, 4096, 64), many = tilingOf(kernel, 32, 32, 4096, 64, /*alone=*/true);
  ASSERT_LT(few.stages, many.stages);
  EXPECT_GT(cyclesOf(work, few, {128, 1, 64}), cyclesOf(work, many, {128, 1, 64}));
}

TEST_F(ProductCost, begun_copies_are_not_waited_for_once_more) {
  MicroKernel kernel = kernelFor("f16");
  GemmTiling tiling = tilingOf(kernel, 32, 32, 64, 64);
  ProductWork work = workOf(kernel, 32, 32, 64), prefetched = work;
  prefetched.prefetched = true;
  EXPECT_GT(cyclesOf(work, tiling, {128, 1, 64}), cyclesOf(prefetched, tiling, {128, 1, 64}) + target.gpu.dramCycles);
}

// A tile of one row has accumulators for two warps at most; with K sliced, four times as many warps multiply, in
// shorter chains.
TEST_F(ProductCost, warps_that_share_the_terms_are_quicker_than_idle_ones) {
  MicroKernel kernel = kernelFor("f16");
  ProductWork work = workOf(kernel, 1, 32, 8192);
  work.prefetched = true;
  GemmTiling alone = tilingOf(kernel, 1, 32, 8192, 256, /*alone=*/true);
  GemmTiling shared = tilingOf(kernel, 1, 32, 8192, 256, /*alone=*/true, /*kSlices=*/4);
  EXPECT_GT(cyclesOf(work, alone, {128, 1, 256}), cyclesOf(work, shared, {128, 1, 256}));
}

TEST_F(ProductCost, lines_that_begin_inside_words_cost_instructions) {
  MicroKernel kernel = kernelFor("f16");
  GemmTiling tiling = tilingOf(kernel, 16, 64, 4096, 64);
  ProductWork work = workOf(kernel, 16, 64, 4096), shifted = work;
  shifted.lhsCopies = target.costs.gpu.shiftedCopyInstructions * 2 / 4;
  EXPECT_GT(cyclesOf(shifted, tiling, {15, 1, 64}), cyclesOf(work, tiling, {15, 1, 64}));
}

// A tile of 64x64 with a K of 4096 in f32 takes no more than a thread's share of the issue rate, and no less than the
// lanes allow.
TEST_F(ProductCost, single_threads_do_not_reach_the_rate_of_the_lanes) {
  MicroKernel kernel = kernelFor("f32");
  ASSERT_EQ(kernel.unit, StepUnit::thread);
  GemmTiling tiling = tilingOf(kernel, 64, 64, 4096, 128);
  double least = 64.0 * 64 * 4096 / 128; // f32 lanes of an SM
  double cycles = cyclesOf(workOf(kernel, 64, 64, 4096), tiling, {128, 1, 128});
  EXPECT_GT(cycles, least / 0.64);
  EXPECT_LT(cycles, least / 0.4);
}

TEST_F(ProductCost, streams_take_what_the_sms_with_blocks_ask_for) {
  GemmTiling tiling = tilingOf(kernelFor("f16"), 16, 64, 8192, 256, /*alone=*/true);
  double bytes = 1e8, all = bytes / target.levels.back().bandwidth;
  EXPECT_DOUBLE_EQ(streamSeconds(bytes, tiling, 132, target), all);
  EXPECT_GT(streamSeconds(bytes, tiling, 8, target), 2 * all);
  // If some SMs have one block more than the others, DRAM is partly idle at the end.
  EXPECT_GT(streamSeconds(bytes, tiling, 140, target), all);
}
} // namespace

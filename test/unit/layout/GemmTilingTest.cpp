// Tests that the layout of a contraction follows from the plan's choice, field by field, and that a choice that a block
// cannot carry out is refused with numbers.
#include "passes/layout/GemmTiling.h"
#include "passes/target/Warpgroups.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
class GemmTilingTest : public testing::Test {
protected:
  static MicroKernel kernelFor(const char *type) {
    return *chooseMicroKernel(*lookupTarget("cuda:h200"), {type, type, "f32"}, {1}, NumericsMode::standard);
  }
  static MicroKernel warpgroups() {
    return *warpgroupKernel(*lookupTarget("cuda:h200"), {"f16", "f16", "f32"}, NumericsMode::standard);
  }

  std::string refused(const GemmTile &tile, int64_t threads, const MicroKernel &kernel, GemmChoice choice) {
    return deriveGemmTiling(tile, threads, kernel, choice, costs).why().reason;
  }

  GemmTile halves{64, 64, 768, 2, 2, true, true};
  GpuCosts costs;
  GemmChoice choice{/*m=*/2, /*n=*/2, /*kSlices=*/1, /*step=*/32, /*stages=*/4};
};

TEST_F(GemmTilingTest, every_field_is_in_the_layout) {
  GemmTiling tiling = *deriveGemmTiling(halves, 128, kernelFor("f16"), choice, costs);
  EXPECT_EQ(tiling.ownM, 32);
  EXPECT_EQ(tiling.ownN, 32);
  EXPECT_EQ(tiling.step, 32);
  EXPECT_EQ(tiling.lhsSlotBytes, 64 * 32 * 2);
  EXPECT_EQ(tiling.sharedBytes(), 4 * 2 * 64 * 32 * 2);
  choice = {/*m=*/4, /*n=*/1, /*kSlices=*/1, /*step=*/64, /*stages=*/2};
  tiling = *deriveGemmTiling(halves, 128, kernelFor("f16"), choice, costs);
  EXPECT_EQ(tiling.ownM, 16);
  EXPECT_EQ(tiling.ownN, 64);
  EXPECT_EQ(tiling.sharedBytes(), 2 * 2 * 64 * 64 * 2);
}

TEST_F(GemmTilingTest, a_resident_lhs_has_all_steps_at_once) {
  halves.k = 128;
  choice.lhs = tile::Residency::walk;
  GemmTiling tiling = *deriveGemmTiling(halves, 128, kernelFor("f16"), choice, costs);
  EXPECT_EQ(tiling.residentSteps, 4);
  EXPECT_EQ(tiling.slotBytes(), (4 + 4) * 64 * 32 * 2);
  halves.k = 768;
  EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice),
            "lhs takes 98304 bytes of shared memory in all steps; at most 32768 bytes stay resident");
  costs.residentBytes = 98304;
  EXPECT_TRUE(deriveGemmTiling(halves, 128, kernelFor("f16"), choice, costs));
}

TEST_F(GemmTilingTest, units_that_are_no_share_of_the_tile_are_refused) {
  choice.m = 3;
  EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice), "m must be a power of two, not 3");
  choice.m = 8;
  EXPECT_EQ(refused(halves, 1024, kernelFor("f16"), choice),
            "8x2 units cannot share a tile of 64x64: 'mma_sync' takes 16x16 at least");
  choice.m = choice.n = 4;
  EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice),
            "4x4 units of 32 threads, times 1 slices of K, are more than the 128 threads of a block");
  choice.m = choice.n = 1;
  halves.m = halves.n = 128;
  EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice),
            "a tile of 128x128 needs 512 accumulators in each of 128 threads, which hold 128");
}

TEST_F(GemmTilingTest, slices_of_k_leave_no_thread_idle) {
  choice = {/*m=*/1, /*n=*/1, /*kSlices=*/2, /*step=*/64, /*stages=*/4};
  EXPECT_EQ(refused(halves, 256, kernelFor("f16"), choice), "a tile of 64x64 leaves threads idle in 2 slices of K");
  EXPECT_TRUE(deriveGemmTiling(halves, 64, kernelFor("f16"), choice, costs));
  choice.kSlices = 8;
  EXPECT_EQ(refused(halves, 64, kernelFor("f16"), choice), "64 threads are too few for slices of K: 8");
}

TEST_F(GemmTilingTest, steps_have_whole_instructions_and_fit_a_line) {
  choice.step = 8;
  EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice),
            "a step of 8 along K is too short: 'mma_sync' takes 16 at least");
  choice.step = 128;
  EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice),
            "a step of 128 along K is too long: 'mma_sync' takes 64 at most");
  for (int64_t stages : {1, 13}) {
    choice = {/*m=*/2, /*n=*/2, /*kSlices=*/1, /*step=*/32, stages};
    EXPECT_EQ(refused(halves, 128, kernelFor("f16"), choice),
              std::to_string(stages) + " stages: a contraction has between 2 and 12");
  }
}

TEST_F(GemmTilingTest, steps_of_warpgroups_overlap_from_four_stages_on) {
  choice = {/*m=*/1, /*n=*/1, /*kSlices=*/1, /*step=*/64, /*stages=*/3};
  EXPECT_FALSE(deriveGemmTiling(halves, 128, warpgroups(), choice, costs)->overlaps);
  choice.stages = 4;
  EXPECT_TRUE(deriveGemmTiling(halves, 128, warpgroups(), choice, costs)->overlaps);
  costs.overlappingStages = 5;
  EXPECT_FALSE(deriveGemmTiling(halves, 128, warpgroups(), choice, costs)->overlaps);
  EXPECT_EQ(refused(halves, 64, warpgroups(), choice),
            "warpgroups take blocks of a multiple of 128 threads and do not slice K; the block has 64 threads, K has "
            "slices: 1");
}
} // namespace

// How threads share a tile of sums: the shares make up the tile, and what does not fit is refused in numbers.
#include "passes/cost/SumTiling.h"
#include "passes/target/Target.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
MicroKernel kernelFor(const char *type) {
  ProductTypes types{type, type, "f32"};
  return *chooseMicroKernel(*lookupTarget("cuda:h200"), types, {1}, /*strict=*/false);
}

TEST(SumTiling, shares_make_up_the_tile) {
  for (const char *type : {"f32", "f16"})
    for (int64_t rows : {1, 3, 16, 37, 64, 128})
      for (int64_t lanes : {16, 53, 64, 128})
        for (int64_t threads : {64, 128, 256}) {
          MicroKernel kernel = kernelFor(type);
          std::optional<SumTiling> tiling = tileSums({rows, lanes, 100, 4, 4}, threads, kernel);
          if (!tiling)
            continue;
          EXPECT_GE(tiling->rows, rows);
          EXPECT_GE(tiling->lanes, lanes);
          EXPECT_EQ(tiling->rowUnits * tiling->ownRows, tiling->rows);
          EXPECT_EQ(tiling->laneUnits * tiling->ownLanes, tiling->lanes);
          int64_t lanesOfUnit = kernel.unit == StepUnit::warp ? 32 : 1;
          EXPECT_LE(tiling->rowUnits * tiling->laneUnits * lanesOfUnit, threads);
          EXPECT_EQ(tiling->sums * lanesOfUnit, tiling->ownRows * tiling->ownLanes);
          EXPECT_EQ(tiling->step % kernel.depth, 0);
        }
}

TEST(SumTiling, threads_stand_in_a_square) {
  SumTiling tiling = *tileSums({128, 128, 768, 4, 4}, 256, kernelFor("f32"));
  EXPECT_EQ(tiling.ownRows, 8);
  EXPECT_EQ(tiling.ownLanes, 8);
  EXPECT_EQ(tiling.step, 16);
  EXPECT_EQ(tiling.sharedBytes(), 2 * 2 * 128 * 16 * 4);
}

TEST(SumTiling, warps_have_whole_blocks_of_the_instruction) {
  SumTiling tiling = *tileSums({1, 8, 768, 2, 2}, 128, kernelFor("bf16"));
  EXPECT_EQ(tiling.rows, 16);
  EXPECT_EQ(tiling.lanes, 16);
  EXPECT_EQ(tiling.rowUnits * tiling.laneUnits, 1);
  EXPECT_EQ(tiling.sums, 8);
}

TEST(SumTiling, steps_are_shorter_where_rows_are_long) {
  SumTiling tiling = *tileSums({16, 1024, 768, 2, 2}, 256, kernelFor("f16"));
  EXPECT_EQ(tiling.step, 16);
  EXPECT_EQ(tiling.sharedBytes(), 3 * (16 + 1024) * 16 * 2);
}

TEST(SumTiling, what_registers_do_not_hold_is_refused) {
  std::string reason;
  EXPECT_FALSE(tileSums({256, 256, 768, 4, 4}, 128, kernelFor("f32"), &reason));
  EXPECT_EQ(reason, "a tile of 256x256 sums is 512 for each of 128 threads, which hold 64");
}
} // namespace

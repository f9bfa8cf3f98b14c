// Tests the passes of a warp's accesses over cache lines and banks.
#include "passes/layout/WarpPasses.h"
#include "gtest/gtest.h"

using namespace tilewright;

TEST(WarpPasses, lanes_side_by_side_take_one) {
  for (int64_t bytes : {2, 4, 8, 16}) {
    WarpPasses passes = warpPasses(32, 4096, bytes);
    EXPECT_EQ(passes.global, 1) << bytes;
    EXPECT_EQ(passes.shared, 1) << bytes;
    EXPECT_TRUE(passes.wholeSectors) << bytes;
  }
}

TEST(WarpPasses, rows_that_are_whole_lie_side_by_side) { EXPECT_EQ(warpPasses(2, 32, 16).global, 1); }

TEST(WarpPasses, rows_of_an_odd_number_of_words_miss_no_bank) {
  WarpPasses passes = warpPasses(1, 5 * 4, 4);
  EXPECT_EQ(passes.shared, 1);
  EXPECT_FALSE(passes.wholeSectors);
}

TEST(WarpPasses, threads_at_rows_of_eight_words_meet_in_banks) { EXPECT_EQ(warpPasses(1, 8 * 4, 4).shared, 8); }

TEST(WarpPasses, a_few_lanes_a_row_touch_a_line_each) {
  EXPECT_EQ(warpPasses(4, 1024, 16).global, 2);
  EXPECT_EQ(warpPasses(2, 1024, 16).global, 4);
}

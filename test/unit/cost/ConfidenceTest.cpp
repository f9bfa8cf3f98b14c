// Tests the comparison of predicted times.
#include "passes/cost/Confidence.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
TEST(Confidence, a_shorter_time_is_faster_only_beyond_the_error) {
  EXPECT_TRUE(isFaster(0.9, 1, 0));
  EXPECT_TRUE(isFaster(0.74, 1, 0.25));
  EXPECT_FALSE(isFaster(0.75, 1, 0.25));
  EXPECT_FALSE(isFaster(1, 1, 0));
}

TEST(Confidence, two_times_within_the_error_are_faster_than_neither) {
  EXPECT_FALSE(isFaster(0.9, 1, 0.2));
  EXPECT_FALSE(isFaster(1, 0.9, 0.2));
}

TEST(Confidence, the_least_faster_time_is_not_faster_itself) {
  EXPECT_DOUBLE_EQ(leastFaster(8, 0.25), 6);
  EXPECT_FALSE(isFaster(leastFaster(8, 0.25), 8, 0.25));
}
} // namespace

// Tests how many neighbours of an operand are copied at once, also where indices divide a dim into pieces.
#include "passes/layout/OperandAccess.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tilewright;

namespace {

/// Accesses of points (d0), which are lines of an image, and of K (d1), which is the window and its channels.
class OperandAccessTest : public ::testing::Test {
protected:
  AffineExpr point() { return getAffineDimExpr(0, &context); }
  AffineExpr k() { return getAffineDimExpr(1, &context); }
  AffineMap map(ArrayRef<AffineExpr> results) { return AffineMap::get(2, 0, results, &context); }

  /// The windows of 3x3 of an image of 10x10 whose channels are innermost.
  AffineMap channelsLast(int64_t channels) {
    AffineExpr inWindow = k().floorDiv(channels);
    return map({point().floorDiv(8) + inWindow.floorDiv(3), point() % 8 + inWindow % 3, k() % channels});
  }
  /// The same with the channels outermost.
  AffineMap channelsFirst() {
    return map({k().floorDiv(9), point().floorDiv(8) + k().floorDiv(3) % 3, point() % 8 + k() % 3});
  }

  MLIRContext context;
};

TEST_F(OperandAccessTest, channels_of_a_window_are_copied_together) {
  SmallVector<int64_t> shape{10, 10, 16}, extents{64, 144};
  OperandAccess access{channelsLast(16), shape, 2, extents, extents};
  EXPECT_EQ(access.alignedRun(1, 8), 8);
  EXPECT_TRUE(access.liesByK(0, 1));
  EXPECT_EQ(access.copiedAtOnce(0, 1, 64, 32), 8);
}

TEST_F(OperandAccessTest, runs_do_not_cross_into_the_next_point_of_a_window) {
  SmallVector<int64_t> shape{10, 10, 12}, extents{64, 108};
  OperandAccess access{channelsLast(12), shape, 2, extents, extents};
  EXPECT_EQ(access.alignedRun(1, 8), 4);
}

TEST_F(OperandAccessTest, points_lie_closer_than_windows_if_channels_are_outermost) {
  SmallVector<int64_t> shape{16, 10, 10}, extents{64, 144};
  OperandAccess access{channelsFirst(), shape, 2, extents, extents};
  EXPECT_FALSE(access.liesByK(0, 1));
  EXPECT_EQ(access.alignedRun(0, 8), 1); // the window moves the line by one element
}

TEST_F(OperandAccessTest, guards_of_points_hold_for_whole_runs_of_channels) {
  SmallVector<int64_t> shape{10, 10, 16}, extents{64, 144};
  OperandAccess access{channelsLast(16), shape, 2, extents, extents};
  AffineExpr column = point() % 8 + k().floorDiv(16) % 3;
  access.guard = IntegerSet::get(2, 0, {column - 1}, {false});
  EXPECT_TRUE(access.isGuardedByRuns(1, 8));
  access.guard = IntegerSet::get(2, 0, {k() % 16 - 3}, {false});
  EXPECT_FALSE(access.isGuardedByRuns(1, 8));
  EXPECT_EQ(access.copiedAtOnce(0, 1, 64, 32), 1);
}

} // namespace

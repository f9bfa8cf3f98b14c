// Tests which slices of inputs a tile's buffers keep, and how they are laid out.
#include "passes/layout/BufferedSlice.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tilewright;

namespace {

class BufferedSlice : public ::testing::Test {
protected:
  AffineMap map(ArrayRef<AffineExpr> results) { return AffineMap::get(2, 0, results, &context); }
  AffineExpr d(unsigned position) { return getAffineDimExpr(position, &context); }
  MLIRContext context;
};

TEST_F(BufferedSlice, points_take_no_more_than_the_tensor) {
  EXPECT_TRUE(isKeptByPoints(map({d(1), d(0)}), {4, 8}, {8, 4}));
  EXPECT_TRUE(isKeptByPoints(map({d(0) * 8 + d(1)}), {4, 8}, {32}));
  EXPECT_FALSE(isKeptByPoints(map({d(0) + d(1)}), {4, 8}, {11})); // windows overlap
}

TEST_F(BufferedSlice, lines_begin_in_different_banks) {
  // Lines of 32 words would all begin in one bank.
  EXPECT_EQ(bufferedSliceShape(map({d(0), d(1)}), {4, 32}, {2, 32}, 4, /*padded=*/false),
            (SmallVector<int64_t>{2, 32}));
  SmallVector<int64_t> padded = bufferedSliceShape(map({d(0), d(1)}), {4, 32}, {2, 32}, 4, /*padded=*/true);
  EXPECT_EQ(padded[0], 2);
  EXPECT_GT(padded[1], 32);
}

TEST_F(BufferedSlice, lines_of_odd_sizes_begin_in_different_banks) {
  // Four threads each read a word of eight lines of 49 halves; lines of 28 words keep them in different banks.
  EXPECT_EQ(bufferedSliceShape(map({d(0), d(1)}), {4, 49}, {2, 49}, 2, /*padded=*/true), (SmallVector<int64_t>{2, 56}));
  EXPECT_EQ(bufferedSliceShape(map({d(0), d(1)}), {4, 36}, {2, 36}, 4, /*padded=*/true), (SmallVector<int64_t>{2, 40}));
  EXPECT_EQ(bufferedSliceShape(map({d(0), d(1)}), {4, 3}, {2, 3}, 4, /*padded=*/true), (SmallVector<int64_t>{2, 3}));
}

TEST_F(BufferedSlice, lines_behind_one_another_stay_so) {
  EXPECT_EQ(bufferedSliceShape(map({d(0) * 32 + d(1)}), {4, 32}, {2, 32}, 4, /*padded=*/true),
            (SmallVector<int64_t>{2, 32}));
}

} // namespace

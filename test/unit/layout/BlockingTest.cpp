// Tests which register blocks are chosen for a contraction on a processor, and which are refused. The tests of code
// generation and of plans check that a choice is carried out.
#include "passes/layout/Blocking.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tilewright;

namespace {

/// A product of 102 by 96 and 96 by 128 elements of f32 on vectors of 16 lanes, in register blocks of 6 by 4.
class BlockingTest : public ::testing::Test {
protected:
  BlockingTest() {
    kernel.name = "fma";
    AffineExpr m = getAffineDimExpr(0, &context), n = getAffineDimExpr(1, &context), k = getAffineDimExpr(2, &context);
    rows = AffineMap::get(3, 0, {m, k}, &context);
    panels = AffineMap::get(3, 0, {n.floorDiv(64), k, n % 64}, &context);
    plain = AffineMap::get(3, 0, {k, n}, &context);
  }

  BlockedContraction product(AffineMap rhs, ArrayRef<int64_t> rhsShape) {
    return {{rows, lhsShape, 4, sizes, sizes},
            {rhs, rhsShape, 4, sizes, sizes},
            /*m=*/0, /*n=*/1, /*k=*/2,
            /*reducesOneDim=*/true, /*rhsInMemory=*/true, /*keepsAccumulators=*/true,
            /*packedDepth=*/1, /*accumulatorBytes=*/4, /*lanes=*/16,
            kernel, {6, 4}, kBlock};
  }

  MLIRContext context;
  MicroKernel kernel;
  AffineMap rows, panels, plain;
  SmallVector<int64_t> sizes{102, 128, 96}, lhsShape{102, 96}, packedShape{2, 96, 64}, plainShape{96, 128};
  int64_t kBlock = 0;
};

TEST_F(BlockingTest, panels_in_line_are_prefetched) {
  EXPECT_EQ(chooseBlocking(product(panels, packedShape)).prefetch, 16384);
}

TEST_F(BlockingTest, an_iteration_has_at_most_96_multiply_adds) {
  EXPECT_EQ(chooseBlocking(product(panels, packedShape)).unroll, 4);
}

TEST_F(BlockingTest, an_iteration_has_a_run_of_a_window_or_a_part_of_it) {
  AffineExpr m = getAffineDimExpr(0, &context), k = getAffineDimExpr(2, &context);
  rows = AffineMap::get(3, 0, {m + k.floorDiv(12), k % 12}, &context);
  lhsShape = {110, 12};
  BlockedContraction own = product(panels, packedShape);
  EXPECT_EQ(chooseBlocking(own).unroll, 12);
  own.costs.windowSteps = 8;
  EXPECT_EQ(chooseBlocking(own).unroll, 6);
  own.costs.windowRun = 4;
  EXPECT_EQ(chooseBlocking(own).unroll, 4);
}

TEST_F(BlockingTest, steps_of_a_single_row_block_stay_apart) {
  sizes[0] = 6;
  EXPECT_EQ(chooseBlocking(product(panels, packedShape)).unroll, 1);
}

TEST_F(BlockingTest, whole_iterations_fill_a_copied_panel) {
  kBlock = 30;
  EXPECT_EQ(chooseBlocking(product(plain, plainShape)).unroll, 3);
}

TEST_F(BlockingTest, rows_of_a_matrix_are_no_panels) {
  EXPECT_EQ(chooseBlocking(product(plain, plainShape)).prefetch, 0);
}

TEST_F(BlockingTest, a_block_of_k_whose_steps_lie_apart_is_copied) {
  kBlock = 32;
  EXPECT_EQ(chooseBlocking(product(plain, plainShape)).panelK, 32);
}

TEST_F(BlockingTest, a_block_of_k_that_is_packed_is_read_in_place) {
  kBlock = 32;
  EXPECT_EQ(chooseBlocking(product(panels, packedShape)).panelK, 0);
}

TEST_F(BlockingTest, one_row_has_wider_blocks) {
  sizes[0] = 1;
  EXPECT_EQ(chooseBlocking(product(plain, plainShape)).vectors, 8);
}

TEST_F(BlockingTest, blocks_of_one_row_do_not_exceed_a_packed_panel) {
  sizes[0] = 1;
  EXPECT_EQ(chooseBlocking(product(panels, packedShape)).vectors, 4);
}

TEST_F(BlockingTest, one_row_reads_four_narrow_panels) {
  EXPECT_EQ(chooseVectors(kernel, {6, 2}, /*rows=*/1, /*lanes=*/8, {192, 192, 16}, CpuCosts()), 8);
}

TEST_F(BlockingTest, blocks_of_one_row_begin_with_a_panel) {
  EXPECT_EQ(chooseVectors(kernel, {6, 2}, /*rows=*/1, /*lanes=*/8, {48, 192, 16}, CpuCosts()), 2);
}

TEST_F(BlockingTest, one_block_of_rows_has_k_outermost) {
  kBlock = 32;
  EXPECT_FALSE(chooseBlocking(product(plain, plainShape)).kOutermost);
  sizes[0] = 6;
  EXPECT_TRUE(chooseBlocking(product(plain, plainShape)).kOutermost);
}

TEST_F(BlockingTest, a_last_row_shares_those_of_the_block_before_it) {
  EXPECT_EQ(chooseBlocking(product(plain, plainShape)).evenRows, 0);
  sizes[0] = 103;
  EXPECT_EQ(chooseBlocking(product(plain, plainShape)).evenRows, kIndependentAccumulators);
}

TEST_F(BlockingTest, a_block_of_fewer_columns_shares_its_last_rows) {
  sizes[1] = 144; // 24 rows at once of the last vector, which leaves 6 of 102
  EXPECT_EQ(whyNotBlocked(product(plain, plainShape), {4, 1, 0, 0, false, 8}), "");
}

TEST_F(BlockingTest, columns_that_fill_no_block_widen_the_last_one) {
  EXPECT_FALSE(chooseBlocking(product(plain, plainShape)).widerLast);
  sizes[1] = 130;
  EXPECT_TRUE(chooseBlocking(product(plain, plainShape)).widerLast);
}

TEST_F(BlockingTest, what_is_chosen_is_not_refused) {
  for (kBlock = 0; kBlock < 100; kBlock += 12)
    for (int64_t count : {1, 2, 6, 7, 96, 102, 103}) {
      sizes[0] = count;
      sizes[1] = count % 2 == 0 ? 128 : 131;
      for (const BlockedContraction &own : {product(panels, packedShape), product(plain, plainShape)})
        EXPECT_EQ(whyNotBlocked(own, chooseBlocking(own)), "") << "rows " << count << ", block of K " << kBlock;
    }
}

TEST_F(BlockingTest, a_panel_that_the_stack_cannot_hold_is_refused) {
  EXPECT_EQ(whyNotBlocked(product(plain, plainShape), {16, 1, 96, 0}), "");
  sizes[2] = plainShape[0] = 4096;
  EXPECT_EQ(whyNotBlocked(product(plain, plainShape), {16, 1, 4096, 0}),
            "panelK: a panel takes 4195328 bytes of the stack; 262144 is the most");
}

TEST_F(BlockingTest, a_prefetch_of_one_block_of_rows_is_refused) {
  sizes[0] = 6;
  EXPECT_EQ(whyNotBlocked(product(panels, packedShape), {4, 1, 0, 64}),
            "prefetch: no panel can be prefetched: one block of rows has all rows of the tile");
}

TEST_F(BlockingTest, a_prefetch_with_k_outermost_is_refused) {
  kBlock = 32;
  EXPECT_EQ(whyNotBlocked(product(panels, packedShape), {4, 1, 0, 64, true}),
            "prefetch: no panel can be prefetched: K is the outermost loop, so the panel behind this one is not the next");
}

TEST_F(BlockingTest, copies_with_k_outermost_are_refused) {
  kBlock = 32;
  EXPECT_EQ(whyNotBlocked(product(plain, plainShape), {4, 1, 32, 0, true}),
            "kOutermost: panels are copied once for all rows of a tile, inside the loop along N");
}

TEST_F(BlockingTest, a_wider_block_of_other_vectors_is_refused) {
  sizes[1] = 130;
  EXPECT_EQ(whyNotBlocked(product(plain, plainShape), {2, 1, 0, 0, false, 0, true}),
            "widerLast: no block has another vector: only blocks of 4 vectors, as the micro kernel has, have a wider one");
}

TEST_F(BlockingTest, unrolling_a_step_of_several_k_is_refused) {
  kernel.depth = 2;
  EXPECT_EQ(whyNotBlocked(product(plain, plainShape), {4, 2, 0, 0}),
            "unroll: each step takes 2 elements of K, so it must be 1, not 2");
}
} // namespace

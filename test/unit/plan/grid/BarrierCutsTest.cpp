// The places where a group can be cut at a grid barrier, and when the planner cuts it.
#include "passes/plan/grid/BarrierCuts.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tilewright;
using Piece = llvm::SmallVector<unsigned>;

namespace {
/// A product and the elementwise ops after it, minus the sum of its rows, and a bias that is computed.
std::string source(int64_t rows, int64_t width) {
  return llvm::formatv(R"(
func.func @f(%x: tensor<{0}x{1}xf32>, %w: tensor<{1}x{1}xf32>, %v: tensor<{1}x{1}xf32>, %b: tensor<{1}xf32>)
    -> tensor<{0}x{1}xf32> {{
  %zero = arith.constant dense<0.0> : tensor<{0}x{1}xf32>
  %none = arith.constant dense<0.0> : tensor<{0}xf32>
  %e = tensor.empty() : tensor<{0}x{1}xf32>
  %one = tensor.empty() : tensor<{1}xf32>
  %p = linalg.matmul ins(%x, %w : tensor<{0}x{1}xf32>, tensor<{1}x{1}xf32>) outs(%zero : tensor<{0}x{1}xf32>)
      -> tensor<{0}x{1}xf32>
  %q = linalg.exp ins(%p : tensor<{0}x{1}xf32>) outs(%e : tensor<{0}x{1}xf32>) -> tensor<{0}x{1}xf32>
  %s = linalg.reduce {{ arith.addf } ins(%q : tensor<{0}x{1}xf32>) outs(%none : tensor<{0}xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<{0}xf32>) outs(%e : tensor<{0}x{1}xf32>) dimensions = [1]
  %d = linalg.sub ins(%q, %sb : tensor<{0}x{1}xf32>, tensor<{0}x{1}xf32>) outs(%e : tensor<{0}x{1}xf32>)
      -> tensor<{0}x{1}xf32>
  %tanh = linalg.tanh ins(%b : tensor<{1}xf32>) outs(%one : tensor<{1}xf32>) -> tensor<{1}xf32>
  %bb = linalg.broadcast ins(%tanh : tensor<{1}xf32>) outs(%e : tensor<{0}x{1}xf32>) dimensions = [0]
  %y = linalg.add ins(%d, %bb : tensor<{0}x{1}xf32>, tensor<{0}x{1}xf32>) outs(%e : tensor<{0}x{1}xf32>)
      -> tensor<{0}x{1}xf32>
  return %y : tensor<{0}x{1}xf32>
})",
                       rows, width)
      .str();
}

class BarrierCutsTest : public PlanFixture {
protected:
  /// Returns the reason of the edges at scope grid.
  std::string barriersOf(const std::string &source, bool gridSync = true) {
    TensorGraph graph = parse(source);
    PlanOptions options;
    options.gridSync = gridSync;
    Plan plan = *makePlan(graph, *lookupTarget("cuda:h200"), options);
    EXPECT_EQ(plan.verify(graph), "");
    std::string reasons;
    for (const EdgePlan &edge : plan.edges)
      if (edge.scope == tile::Scope::grid)
        reasons += edge.reason + "\n";
    return reasons;
  }
};

TEST_F(BarrierCutsTest, a_norm_is_cut_off_behind_what_is_elementwise_behind_the_product) {
  TensorGraph graph = parse(source(64, 64));
  std::vector<BarrierCut> cuts = barrierCuts(graph, allOf(graph));
  // No cut is in front of the product: the only other ops there compute what the norm reads at its end.
  ASSERT_EQ(cuts.size(), 1u);
  ASSERT_EQ(cuts[0].size(), 2u);
  EXPECT_EQ(cuts[0][0], Piece({0, 1}));
  EXPECT_EQ(cuts[0][1], Piece({2, 3, 4, 5, 6, 7}));
}

TEST_F(BarrierCutsTest, products_that_hand_nothing_to_each_other_are_pieces_of_their_own) {
  TensorGraph graph = parse(R"(
func.func @f(%x: tensor<64x32xf32>, %w: tensor<32x32xf32>, %v: tensor<32x64xf32>, %z: tensor<32x64xf32>)
    -> tensor<64x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %none = arith.constant dense<0.0> : tensor<32x64xf32>
  %out = arith.constant dense<0.0> : tensor<64x64xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x32xf32>) outs(%zero : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %q = linalg.matmul ins(%w, %v : tensor<32x32xf32>, tensor<32x64xf32>) outs(%none : tensor<32x64xf32>)
      -> tensor<32x64xf32>
  %r = linalg.add ins(%q, %z : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%p, %r : tensor<64x32xf32>, tensor<32x64xf32>) outs(%out : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
})");
  std::vector<BarrierCut> cuts = barrierCuts(graph, allOf(graph));
  // Three cuts: behind either operand (which is also in front of the last product), and in front of each operand, with
  // the other one before the barrier.
  EXPECT_TRUE(llvm::is_contained(cuts, BarrierCut({{0}, {1, 2}, {3}})));
  EXPECT_TRUE(llvm::is_contained(cuts, BarrierCut({{0}, {1, 2, 3}})));
  EXPECT_TRUE(llvm::is_contained(cuts, BarrierCut({{1, 2}, {0, 3}})));
  EXPECT_EQ(cuts.size(), 3u);
}

TEST_F(BarrierCutsTest, few_blocks_of_whole_rows_give_way_to_a_barrier) {
  std::string reasons = barriersOf(source(32, 512));
  EXPECT_NE(reasons.find("one kernel with a barrier of the grid"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("in one block for both: one kernel is predicted slower"), std::string::npos) << reasons;
  EXPECT_EQ(barriersOf(source(32, 512), /*gridSync=*/false), "");
}

TEST_F(BarrierCutsTest, blocks_that_fill_the_device_keep_their_rows) { EXPECT_EQ(barriersOf(source(16384, 64)), ""); }
} // namespace

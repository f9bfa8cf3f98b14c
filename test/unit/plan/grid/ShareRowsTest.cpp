// When blocks share the rows of a product, what the plan says otherwise, and which edited plans are refused.
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/space/SharedRows.h"
#include "test/unit/PlanFixture.h"
#include "test/unit/plan/space/NormalisedProduct.h"

using namespace mlir;
using namespace tilewright;

namespace {
enum : unsigned { product, sum, mean, difference, square, squares, quotient };

class ShareRowsTest : public PlanFixture {
protected:
  ShareRowsTest() { target = *lookupTarget("cuda:h200"); }

  Plan planOf(const TensorGraph &graph, PlanOptions options = {}) {
    Plan plan = *makePlan(graph, target, options);
    EXPECT_EQ(plan.verify(graph), "");
    return plan;
  }

  static int64_t blocksPerRowOf(const TensorGraph &graph, const Plan &plan) {
    int64_t most = 1;
    for (const KernelPlan &kernel : plan.kernels)
      for (const GroupPlan &part : kernel.groups)
        most = std::max(most, blocksPerRow(graph, part));
    return most;
  }

  static std::string reasonAt(const Plan &plan, unsigned producer) {
    auto edge = llvm::find_if(plan.edges, [&](const EdgePlan &edge) { return edge.producer == producer; });
    return edge->reason;
  }

  static constexpr ProductSizes kFew = {128, 768, 768}; ///< few rows, so there would be few blocks with whole ones
};

TEST_F(ShareRowsTest, blocks_share_rows_where_that_is_predicted_to_be_faster) {
  TensorGraph graph = parse(normSource("%q", kFew));
  Plan plan = planOf(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_GT(blocksPerRowOf(graph, plan), 1);
  EXPECT_NE(reasonAt(plan, sum).find("with whole rows behind a barrier"), std::string::npos) << reasonAt(plan, sum);
  EXPECT_EQ(whyNotCoResident(plan, graph, target, /*allowed=*/true), "");
}

TEST_F(ShareRowsTest, a_barrier_says_what_rows_that_blocks_share_would_take) {
  TensorGraph graph = parse(normSource("%d", {128, 3072, 768}));
  Plan plan = planOf(graph);
  EXPECT_EQ(blocksPerRowOf(graph, plan), 1);
  EXPECT_NE(reasonAt(plan, product).find("rows that blocks share instead: predicted to take"), std::string::npos)
      << reasonAt(plan, product);
}

TEST_F(ShareRowsTest, two_kernels_become_one_whose_blocks_share_rows) {
  TensorGraph graph = parse(normSource("%q", {512, 768, 768}, "f32"));
  PlanOptions apart;
  apart.gridSync = false;
  EXPECT_EQ(planOf(graph, apart).kernels.size(), 2u);
  Plan plan = planOf(graph);
  EXPECT_EQ(plan.kernels.size(), 1u);
  EXPECT_NE(reasonAt(plan, sum).find("with whole rows in a kernel of their own"), std::string::npos)
      << reasonAt(plan, sum);
}

TEST_F(ShareRowsTest, small_tiles_may_be_too_many_to_be_resident) {
  TensorGraph graph = parse(normSource("%q", {2048, 768, 768})); // 6144 tiles of 16 x 16
  EXPECT_GT(blocksPerRowOf(graph, planOf(graph)), 1);
}

TEST_F(ShareRowsTest, rows_stay_whole_with_strict_numerics_and_without_grid_barriers) {
  TensorGraph graph = parse(normSource("%q", kFew));
  PlanOptions strict, apart;
  strict.numerics = NumericsMode::strict;
  apart.gridSync = false;
  EXPECT_EQ(blocksPerRowOf(graph, planOf(graph, strict)), 1);
  EXPECT_EQ(blocksPerRowOf(graph, planOf(graph, apart)), 1);
}

/// Plans that share rows, changed by hand.
class EditedSharedRowsTest : public ShareRowsTest {
protected:
  void SetUp() override {
    graph = std::make_unique<TensorGraph>(parse(normSource("%q", kFew)));
    plan = planOf(*graph);
    ASSERT_EQ(plan.kernels.size(), 1u);
    ASSERT_EQ(plan.kernels[0].groups.size(), 1u);
  }

  GroupPlan &part() { return plan.kernels[0].groups[0]; }
  OpPlan &op(unsigned id) {
    return *llvm::find_if(part().ops, [&](const OpPlan &entry) { return entry.id == id; });
  }
  void expectIllegal(const std::string &why) {
    std::string found = plan.verify(*graph);
    EXPECT_NE(found.find(why), std::string::npos) << "found: " << found;
  }

  std::unique_ptr<TensorGraph> graph;
  Plan plan;
};

TEST_F(EditedSharedRowsTest, blocks_that_exchange_parts_have_one_tile_each) {
  part().workgroups /= 2;
  expectIllegal("only blocks of a GPU with one whole tile each exchange parts of rows");
}

TEST_F(EditedSharedRowsTest, strict_numerics_keep_the_order_of_a_row) {
  op(squares).form = tile::Form::asIs;
  EXPECT_EQ(plan.verify(*graph), "") << "two barriers";
  plan.numerics = NumericsMode::strict;
  expectIllegal("numerics are strict");
}

TEST_F(EditedSharedRowsTest, only_sums_of_squares_have_two_moments) {
  op(sum).form = tile::Form::twoMomentVariance;
  expectIllegal("its form is 'two-moment variance', but it does not add up squares of differences from a mean");
}

TEST_F(EditedSharedRowsTest, a_sum_that_is_a_result_is_complete_in_its_block) {
  graph = std::make_unique<TensorGraph>(parse(returningSum(normSource("%q", kFew))));
  expectIllegal("its result leaves the group, or it is a contraction");
}

TEST_F(EditedSharedRowsTest, all_blocks_that_wait_have_to_be_resident) {
  target.gpu.guaranteedSms = 8;
  EXPECT_NE(whyNotCoResident(plan, *graph, target, /*allowed=*/true).find("that wait for each other"),
            std::string::npos);
}

TEST_F(EditedSharedRowsTest, barriers_that_are_forbidden_or_missing_are_named) {
  EXPECT_NE(whyNotCoResident(plan, *graph, target, /*allowed=*/false)
                .find("shares rows, which takes a barrier of the grid: that is forbidden"),
            std::string::npos);
  target.gpu.guaranteedSms = 0;
  EXPECT_NE(whyNotCoResident(plan, *graph, target, /*allowed=*/true).find("cannot: it has no grid barrier"),
            std::string::npos);
}
} // namespace

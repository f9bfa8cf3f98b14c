// Tests that two phases of a reduction are predicted as the planner plans them.
#include "passes/plan/forms/DecideReductionSplit.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {
class SplitReductionTest : public PlanFixture {
protected:
  linalg::GenericOp reductionOf(const char *source) {
    module = parseSourceString<ModuleOp>(source, &context);
    linalg::GenericOp found;
    module->walk([&](linalg::GenericOp op) { found = op; });
    return found;
  }

  static constexpr const char *kFewColumns = R"(
func.func @few_columns(%a: tensor<1x16384xf32>, %b: tensor<16384x24xf32>) -> tensor<1x24xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x24xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x24xf32>) -> tensor<1x24xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<1x16384xf32>, tensor<16384x24xf32>) outs(%z : tensor<1x24xf32>) {
  ^bb0(%u: f32, %v: f32, %s: f32):
    %w = arith.mulf %u, %v : f32
    %n = arith.addf %s, %w : f32
    linalg.yield %n : f32
  } -> tensor<1x24xf32>
  return %p : tensor<1x24xf32>
})";
};

// A grid barrier takes less time than a launch, also between the phases of a contraction.
TEST_F(SplitReductionTest, phases_of_contractions_are_predicted_with_the_barrier_that_they_get) {
  linalg::GenericOp product = reductionOf(kFewColumns);
  Target h200 = *lookupTarget("cuda:h200");
  FormChoice launches = decideSplit(product, h200, /*gridSync=*/false);
  FormChoice barrier = decideSplit(product, h200, /*gridSync=*/true);
  ASSERT_TRUE(launches.taken);
  ASSERT_TRUE(barrier.taken);
  // With a barrier, blocks may share tiles in one phase.
  EXPECT_LE(barrier.otherwiseSeconds, launches.otherwiseSeconds);
  EXPECT_LT(barrier.seconds, launches.seconds);
}

// The decision uses the prediction that the plan of both phases contains.
TEST_F(SplitReductionTest, the_prediction_is_that_of_the_plan) {
  linalg::GenericOp product = reductionOf(kFewColumns);
  Target h200 = *lookupTarget("cuda:h200");
  FormChoice split = decideSplit(product, h200, /*gridSync=*/true);
  OpBuilder builder(product);
  SplitViews views;
  product->replaceAllUsesWith(buildTwoPhases(builder, product, splitOf(split), views).results);
  product.erase();
  TensorGraph graph = TensorGraph::build((*module->getOps<func::FuncOp>().begin()).getBody().front());
  OrDeclined<double> planned = plannedSeconds(graph, h200, PlanOptions());
  ASSERT_TRUE(planned);
  EXPECT_DOUBLE_EQ(*planned, split.seconds);
}

// The parameters of a choice may be edited, so each way in which they can be wrong is refused.
TEST_F(SplitReductionTest, parameters_that_do_not_fit_are_refused) {
  linalg::GenericOp product = reductionOf(kFewColumns);
  auto why = [&](std::vector<int64_t> dims, std::vector<int64_t> parts) {
    FormChoice choice;
    choice.parameters = {{"dims", dims}, {"parts", parts}};
    return whyNotSplit(product, choice);
  };
  EXPECT_EQ(why({2}, {8}), "");
  EXPECT_EQ(why({}, {}), "its parameters must be dims and as many parts");
  EXPECT_EQ(why({2}, {8, 2}), "its parameters must be dims and as many parts");
  EXPECT_EQ(why({2, 2}, {8, 8}), "its dims must ascend");
  EXPECT_EQ(why({1}, {8}), "dim 1 is not reduced");
  EXPECT_EQ(why({2}, {7}), "7 parts do not divide dim 2 of 16384 elements");
  EXPECT_EQ(why({2}, {16384}), "no part would have several elements to reduce");
}
} // namespace

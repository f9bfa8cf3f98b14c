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
  ReductionSplit launches = decideSplit(product, h200, /*gridSync=*/false);
  ReductionSplit barrier = decideSplit(product, h200, /*gridSync=*/true);
  ASSERT_FALSE(launches.dims.empty());
  ASSERT_FALSE(barrier.dims.empty());
  EXPECT_LE(barrier.oneSeconds, launches.oneSeconds); // with a barrier, blocks may share tiles in one phase
  EXPECT_LT(barrier.twoSeconds, launches.twoSeconds);
}

// The decision uses the prediction that the plan of both phases contains.
TEST_F(SplitReductionTest, the_prediction_is_that_of_the_plan) {
  linalg::GenericOp product = reductionOf(kFewColumns);
  Target h200 = *lookupTarget("cuda:h200");
  ReductionSplit split = decideSplit(product, h200, /*gridSync=*/true);
  OpBuilder builder(product);
  SplitViews views;
  product->replaceAllUsesWith(buildTwoPhases(builder, product, split, views).results);
  product.erase();
  TensorGraph graph = TensorGraph::build((*module->getOps<func::FuncOp>().begin()).getBody().front());
  OrDeclined<double> planned = plannedSeconds(graph, h200, PlanOptions());
  ASSERT_TRUE(planned);
  EXPECT_DOUBLE_EQ(*planned, split.twoSeconds);
}
} // namespace

// Numerics of plans: what the modes allow, and entries that the verifier refuses.
#include "test/unit/plan/ir/PlanTest.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Numerics on bf16: a rounding between two ops of the kernel, and a sum.
class NumericsPlanTest : public PlanTest {
protected:
  enum : unsigned { product, reduction };

  void planFor(NumericsMode mode) {
    graph = std::make_unique<TensorGraph>(parse(R"(
func.func @dot(%x: tensor<37x53xbf16>) -> tensor<37xbf16> {
  %zero = arith.constant dense<0.0> : tensor<37xbf16>
  %e = tensor.empty() : tensor<37x53xbf16>
  %p = linalg.exp ins(%x : tensor<37x53xbf16>) outs(%e : tensor<37x53xbf16>) -> tensor<37x53xbf16>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<37x53xbf16>) outs(%zero : tensor<37xbf16>) dimensions = [1]
  return %s : tensor<37xbf16>
})"));
    PlanOptions options;
    options.numerics = mode;
    plan = *makePlan(*graph, target, options);
    ASSERT_EQ(plan.kernels.size(), 1u);
    ASSERT_EQ(plan.verify(*graph), "");
  }

  void expectRoundTrip() {
    llvm::Expected<Plan> again = planFromJson(toJson(plan));
    ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(json(plan), json(*again));
    EXPECT_EQ(again->numerics, plan.numerics);
    EXPECT_EQ(again->verify(*graph), "");
  }
};

TEST_F(NumericsPlanTest, default_sums_in_f32_and_leaves_roundings_out) {
  planFor(NumericsMode::standard);
  EXPECT_TRUE(edge(reduction, 0).unrounded);
  EXPECT_EQ(op(reduction).numerics.accumulation, "f32");
  EXPECT_TRUE(op(reduction).numerics.reassociates);
  EXPECT_EQ(op(reduction).numerics.roundingsRemoved, 52);
  expectRoundTrip();
}
TEST_F(NumericsPlanTest, strict_sums_and_rounds_as_the_graph) {
  planFor(NumericsMode::strict);
  EXPECT_FALSE(edge(reduction, 0).unrounded);
  EXPECT_EQ(op(reduction).numerics.accumulation, "bf16");
  EXPECT_FALSE(op(reduction).numerics.reassociates);
  EXPECT_EQ(op(reduction).numerics.roundingsRemoved, 0);
  expectRoundTrip();
}
TEST_F(NumericsPlanTest, refuses_relaxed_entries_under_strict_numerics) {
  planFor(NumericsMode::standard);
  plan.numerics = NumericsMode::strict;
  expectIllegal("strict numerics hand over no unrounded values");
  edge(reduction, 0).unrounded = false;
  expectIllegal("strict numerics accumulate bf16 as the graph does, not in f32");
  op(reduction).numerics.accumulation = "bf16";
  expectIllegal("strict numerics add bf16 in the order of the graph");
}
TEST_F(NumericsPlanTest, refuses_numerics_that_are_not_the_ops) {
  planFor(NumericsMode::standard);
  op(reduction).numerics.roundingsRemoved = 51;
  expectIllegal("leaves out 52 roundings per element, not 51");
  op(reduction).numerics.accumulation = "f64";
  expectIllegal("cannot accumulate bf16 in f64");
  op(reduction).form = tile::Form::onlineSoftmax;
  expectIllegal("has the form 'as-is', not 'online softmax'");
  op(product).numerics.accumulation = "f32";
  expectIllegal("accumulates nothing");
}
TEST_F(PlanTest, refuses_unrounded_edges_of_wide_values) {
  edge(exp, 0).unrounded = true;
  expectIllegal("it is not a bf16 or f16 value");
}
} // namespace

// Tests of the greedy planner: it fuses and leaves the right ops, and its plans are legal. ExplorersTest compares it
// with the exhaustive search.
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class GreedyPlannerTest : public PlanFixture {
protected:
  Plan planFor(const TensorGraph &graph, const PlanOptions &options = {}) {
    Plan plan = *makePlan(graph, target, options);
    EXPECT_EQ(plan.verify(graph), "");
    for (const EdgePlan &edge : plan.edges)
      EXPECT_FALSE(edge.reason.empty());
    for (const LeftOp &op : plan.left)
      EXPECT_FALSE(op.reason.empty());
    return plan;
  }

  static std::string reasonFor(const Plan &plan, unsigned id) {
    for (const LeftOp &op : plan.left)
      if (op.id == id)
        return op.reason;
    return "taken";
  }
};

TEST_F(GreedyPlannerTest, softmax_is_one_kernel) {
  TensorGraph graph = parse(softmaxSource);
  Plan plan = planFor(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_TRUE(plan.left.empty());
}

TEST_F(GreedyPlannerTest, long_chains_are_cut) {
  std::string source = "func.func @chain(%x0: tensor<37xf32>) -> tensor<37xf32> {\n"
                       "  %e = tensor.empty() : tensor<37xf32>\n";
  for (int i = 0; i < 200; ++i)
    source += llvm::formatv("  %x{1} = linalg.exp ins(%x{0} : tensor<37xf32>) outs(%e : tensor<37xf32>) -> "
                            "tensor<37xf32>\n",
                            i, i + 1);
  TensorGraph graph = parse(source + "  return %x200 : tensor<37xf32>\n}");
  Plan plan = planFor(graph);
  EXPECT_EQ(plan.kernels.size(), 2u);
  EXPECT_TRUE(plan.left.empty());
  EXPECT_TRUE(llvm::any_of(plan.edges, [](const EdgePlan &edge) {
    return edge.scope == tile::Scope::launch && StringRef(edge.reason).contains("more than 2048 take long to compile");
  }));
}

TEST_F(GreedyPlannerTest, is_deterministic) {
  TensorGraph graph = parse(softmaxSource);
  EXPECT_EQ(llvm::formatv("{0}", toJson(planFor(graph))).str(), llvm::formatv("{0}", toJson(planFor(graph))).str());
}

// Two chains that share no tensor become two groups of one kernel, or two kernels without packing.
const char *independent = R"(
func.func @independent(%x: tensor<37xf32>, %y: tensor<53xf32>) -> (tensor<37xf32>, tensor<53xf32>) {
  %e = tensor.empty() : tensor<37xf32>
  %f = tensor.empty() : tensor<53xf32>
  %a = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %b = linalg.exp ins(%y : tensor<53xf32>) outs(%f : tensor<53xf32>) -> tensor<53xf32>
  return %a, %b : tensor<37xf32>, tensor<53xf32>
})";

TEST_F(GreedyPlannerTest, small_independent_parts_are_packed) {
  TensorGraph graph = parse(independent);
  Plan plan = planFor(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].groups.size(), 2u);
  PlanOptions apart;
  apart.pack = false;
  EXPECT_EQ(planFor(graph, apart).kernels.size(), 2u);
}

TEST_F(GreedyPlannerTest, bindings_bound_what_is_packed) {
  TensorGraph graph = parse(independent);
  target.maxBindings = 3;
  EXPECT_EQ(planFor(graph).kernels.size(), 2u);
}

// An unknown op between producer and consumer keeps them in two kernels.
TEST_F(GreedyPlannerTest, nothing_is_merged_across_an_unknown_op) {
  TensorGraph graph = parse(R"(
func.func @chain(%x: tensor<640x64xf32>) -> tensor<640x64xf32> {
  %e = tensor.empty() : tensor<640x64xf32>
  %a = linalg.exp ins(%x : tensor<640x64xf32>) outs(%e : tensor<640x64xf32>) -> tensor<640x64xf32>
  %o = "some.op"(%a) : (tensor<640x64xf32>) -> tensor<640x64xf32>
  %b = linalg.add ins(%a, %o : tensor<640x64xf32>, tensor<640x64xf32>)
                  outs(%e : tensor<640x64xf32>) -> tensor<640x64xf32>
  return %b : tensor<640x64xf32>
})");
  Plan plan = planFor(graph);
  EXPECT_EQ(plan.kernels.size(), 2u);
  ASSERT_EQ(plan.edges.size(), 1u);
  EXPECT_EQ(plan.edges[0].scope, tile::Scope::launch);
  EXPECT_EQ(plan.edges[0].reason, "another op depends on the producer's kernel and the consumer's kernel on it");
  EXPECT_FALSE(plan.edges[0].wouldChange.empty());
}

TEST_F(GreedyPlannerTest, leaves_with_reasons) {
  TensorGraph graph = parse(R"(
func.func @left(%a: tensor<96x160xf16>, %b: tensor<160x224xf16>, %u: tensor<37xf64>) -> (tensor<96x224xf16>, tensor<37xf64>) {
  %w = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %z = arith.constant dense<0.0> : tensor<96x224xf16>
  %m = linalg.matmul ins(%a, %b : tensor<96x160xf16>, tensor<160x224xf16>) outs(%z : tensor<96x224xf16>) -> tensor<96x224xf16>
  %e = tensor.empty() : tensor<96x224xf16>
  %r = linalg.exp ins(%m : tensor<96x224xf16>) outs(%e : tensor<96x224xf16>) -> tensor<96x224xf16>
  %f = tensor.empty() : tensor<37xf64>
  %d = linalg.exp ins(%u : tensor<37xf64>) outs(%f : tensor<37xf64>) -> tensor<37xf64>
  %g = tensor.empty() : tensor<3xf32>
  %c = linalg.exp ins(%w : tensor<3xf32>) outs(%g : tensor<3xf32>) -> tensor<3xf32>
  %unknown = "some.op"(%c) : (tensor<3xf32>) -> tensor<3xf32>
  %unused = linalg.exp ins(%unknown : tensor<3xf32>) outs(%g : tensor<3xf32>) -> tensor<3xf32>
  return %r, %d : tensor<96x224xf16>, tensor<37xf64>
})");
  Plan plan = planFor(graph);
  EXPECT_TRUE(plan.kernels.empty());
  EXPECT_EQ(reasonFor(plan, 0), "a contraction without a micro kernel: it accumulates in a type of less than 32 bits");
  EXPECT_EQ(reasonFor(plan, 1), "IREE folds it into its linalg.matmul");
  EXPECT_EQ(reasonFor(plan, 2), "math.exp in f64 has no code generation");
  EXPECT_EQ(reasonFor(plan, 3), "depends on weights and constants alone: IREE computes it once at load");
  EXPECT_EQ(reasonFor(plan, 4), "nothing reads it");
}

// A mask that is computed from indices only is a constant. Otherwise it would be computed in each call, because its
// inputs, which read no tensor, would be computed by a Tilewright kernel.
TEST_F(GreedyPlannerTest, what_is_made_of_nothing_for_constants_is_a_constant) {
  TensorGraph graph = parse(R"(
#id = affine_map<(i) -> (i)>
func.func @offsets(%x: tensor<37xi64>) -> (tensor<37xi64>, tensor<53xi64>) {
  %e = tensor.empty() : tensor<37xi64>
  %f = tensor.empty() : tensor<53xi64>
  %a = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<37xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i64
    linalg.yield %c : i64
  } -> tensor<37xi64>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<37xi64>)
      outs(%e : tensor<37xi64>) {
  ^bb0(%v: i64, %o: i64):
    %s = arith.muli %v, %v : i64
    linalg.yield %s : i64
  } -> tensor<37xi64>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%b, %x : tensor<37xi64>, tensor<37xi64>) outs(%e : tensor<37xi64>) {
  ^bb0(%v: i64, %w: i64, %o: i64):
    %s = arith.addi %v, %w : i64
    linalg.yield %s : i64
  } -> tensor<37xi64>
  %returned = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%f : tensor<53xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i64
    linalg.yield %c : i64
  } -> tensor<53xi64>
  return %r, %returned : tensor<37xi64>, tensor<53xi64>
})");
  Plan plan = planFor(graph);
  EXPECT_EQ(reasonFor(plan, 0), "depends on weights and constants alone: IREE computes it once at load");
  EXPECT_EQ(reasonFor(plan, 1), "depends on weights and constants alone: IREE computes it once at load");
  ASSERT_EQ(plan.left.size(), 2u);
}

TEST_F(GreedyPlannerTest, single_dispatches_are_an_option) {
  TensorGraph graph = parse(independent);
  PlanOptions options;
  options.takeSingles = false;
  Plan plan = planFor(graph, options);
  EXPECT_TRUE(plan.kernels.empty());
  EXPECT_EQ(reasonFor(plan, 0), "IREE runs it as one dispatch by itself");
}

/// The text of a graph with an op of ours, a transpose that shares nothing with it, and a function of floats.
static std::string withMovement(StringRef element) {
  return llvm::formatv(R"(
func.func @moves(%x: tensor<37x53xf32>, %y: tensor<41x59xf32>, %z: tensor<7x{0}>)
    -> (tensor<37x53xf32>, tensor<59x41xf32>, tensor<7x{0}>) {{
  %e = tensor.empty() : tensor<37x53xf32>
  %a = linalg.exp ins(%x : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %f = tensor.empty() : tensor<59x41xf32>
  %t = linalg.transpose ins(%y : tensor<41x59xf32>) outs(%f : tensor<59x41xf32>) permutation = [1, 0]
  %g = tensor.empty() : tensor<7x{0}>
  %b = linalg.exp ins(%z : tensor<7x{0}>) outs(%g : tensor<7x{0}>) -> tensor<7x{0}>
  return %a, %t, %b : tensor<37x53xf32>, tensor<59x41xf32>, tensor<7x{0}>
})", element).str();
}

TEST_F(GreedyPlannerTest, movement_is_taken_where_iree_has_nothing_else_to_compute) {
  TensorGraph graph = parse(withMovement("f32"));
  EXPECT_EQ(reasonFor(planFor(graph), 1), "taken");
}

TEST_F(GreedyPlannerTest, movement_is_left_beside_ops_that_are_left) {
  TensorGraph graph = parse(withMovement("f64"));
  EXPECT_EQ(reasonFor(planFor(graph), 1), "movement that no Tilewright kernel computes with");
}

} // namespace

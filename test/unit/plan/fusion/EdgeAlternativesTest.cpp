// Tests of the alternatives for edges: their predictions, and the sizes that would change a choice.
#include "passes/plan/fusion/EdgeAlternatives.h"
#include "passes/plan/fusion/Explorers.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
class EdgeAlternativesTest : public PlanFixture {
protected:
  std::vector<EdgeAlternative> alternativesBy(llvm::StringRef policy, const TensorGraph &graph) {
    PlanOptions options;
    options.policy = policy.str();
    FusionProblem problem(graph, target, options, {}, memo);
    OrDeclined<PlanDraft> plan = explore(problem);
    EXPECT_TRUE(plan) << plan.why().reason;
    return alternativesOf(problem, *plan);
  }

  GroupMemo memo;
};

/// Returns a row sum that is subtracted from the rows, which have this many columns.
std::string center(unsigned columns) {
  return llvm::formatv(R"(
func.func @center(%x: tensor<512x{0}xf32>) -> tensor<512x{0}xf32> {{
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %e = tensor.empty() : tensor<512x{0}xf32>
  %p = linalg.exp ins(%x : tensor<512x{0}xf32>) outs(%e : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  %s = linalg.reduce {{ arith.addf } ins(%p : tensor<512x{0}xf32>) outs(%zero : tensor<512xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<512xf32>) outs(%e : tensor<512x{0}xf32>) dimensions = [1]
  %y = linalg.sub ins(%p, %sb : tensor<512x{0}xf32>, tensor<512x{0}xf32>) outs(%e : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  return %y : tensor<512x{0}xf32>
})",
                       columns);
}

TEST_F(EdgeAlternativesTest, every_edge_of_the_kernels_has_one) {
  TensorGraph graph = parse(softmaxSource);
  for (const char *policy : {"greedy", "unfused"})
    EXPECT_EQ(alternativesBy(policy, graph).size(), graph.edges().size()) << policy;
}

TEST_F(EdgeAlternativesTest, one_kernel_is_the_alternative_to_two) {
  TensorGraph graph = parse(softmaxSource);
  unsigned possible = 0;
  for (const EdgeAlternative &found : alternativesBy("unfused", graph)) {
    EXPECT_EQ(found.scope, tile::Scope::launch);
    if (!found.otherSeconds) { // other ops lie between the two
      EXPECT_NE(found.reason, "");
      continue;
    }
    ++possible;
    EXPECT_LT(*found.otherSeconds, found.seconds);
  }
  EXPECT_GE(possible, 3u);
}

// No cut of the best partition is better.
TEST_F(EdgeAlternativesTest, nothing_is_better_than_the_best_partition) {
  TensorGraph graph = parse(softmaxSource);
  for (const EdgeAlternative &found : alternativesBy("exhaustive", graph))
    if (found.otherSeconds && found.other == tile::Scope::launch)
      EXPECT_GE(*found.otherSeconds, found.seconds * (1 - 1e-9));
}

TEST_F(EdgeAlternativesTest, a_reduction_has_no_scope_within_a_thread) {
  TensorGraph graph = parse(center(48));
  for (const EdgeAlternative &found : alternativesBy("greedy", graph))
    if (graph.exprs()[graph.edges()[found.edge].producer].kind == ExprKind::reduction)
      EXPECT_EQ(found.other, tile::Scope::launch);
}

// The rows of a block must fit in its shared memory.
TEST_F(EdgeAlternativesTest, the_size_that_flips_a_choice_is_named_and_true) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph graph = parse(center(131072));
  int64_t size = 0;
  for (const EdgeAlternative &found : alternativesBy("welder", graph)) {
    llvm::StringRef flip = found.flip;
    if (found.scope == tile::Scope::launch && flip.consume_front("rows of at most about "))
      flip.consumeInteger(10, size);
  }
  ASSERT_GT(size, 0);
  auto launches = [&](int64_t columns) {
    TensorGraph other = parse(center(columns));
    std::vector<EdgeAlternative> edges = alternativesBy("welder", other);
    return llvm::any_of(edges, [](const EdgeAlternative &found) { return found.scope == tile::Scope::launch; });
  };
  EXPECT_FALSE(launches(size / 16 * 15));
  EXPECT_TRUE(launches(size / 16 * 18));
}

/// Returns scores of a query against this many keys, less the maximum of their row.
std::string scores(int64_t columns) {
  return llvm::formatv(R"(
func.func @scores(%q: tensor<512x64xf32>, %k: tensor<64x{0}xf32>) -> tensor<512x{0}xf32> {{
  %low = arith.constant dense<0xFF800000> : tensor<512xf32>
  %e = tensor.empty() : tensor<512x{0}xf32>
  %z = arith.constant dense<0.0> : tensor<512x{0}xf32>
  %x = linalg.matmul ins(%q, %k : tensor<512x64xf32>, tensor<64x{0}xf32>) outs(%z : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  %m = linalg.reduce {{ arith.maximumf } ins(%x : tensor<512x{0}xf32>) outs(%low : tensor<512xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<512xf32>) outs(%e : tensor<512x{0}xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %mb : tensor<512x{0}xf32>, tensor<512x{0}xf32>) outs(%e : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  return %d : tensor<512x{0}xf32>
})",
                       columns);
}

// Time flips this choice and not memory: at other sizes one kernel takes less time than two.
TEST_F(EdgeAlternativesTest, the_size_at_which_a_prediction_turns_is_named) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph graph = parse(scores(2048));
  llvm::StringRef flip;
  std::vector<EdgeAlternative> edges = alternativesBy("welder", graph);
  for (const EdgeAlternative &found : edges)
    if (graph.exprs()[graph.edges()[found.edge].producer].kind == ExprKind::contraction)
      flip = found.flip;
  int64_t size = 0;
  ASSERT_TRUE(flip.consume_front("dims of at least ") || flip.consume_front("dims of at most ")) << flip.str();
  ASSERT_FALSE(flip.consumeInteger(10, size));
  EXPECT_TRUE(flip.starts_with(" in place of 2048")) << flip.str();
  auto isOneKernelFaster = [&](int64_t columns) {
    TensorGraph other = parse(scores(columns));
    GroupProblem problem(other, target, NumericsMode::standard, memo);
    return planGroup(problem, allOf(other))->predicted.seconds <
           planGroup(problem, {0})->predicted.seconds + planGroup(problem, {1, 2, 3})->predicted.seconds;
  };
  EXPECT_NE(isOneKernelFaster(size), isOneKernelFaster(2048));
}
} // namespace

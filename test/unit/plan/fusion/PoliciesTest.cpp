// Tests of the policies of the papers: each passes worked examples of its paper.
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/PatternReduction.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
class PoliciesTest : public PlanFixture {
protected:
  Plan planBy(llvm::StringRef policy, const TensorGraph &graph) {
    PlanOptions options;
    options.policy = policy.str();
    FusionProblem problem(graph, target, options, {}, memo);
    OrDeclined<Plan> plan = solve(problem);
    EXPECT_TRUE(plan) << plan.why().reason;
    EXPECT_EQ(plan->verify(graph), "");
    return std::move(*plan);
  }

  /// Returns the number of the kernel that has the op, or -1.
  static int64_t kernelOf(const Plan &plan, unsigned id) {
    for (auto [number, kernel] : llvm::enumerate(plan.kernels))
      for (const GroupPlan &group : kernel.groups)
        for (const OpPlan &op : group.ops)
          if (op.id == id)
            return number;
    return -1;
  }

  GroupMemo memo;
};

//===----------------------------------------------------------------------===//
// FusionStitching
//===----------------------------------------------------------------------===//

/// Returns the patterns of a vertex: the vertex itself, and two larger ones.
std::vector<FusionPattern> patternsOf(unsigned vertex) {
  return {{ExprSet(9, {vertex}), 0},
          {ExprSet(9, {vertex, vertex - 3}), 1},
          {ExprSet(9, {vertex, vertex - 3, vertex - 4}), 2}};
}

// Figure 4: two consumers with three patterns each are combined in 15 ways with a vertex, and three of them are kept.
TEST(PatternReductionTest, two_consumers_are_combined_in_all_ways) {
  std::vector<FusionPattern> five = patternsOf(5), six = patternsOf(6);
  std::vector<ExprSet> made;
  std::vector<FusionPattern> best = reducePatterns(ExprSet(9, {8}), {five, six}, [&](const ExprSet &set) {
    made.push_back(set);
    return std::optional(FusionPattern{set, static_cast<double>(set.members().size())});
  });
  EXPECT_LE(made.size(), 15u);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best.front().set, ExprSet(9, {1, 2, 3, 5, 6, 8}));
}

// Figure 4: a third consumer is combined with the best patterns of the first two and not with all.
TEST(PatternReductionTest, more_consumers_are_divided) {
  std::vector<FusionPattern> five = patternsOf(5), six = patternsOf(6), seven = patternsOf(7);
  unsigned made = 0;
  std::vector<FusionPattern> best = reducePatterns(ExprSet(9, {8}), {five, six, seven}, [&](const ExprSet &set) {
    ++made;
    return std::optional(FusionPattern{set, static_cast<double>(set.members().size())});
  });
  EXPECT_LE(made, 15u + 3 + 15);
  EXPECT_EQ(best.front().set, ExprSet(9, {1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(PatternReductionTest, illegal_patterns_are_discarded) {
  std::vector<FusionPattern> five = patternsOf(5);
  std::vector<FusionPattern> best = reducePatterns(ExprSet(9, {8}), {five}, [&](const ExprSet &set) {
    return set.contains(2) ? std::nullopt : std::optional(FusionPattern{set, 1});
  });
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best.front().set, ExprSet(9, {5, 8}));
}

// Figure 6: A and C would wait for B, and B for them, if they were one kernel.
TEST_F(PoliciesTest, fusionstitching_makes_no_cycle) {
  TensorGraph graph = parse(R"(
func.func @cycle(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.exp ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = "some.op"(%a) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.add ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
})");
  for (const GroupingPolicy &policy : groupingPolicies()) {
    Plan plan = planBy(policy.name, graph);
    EXPECT_NE(kernelOf(plan, 0), kernelOf(plan, 1)) << policy.name.str();
  }
}

// Figure 5: patterns that are not adjacent share a kernel.
TEST_F(PoliciesTest, fusionstitching_packs_remote_patterns) {
  TensorGraph graph = parse(R"(
func.func @independent(%x: tensor<37xf32>, %y: tensor<53xf32>) -> (tensor<37xf32>, tensor<53xf32>) {
  %e = tensor.empty() : tensor<37xf32>
  %f = tensor.empty() : tensor<53xf32>
  %a = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %b = linalg.exp ins(%y : tensor<53xf32>) outs(%f : tensor<53xf32>) -> tensor<53xf32>
  return %a, %b : tensor<37xf32>, tensor<53xf32>
})");
  Plan plan = planBy("fusionstitching", graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].groups.size(), 2u);
}

// Figure 5 on a GPU: the greedy planner packs only what is small.
TEST_F(PoliciesTest, fusionstitching_packs_remote_patterns_that_greedy_does_not) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph graph = parse(R"(
func.func @remote(%x: tensor<512x256xf32>, %y: tensor<512x256xf32>) -> (tensor<512x256xf32>, tensor<512x256xf32>, tensor<512x256xf32>, tensor<512x256xf32>) {
  %e = tensor.empty() : tensor<512x256xf32>
  %r = arith.constant dense<0.0> : tensor<512xf32>
  %a = linalg.abs ins(%y : tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) -> tensor<512x256xf32>
  %s = linalg.reduce { arith.addf } ins(%y : tensor<512x256xf32>) outs(%r : tensor<512xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%s : tensor<512xf32>) outs(%e : tensor<512x256xf32>) dimensions = [1]
  %c = linalg.sub ins(%y, %b : tensor<512x256xf32>, tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) -> tensor<512x256xf32>
  %q = linalg.mul ins(%y, %y : tensor<512x256xf32>, tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) -> tensor<512x256xf32>
  %n = linalg.negf ins(%x : tensor<512x256xf32>) outs(%e : tensor<512x256xf32>) -> tensor<512x256xf32>
  return %a, %c, %q, %n : tensor<512x256xf32>, tensor<512x256xf32>, tensor<512x256xf32>, tensor<512x256xf32>
})");
  EXPECT_EQ(planBy("fusionstitching", graph).kernels.size(), 1u);
  EXPECT_EQ(planBy("greedy", graph).kernels.size(), 2u);
}

// Figure 1: a norm of rows is one kernel, where XLA's rules cut it behind each reduction.
TEST_F(PoliciesTest, fusionstitching_stitches_what_xla_cuts) {
  TensorGraph graph = parse(softmaxSource);
  EXPECT_EQ(planBy("fusionstitching", graph).kernels.size(), 1u);
  EXPECT_GE(planBy("xla", graph).kernels.size(), 3u);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Returns the scores of the rows of a query against all columns of a key, and the softmax of each row.
std::string scoresAndSoftmax(unsigned columns) {
  return llvm::formatv(R"(
func.func @scores(%q: tensor<512x64xf32>, %k: tensor<64x{0}xf32>) -> tensor<512x{0}xf32> {{
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %low = arith.constant dense<0xFF800000> : tensor<512xf32>
  %e = tensor.empty() : tensor<512x{0}xf32>
  %z = arith.constant dense<0.0> : tensor<512x{0}xf32>
  %x = linalg.matmul ins(%q, %k : tensor<512x64xf32>, tensor<64x{0}xf32>) outs(%z : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  %m = linalg.reduce {{ arith.maximumf } ins(%x : tensor<512x{0}xf32>) outs(%low : tensor<512xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<512xf32>) outs(%e : tensor<512x{0}xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %mb : tensor<512x{0}xf32>, tensor<512x{0}xf32>) outs(%e : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  %p = linalg.exp ins(%d : tensor<512x{0}xf32>) outs(%e : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  %s = linalg.reduce {{ arith.addf } ins(%p : tensor<512x{0}xf32>) outs(%zero : tensor<512xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<512xf32>) outs(%e : tensor<512x{0}xf32>) dimensions = [1]
  %y = linalg.div ins(%p, %sb : tensor<512x{0}xf32>, tensor<512x{0}xf32>) outs(%e : tensor<512x{0}xf32>) -> tensor<512x{0}xf32>
  return %y : tensor<512x{0}xf32>
})",
                       columns);
}

// Section 5.2: a product and its softmax are one kernel where the rows are short, and two where they are long.
TEST_F(PoliciesTest, welder_fuses_a_softmax_of_short_rows_only) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph scores = parse(scoresAndSoftmax(512));
  EXPECT_EQ(planBy("welder", scores).kernels.size(), 1u);
  scores = parse(scoresAndSoftmax(2048));
  EXPECT_EQ(planBy("welder", scores).kernels.size(), 2u);
  scores = parse(scoresAndSoftmax(4096)); // the greedy planner takes one kernel, within the error of its predictions
  EXPECT_EQ(planBy("welder", scores).kernels.size(), 2u);
  EXPECT_EQ(planBy("greedy", scores).kernels.size(), 1u);
}

/// A product whose rows are divided by their sums.
const char *productAndNorm = R"(
func.func @norm(%x: tensor<96x64xf32>, %w: tensor<64x64xf32>) -> tensor<96x64xf32> {
  %e = tensor.empty() : tensor<96x64xf32>
  %z = arith.constant dense<0.0> : tensor<96x64xf32>
  %r = arith.constant dense<0.0> : tensor<96xf32>
  %m = linalg.matmul ins(%x, %w : tensor<96x64xf32>, tensor<64x64xf32>) outs(%z : tensor<96x64xf32>) -> tensor<96x64xf32>
  %s = linalg.reduce { arith.addf } ins(%m : tensor<96x64xf32>) outs(%r : tensor<96xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%s : tensor<96xf32>) outs(%e : tensor<96x64xf32>) dimensions = [1]
  %d = linalg.div ins(%m, %b : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  return %d : tensor<96x64xf32>
})";

TEST_F(PoliciesTest, contractions_stay_apart_where_a_paper_leaves_them_to_a_library) {
  TensorGraph graph = parse(productAndNorm);
  for (const char *policy : {"xla", "fusionstitching"}) {
    Plan plan = planBy(policy, graph);
    EXPECT_NE(kernelOf(plan, 0), kernelOf(plan, 1)) << policy;
  }
}

TEST_F(PoliciesTest, welder_connects_contractions_as_well) {
  TensorGraph graph = parse(productAndNorm);
  Plan plan = planBy("welder", graph);
  EXPECT_EQ(kernelOf(plan, 0), kernelOf(plan, 3));
}

// A memory-intensive op takes the schedule of the product in front of it (Souffle 6.3).
TEST_F(PoliciesTest, souffle_gives_a_products_schedule_to_its_reader) {
  TensorGraph graph = parse(productAndNorm);
  Plan plan = planBy("souffle", graph);
  EXPECT_EQ(kernelOf(plan, 0), kernelOf(plan, 1));
}

// Figure 2: the last product has more blocks than a wave, so it is a subprogram of its own. The greedy planner, whose
// kernels may walk more tiles than blocks are resident, makes one kernel of both.
TEST_F(PoliciesTest, souffle_cuts_a_program_where_a_grid_exceeds_a_wave) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph graph = parse(R"(
func.func @workflow(%i0: tensor<64x64xf32>, %w0: tensor<64x64xf32>, %w2: tensor<64x64xf32>, %w4: tensor<64x131072xf32>) -> tensor<64x131072xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %zz = arith.constant dense<0.0> : tensor<64x131072xf32>
  %o0 = linalg.matmul ins(%i0, %w0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o1 = linalg.tanh ins(%o0 : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o2 = linalg.matmul ins(%o1, %w2 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o3 = linalg.add ins(%o0, %o2 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o4 = linalg.matmul ins(%o3, %w4 : tensor<64x64xf32>, tensor<64x131072xf32>) outs(%zz : tensor<64x131072xf32>) -> tensor<64x131072xf32>
  return %o4 : tensor<64x131072xf32>
})");
  Plan plan = planBy("souffle", graph);
  ASSERT_EQ(plan.kernels.size(), 2u);
  for (unsigned expr : {1, 2, 3})
    EXPECT_EQ(kernelOf(plan, expr), kernelOf(plan, 0)) << expr;
  EXPECT_NE(kernelOf(plan, 4), kernelOf(plan, 0));
  EXPECT_EQ(planBy("greedy", graph).kernels.size(), 1u);
}

// Section 6.5: a tile that is read again behind a barrier stays on the chip.
TEST_F(PoliciesTest, souffle_reads_what_two_phases_share_once) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph graph = parse(R"(
func.func @center(%x: tensor<512x4096xf32>) -> tensor<512x4096xf32> {
  %e = tensor.empty() : tensor<512x4096xf32>
  %r = arith.constant dense<0.0> : tensor<4096xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %c = linalg.reduce { arith.addf } ins(%x : tensor<512x4096xf32>) outs(%r : tensor<4096xf32>) dimensions = [0]
  %s = linalg.reduce { arith.addf } ins(%c : tensor<4096xf32>) outs(%z : tensor<f32>) dimensions = [0]
  %b = linalg.broadcast ins(%s : tensor<f32>) outs(%e : tensor<512x4096xf32>) dimensions = [0, 1]
  %y = linalg.sub ins(%x, %b : tensor<512x4096xf32>, tensor<512x4096xf32>) outs(%e : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  return %y : tensor<512x4096xf32>
})");
  Plan plan = planBy("souffle", graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].residentTiles.size(), 1u);
}

// Chains are of compute-intensive operators only.
TEST_F(PoliciesTest, chimera_fuses_nothing_without_a_chain) {
  TensorGraph graph = parse(softmaxSource);
  for (const KernelPlan &kernel : planBy("chimera", graph).kernels)
    EXPECT_EQ(kernel.groups[0].ops.size(), 1u) << kernel.name;
}

/// Returns two products in a row, of M x K, K x L and L x N.
std::string chainOf(unsigned m, unsigned k, unsigned l, unsigned n) {
  return llvm::formatv(R"(
func.func @chain(%a: tensor<{0}x{1}xf32>, %b: tensor<{1}x{2}xf32>, %d: tensor<{2}x{3}xf32>) -> tensor<{0}x{3}xf32> {{
  %zc = arith.constant dense<0.0> : tensor<{0}x{2}xf32>
  %ze = arith.constant dense<0.0> : tensor<{0}x{3}xf32>
  %c = linalg.matmul ins(%a, %b : tensor<{0}x{1}xf32>, tensor<{1}x{2}xf32>) outs(%zc : tensor<{0}x{2}xf32>) -> tensor<{0}x{2}xf32>
  %e = linalg.matmul ins(%c, %d : tensor<{0}x{2}xf32>, tensor<{2}x{3}xf32>) outs(%ze : tensor<{0}x{3}xf32>) -> tensor<{0}x{3}xf32>
  return %e : tensor<{0}x{3}xf32>
})",
                       m, k, l, n);
}

// Table IV, G10: the tensor between the two products stays on the chip.
TEST_F(PoliciesTest, chimera_fuses_a_chain) {
  TensorGraph graph = parse(chainOf(512, 64, 256, 64));
  EXPECT_EQ(planBy("chimera", graph).kernels.size(), 1u);
  EXPECT_EQ(planBy("fusionstitching", graph).kernels.size(), 2u);
}

// A chain whose rows are too long for the tensor between to stay on the chip takes longer as one kernel. The greedy
// planner fuses it all the same, because the difference is smaller than the error of its predictions.
TEST_F(PoliciesTest, chimera_fuses_no_chain_that_takes_longer) {
  TensorGraph graph = parse(chainOf(1024, 256, 4096, 256));
  EXPECT_EQ(planBy("chimera", graph).kernels.size(), 2u);
  EXPECT_EQ(planBy("unified", graph).kernels.size(), 2u);
  EXPECT_EQ(planBy("greedy", graph).kernels.size(), 1u);
}

// Section 3, figure 3: two tensors are joined, shuffled and split again. One kernel moves each element once.
TEST_F(PoliciesTest, powerfusion_moves_what_is_shuffled_once) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  TensorGraph graph = parse(R"(
func.func @shuffle(%x: tensor<28x28x58xf32>, %y: tensor<28x28x58xf32>) -> (tensor<28x28x58xf32>, tensor<28x28x58xf32>) {
  %e = tensor.empty() : tensor<28x28x58xf32>
  %z = arith.constant dense<0.0> : tensor<28x28x58xf32>
  %a = linalg.max ins(%x, %z : tensor<28x28x58xf32>, tensor<28x28x58xf32>) outs(%e : tensor<28x28x58xf32>) -> tensor<28x28x58xf32>
  %b = linalg.max ins(%y, %z : tensor<28x28x58xf32>, tensor<28x28x58xf32>) outs(%e : tensor<28x28x58xf32>) -> tensor<28x28x58xf32>
  %m = tensor.concat dim(2) %a, %b : (tensor<28x28x58xf32>, tensor<28x28x58xf32>) -> tensor<28x28x116xf32>
  %r = tensor.expand_shape %m [[0], [1], [2, 3]] output_shape [28, 28, 2, 58] : tensor<28x28x116xf32> into tensor<28x28x2x58xf32>
  %te = tensor.empty() : tensor<28x28x58x2xf32>
  %t = linalg.transpose ins(%r : tensor<28x28x2x58xf32>) outs(%te : tensor<28x28x58x2xf32>) permutation = [0, 1, 3, 2]
  %c = tensor.collapse_shape %t [[0], [1], [2, 3]] : tensor<28x28x58x2xf32> into tensor<28x28x116xf32>
  %s0 = tensor.extract_slice %c[0, 0, 0] [28, 28, 58] [1, 1, 1] : tensor<28x28x116xf32> to tensor<28x28x58xf32>
  %s1 = tensor.extract_slice %c[0, 0, 58] [28, 28, 58] [1, 1, 1] : tensor<28x28x116xf32> to tensor<28x28x58xf32>
  return %s0, %s1 : tensor<28x28x58xf32>, tensor<28x28x58xf32>
})");
  Plan plan = planBy("powerfusion", graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].groups[0].ops.size(), graph.exprs().size());
  double bytes = 0;
  for (const CostTerm &term : plan.kernels[0].predicted)
    bytes += term.name == "bytes" ? term.value : 0;
  EXPECT_EQ(bytes, 4 * 28 * 28 * 58 * 4);
  EXPECT_EQ(planBy("unfused", graph).kernels.size(), 6u);
}

// Figure 12: attention of one token. On a CPU the greedy planner keeps everything in one kernel, which is predicted slower;
// this policy's plan is the best partition.
TEST_F(PoliciesTest, powerfusion_plans_attention_of_one_token_best) {
  TensorGraph graph = parse(R"(
func.func @decode(%q: tensor<12x1x64xf32>, %k: tensor<12x64x512xf32>, %v: tensor<12x512x64xf32>) -> tensor<12x1x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<12x1xf32>
  %low = arith.constant dense<0xFF800000> : tensor<12x1xf32>
  %e = tensor.empty() : tensor<12x1x512xf32>
  %z = arith.constant dense<0.0> : tensor<12x1x512xf32>
  %zo = arith.constant dense<0.0> : tensor<12x1x64xf32>
  %x = linalg.batch_matmul ins(%q, %k : tensor<12x1x64xf32>, tensor<12x64x512xf32>) outs(%z : tensor<12x1x512xf32>) -> tensor<12x1x512xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<12x1x512xf32>) outs(%low : tensor<12x1xf32>) dimensions = [2]
  %mb = linalg.broadcast ins(%m : tensor<12x1xf32>) outs(%e : tensor<12x1x512xf32>) dimensions = [2]
  %d = linalg.sub ins(%x, %mb : tensor<12x1x512xf32>, tensor<12x1x512xf32>) outs(%e : tensor<12x1x512xf32>) -> tensor<12x1x512xf32>
  %p = linalg.exp ins(%d : tensor<12x1x512xf32>) outs(%e : tensor<12x1x512xf32>) -> tensor<12x1x512xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<12x1x512xf32>) outs(%zero : tensor<12x1xf32>) dimensions = [2]
  %sb = linalg.broadcast ins(%s : tensor<12x1xf32>) outs(%e : tensor<12x1x512xf32>) dimensions = [2]
  %y = linalg.div ins(%p, %sb : tensor<12x1x512xf32>, tensor<12x1x512xf32>) outs(%e : tensor<12x1x512xf32>) -> tensor<12x1x512xf32>
  %o = linalg.batch_matmul ins(%y, %v : tensor<12x1x512xf32>, tensor<12x512x64xf32>) outs(%zo : tensor<12x1x64xf32>) -> tensor<12x1x64xf32>
  return %o : tensor<12x1x64xf32>
})");
  Plan plan = planBy("powerfusion", graph), best = planBy("exhaustive", graph), greedy = planBy("greedy", graph);
  EXPECT_EQ(*plannedSeconds(graph, plan), *plannedSeconds(graph, best));
  EXPECT_GT(*plannedSeconds(graph, greedy), *plannedSeconds(graph, best));
}

// Section 6, figure 8: a sigmoid and a sum.
TEST_F(PoliciesTest, powerfusion_merges_a_sigmoid_and_a_sum) {
  TensorGraph graph = parse(R"(
func.func @sigmoid(%x: tensor<96x64xf32>, %y: tensor<96x64xf32>) -> tensor<96x64xf32> {
  %e = tensor.empty() : tensor<96x64xf32>
  %n = linalg.negf ins(%x : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %p = linalg.exp ins(%n : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %s = linalg.reciprocal ins(%p : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %a = linalg.add ins(%s, %y : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  return %a : tensor<96x64xf32>
})");
  EXPECT_EQ(planBy("powerfusion", graph).kernels.size(), 1u);
}
} // namespace

// Tests of the explorers: each keeps what its policy promises, greedy plans are compared with an exhaustive search, and
// what is planned once equals what is planned anew.
#include "test/unit/RandomGraph.h"

#include "llvm/Support/FormatVariadic.h"
#include <thread>

using namespace mlir;
using namespace tilewright;

namespace {

class ExplorersTest : public PlanFixture {
protected:
  static PlanOptions by(llvm::StringRef policy) {
    PlanOptions options;
    options.policy = policy.str();
    options.pack = options.gridSync = false;
    return options;
  }

  Plan solved(const FusionProblem &problem) {
    OrDeclined<Plan> plan = solve(problem);
    EXPECT_TRUE(plan) << plan.why().reason;
    EXPECT_EQ(plan->verify(problem.graph), "");
    EXPECT_EQ(plan->policy, problem.options.policy);
    return std::move(*plan);
  }

  OrDeclined<double> secondsBy(llvm::StringRef policy, const TensorGraph &graph) {
    return plannedSeconds(graph, solved(FusionProblem(graph, target, by(policy))));
  }
};

TEST_F(ExplorersTest, unknown_policies_are_refused_with_the_list) {
  TensorGraph graph = parse(softmaxSource);
  OrDeclined<Plan> plan = solve(FusionProblem(graph, target, by("magic")));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.why().reason, "unknown policy 'magic'; known policies: greedy, unfused, xla, fusionstitching, "
                               "welder, powerfusion, souffle, chimera, unified, exhaustive");
}

TEST_F(ExplorersTest, a_problem_without_a_complete_machine_is_refused) {
  TensorGraph graph = parse(softmaxSource);
  target.levels.clear();
  OrDeclined<Plan> plan = solve(FusionProblem(graph, target));
  ASSERT_FALSE(plan);
  EXPECT_FALSE(plan.why().wouldChange.empty());
}

TEST_F(ExplorersTest, unfused_gives_every_op_a_kernel) {
  TensorGraph graph = parse(softmaxSource);
  Plan plan = solved(FusionProblem(graph, target, by("unfused")));
  EXPECT_EQ(plan.kernels.size(), graph.exprs().size());
  for (const EdgePlan &edge : plan.edges)
    EXPECT_EQ(edge.reason, "the policy gives every op a kernel of its own");
}

TEST_F(ExplorersTest, exhaustive_fuses_a_softmax) {
  TensorGraph graph = parse(softmaxSource);
  EXPECT_EQ(solved(FusionProblem(graph, target, by("exhaustive"))).kernels.size(), 1u);
}

TEST_F(ExplorersTest, exhaustive_keeps_apart_what_it_must) {
  TensorGraph graph = parse(softmaxSource);
  PlanRestrictions restrictions;
  restrictions.fuse = false;
  Plan plan = solved(FusionProblem(graph, target, by("exhaustive"), restrictions));
  EXPECT_EQ(plan.kernels.size(), graph.exprs().size());
}

/// Returns a function with `layers` times the same four ops, one after another.
std::string repeated(unsigned layers) {
  std::string source = "func.func @layers(%w: tensor<64x64xf32>, %x0: tensor<96x64xf32>) -> tensor<96x64xf32> {\n"
                       "  %e = tensor.empty() : tensor<96x64xf32>\n"
                       "  %z = arith.constant dense<0.0> : tensor<96x64xf32>\n"
                       "  %r = arith.constant dense<0.0> : tensor<96xf32>\n";
  for (unsigned layer = 0; layer < layers; ++layer)
    source += llvm::formatv(R"(
  %m{0} = linalg.matmul ins(%x{0}, %w : tensor<96x64xf32>, tensor<64x64xf32>) outs(%z : tensor<96x64xf32>) -> tensor<96x64xf32>
  %s{0} = linalg.reduce {{ arith.addf } ins(%m{0} : tensor<96x64xf32>) outs(%r : tensor<96xf32>) dimensions = [1]
  %b{0} = linalg.broadcast ins(%s{0} : tensor<96xf32>) outs(%e : tensor<96x64xf32>) dimensions = [1]
  %x{1} = linalg.div ins(%m{0}, %b{0} : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
)",
                            layer, layer + 1);
  return source + llvm::formatv("  return %x{0} : tensor<96x64xf32>\n", layers).str() + "}";
}

TEST_F(ExplorersTest, exhaustive_declines_many_ops) {
  TensorGraph graph = parse(repeated(3));
  OrDeclined<Plan> plan = solve(FusionProblem(graph, target, by("exhaustive")));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.why().reason, "the policy tries all partitions of at most 10 ops; these are 12");
}

// The answers that are found for one of several equal layers are those that would be found for each of them.
TEST_F(ExplorersTest, a_memo_changes_no_plan) {
  for (const char *name : {"x86-64-avx512", "cuda:h200", "cuda:a100"})
    for (const std::string &source : {repeated(5), std::string(softmaxSource)}) {
      target = llvm::cantFail(lookupTarget(name));
      TensorGraph graph = parse(source);
      GroupMemo remembers, forgets(/*remembers=*/false);
      Plan once = solved(FusionProblem(graph, target, {}, {}, remembers)),
           again = solved(FusionProblem(graph, target, {}, {}, remembers)),
           anew = solved(FusionProblem(graph, target, {}, {}, forgets));
      EXPECT_EQ(llvm::formatv("{0}", toJson(once)).str(), llvm::formatv("{0}", toJson(anew)).str()) << name;
      EXPECT_EQ(llvm::formatv("{0}", toJson(again)).str(), llvm::formatv("{0}", toJson(anew)).str()) << name;
    }
}

TEST_F(ExplorersTest, threads_may_share_a_memo) {
  TensorGraph graph = parse(repeated(4));
  GroupMemo memo;
  std::vector<std::string> plans(4);
  std::vector<std::thread> threads;
  for (std::string &plan : plans)
    threads.emplace_back([&] {
      plan = llvm::formatv("{0}", toJson(*solve(FusionProblem(graph, target, {}, {}, memo)))).str();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &plan : plans)
    EXPECT_EQ(plan, plans.front());
}

// An unknown op between two layers keeps their kernels apart, so from three layers on a further one brings nothing new.
TEST_F(ExplorersTest, equal_layers_are_planned_once) {
  auto apart = [](unsigned layers) {
    std::string source = repeated(layers);
    for (unsigned layer = 1; layer <= layers; ++layer) {
      std::string own = "%x" + std::to_string(layer) + " = ", made = "%y" + std::to_string(layer);
      size_t at = source.find(own), end = source.find("\n", at);
      source.replace(end, 1, "\n  " + own + "\"some.op\"(" + made + ") : (tensor<96x64xf32>) -> tensor<96x64xf32>\n");
      source.replace(at, own.size(), made + " = ");
    }
    return source;
  };
  for (const char *name : {"x86-64-avx512", "cuda:h200"})
    for (const char *policy : {"greedy", "fusionstitching", "unified"}) {
      target = llvm::cantFail(lookupTarget(name));
      PlanOptions options;
      options.policy = policy;
      options.planSeconds = 0.2;
      GroupMemo memo;
      TensorGraph some = parse(apart(3));
      solved(FusionProblem(some, target, options, {}, memo));
      size_t known = memo.size();
      EXPECT_GT(known, 0u);
      TensorGraph more = parse(apart(12));
      solved(FusionProblem(more, target, options, {}, memo));
      EXPECT_EQ(memo.size(), known) << name << " " << policy;
    }
}

// A group is planned again where something about it differs that planning reads.
TEST_F(ExplorersTest, other_groups_are_not_taken_for_equal) {
  TensorGraph graph = parse(R"(
func.func @f(%x: tensor<96x64xf32>, %y: tensor<96x64xf32>) -> (tensor<96x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>) {
  %e = tensor.empty() : tensor<96x64xf32>
  %a = linalg.exp ins(%x : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %b = linalg.add ins(%a, %a : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %c = linalg.exp ins(%b : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %d = linalg.add ins(%c, %y : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %g = linalg.exp ins(%d : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %h = linalg.exp ins(%y : tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %k = linalg.add ins(%h, %h : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  return %g, %c, %k : tensor<96x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>
})");
  GroupMemo memo;
  GroupProblem problem(graph, target, NumericsMode::standard, memo);
  auto signature = [&](llvm::ArrayRef<unsigned> exprs) {
    GroupFrame frame;
    return problem.signatureOf(exprs, frame);
  };
  EXPECT_EQ(signature({0}), signature({5})) << "equal ops of other tensors";
  EXPECT_NE(signature({0}), signature({1})) << "other ops";
  EXPECT_NE(signature({1}), signature({3})) << "one input or two";
  EXPECT_NE(signature({0, 1}), signature({2, 3})) << "a result that others read, too";
}

//===----------------------------------------------------------------------===//
// Comparison with exhaustive search
//===----------------------------------------------------------------------===//

// Within a factor of two, greedy prefers fewer launches of small kernels to shorter predictions, so it may take that
// much longer than the best partition.
TEST_F(ExplorersTest, greedy_is_near_the_best_partition_and_never_beats_it) {
  constexpr double kWorst = 2, kMean = 1.1;
  double ratios = 0;
  unsigned compared = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::string source = RandomGraph(seed).source();
    TensorGraph graph = parse(source);
    OrDeclined<double> greedy = secondsBy("greedy", graph), best = secondsBy("exhaustive", graph);
    ASSERT_TRUE(best) << source;
    if (!greedy)
      continue; // IREE alone was predicted faster
    EXPECT_GE(*greedy, *best * (1 - 1e-9)) << source;
    EXPECT_LE(*greedy, *best * kWorst) << source;
    ratios += *greedy / *best;
    ++compared;
  }
  EXPECT_GE(compared, 20u);
  EXPECT_LE(ratios / compared, kMean);
}
} // namespace

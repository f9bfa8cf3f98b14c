// Tests of the policy `unified`: it is never worse than another policy, and near the exhaustive optimum.
#include "passes/plan/fusion/GroupingPolicy.h"
#include "test/unit/RandomGraph.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;
using namespace tilewright;

namespace {
class UnifiedTest : public PlanFixture {
protected:
  static PlanOptions by(llvm::StringRef policy, double planSeconds = 2) {
    PlanOptions options;
    options.policy = policy.str();
    options.planSeconds = planSeconds;
    return options;
  }

  PlanScore scoreBy(const TensorGraph &graph, const PlanOptions &options) {
    FusionProblem problem(graph, target, options, {}, memo);
    OrDeclined<PlanDraft> plan = explore(problem);
    EXPECT_TRUE(plan) << plan.why().reason;
    EXPECT_EQ(writePlan(problem, *plan).verify(graph), "");
    return GroupSearch(problem).scored(std::move(*plan)).score;
  }

  GroupMemo memo; ///< all policies ask for the same groups
};

/// Returns the number of random graphs per target. The environment variable TILEWRIGHT_RANDOM_GRAPHS asks for more than
/// a test has time for.
unsigned numGraphs() {
  const char *asked = std::getenv("TILEWRIGHT_RANDOM_GRAPHS");
  return asked ? std::atoi(asked) : 8;
}

TEST_F(UnifiedTest, is_near_the_exhaustive_optimum) {
  constexpr double kWorst = 1.02, kLeastEqual = 0.95;
  for (const char *name : {"x86-64-avx512", "cuda:h200"}) {
    target = llvm::cantFail(lookupTarget(name));
    unsigned equal = 0, graphs = 0;
    double worst = 1;
    for (unsigned seed = 0; seed < numGraphs(); ++seed) {
      std::string source = RandomGraph(seed).source();
      TensorGraph graph = parse(source);
      PlanOptions unified = by("unified"), exhaustive = by("exhaustive");
      unified.pack = unified.gridSync = exhaustive.pack = exhaustive.gridSync = false;
      double best = scoreBy(graph, exhaustive).seconds, found = scoreBy(graph, unified).seconds;
      EXPECT_LE(found, best * kWorst) << name << " " << seed << source;
      EXPECT_GE(found, best * (1 - kTie)) << name << " " << seed << source;
      equal += found <= best * (1 + kTie);
      worst = std::max(worst, found / best);
      ++graphs;
    }
    std::printf("%s: unified equals the best partition on %u of %u graphs, and is at most %.2f%% above it\n", name, equal,
                graphs, 100 * (worst - 1));
    EXPECT_GE(equal, kLeastEqual * graphs) << name;
  }
}

TEST_F(UnifiedTest, is_never_worse_than_another_policy) {
  for (const char *name : {"x86-64-avx512", "cuda:h200"}) {
    target = llvm::cantFail(lookupTarget(name));
    for (unsigned seed = 0; seed < numGraphs(); ++seed) {
      TensorGraph graph = parse(RandomGraph(seed).source());
      PlanScore unified = scoreBy(graph, by("unified"));
      for (const Explorer &other : explorers())
        if (other.policy != "exhaustive")
          EXPECT_FALSE(scoreBy(graph, by(other.policy)).isBetterThan(unified))
              << name << " " << seed << " " << other.policy.str();
    }
  }
}

TEST_F(UnifiedTest, a_budget_of_zero_gives_the_best_policy) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    TensorGraph graph = parse(RandomGraph(seed).source());
    PlanScore unified = scoreBy(graph, by("unified", 0));
    unsigned equal = 0;
    for (const Explorer &other : explorers())
      if (other.policy != "exhaustive" && other.policy != "unified")
        equal += scoreBy(graph, by(other.policy)).seconds == unified.seconds;
    EXPECT_GE(equal, 1u) << seed;
  }
}
} // namespace

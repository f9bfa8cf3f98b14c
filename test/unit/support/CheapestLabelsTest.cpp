// Tests of minimum cuts against all labellings of small random graphs.
#include "passes/support/CheapestLabels.h"

#include "gtest/gtest.h"
#include <random>

using namespace tilewright;

namespace {
/// Returns the least sum of costs over all labellings.
double leastOf(const LabelCosts &costs) {
  double least = costs.of(std::vector<bool>(costs.nodes.size()));
  for (unsigned bits = 1; bits < 1u << costs.nodes.size(); ++bits) {
    std::vector<bool> labels;
    for (unsigned node = 0; node < costs.nodes.size(); ++node)
      labels.push_back(bits >> node & 1);
    least = std::min(least, costs.of(labels));
  }
  return least;
}

/// Returns costs of `nodes` nodes, with an edge from each to each later one. Single costs of edges may be negative.
LabelCosts randomCosts(unsigned nodes, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(-1, 1), part(0, 1);
  LabelCosts costs;
  for (unsigned node = 0; node < nodes; ++node) {
    costs.nodes.push_back({any(random), any(random)});
    for (unsigned other = 0; other < node; ++other) {
      double sum = part(random) / nodes, one = any(random) / nodes;
      costs.edges.push_back({other, node, one, sum - one});
    }
  }
  return costs;
}
} // namespace

TEST(CheapestLabelsTest, the_sum_is_the_least_of_all_labellings) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    LabelCosts costs = randomCosts(/*nodes=*/seed % 8 + 1, seed);
    EXPECT_NEAR(costs.of(cheapestLabels(costs)), leastOf(costs), 1e-9) << "seed " << seed;
  }
}

TEST(CheapestLabelsTest, neighbours_differ_where_the_border_costs_less_than_it_saves) {
  auto between = [](double border) { return LabelCosts{{{0, 2}, {1, 0}}, {{0, 1, border, border}}}; };
  EXPECT_EQ(cheapestLabels(between(5)), (std::vector<bool>{false, false}));
  EXPECT_EQ(cheapestLabels(between(0.5)), (std::vector<bool>{false, true}));
}

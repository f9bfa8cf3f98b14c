// Partitions of random graphs, compared with a search of the whole contracted graph.
#include "passes/plan/ir/Partition.h"
#include "test/unit/PlanFixture.h"

#include <random>

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns a function with `count` additions of two earlier values each, of which most are recent.
std::string additions(unsigned count, std::mt19937 &random) {
  std::string type = "tensor<5x7xf32>", text = "func.func @f(%v0: " + type + ") -> " + type + " {\n";
  text += "%e = tensor.empty() : " + type + "\n";
  for (unsigned own = 1; own <= count; ++own) {
    auto operand = [&] {
      unsigned back = random() % 4 == 0 ? random() % own : random() % std::min(own, 3u);
      return "%v" + std::to_string(own - 1 - back);
    };
    text += "%v" + std::to_string(own) + " = linalg.add ins(" + operand() + ", " + operand() + " : " + type + ", " +
            type + ") outs(%e : " + type + ") -> " + type + "\n";
  }
  return text + "return %v" + std::to_string(count) + " : " + type + "\n}";
}

/// Groups by expression, without anything that makes searches fast.
struct PlainPartition {
  const TensorGraph &graph;
  std::vector<unsigned> group;

  explicit PlainPartition(const TensorGraph &graph) : graph(graph) {
    for (unsigned expr = 0; expr < graph.exprs().size(); ++expr)
      group.push_back(expr);
  }

  /// Returns true if a path leads from one group to the other; if `indirectly`, through a third one.
  bool reaches(unsigned from, unsigned to, bool indirectly) const {
    std::set<unsigned> reached = {from};
    for (bool grows = true; grows;) {
      grows = false;
      for (const TensorEdge &edge : graph.edges()) {
        unsigned producer = group[edge.producer], consumer = group[edge.consumer];
        if (!reached.count(producer) || producer == to || (indirectly && producer == from && consumer == to))
          continue;
        grows |= reached.insert(consumer).second;
      }
    }
    return reached.count(to) > 0;
  }

  bool canMerge(unsigned a, unsigned b) const { return !reaches(a, b, true) && !reaches(b, a, true); }

  void merge(unsigned a, unsigned b) {
    for (unsigned &own : group)
      if (own == b)
        own = a;
  }
};

class PartitionTest : public PlanFixture {};
} // namespace

/// A merge is possible if no path between the groups passes through a third one, however groups lie in the program.
TEST_F(PartitionTest, merges_keep_random_graphs_acyclic) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    TensorGraph graph = parse(additions(24, random));
    ASSERT_EQ(graph.exprs().size(), 24u);
    Partition partition(graph, *graph.exprs().front().op->getBlock());
    PlainPartition plain(graph);
    for (int step = 0; step < 60; ++step) {
      unsigned a = random() % 24, b = random() % 24;
      if (plain.group[a] == plain.group[b])
        continue;
      ASSERT_EQ(partition.reaches(partition.groupOf(a), partition.groupOf(b)),
                plain.reaches(plain.group[a], plain.group[b], false));
      bool can = plain.canMerge(plain.group[a], plain.group[b]);
      ASSERT_EQ(partition.canMerge(partition.groupOf(a), partition.groupOf(b)), can);
      if (!can)
        continue;
      partition.merge(partition.groupOf(a), partition.groupOf(b));
      plain.merge(plain.group[a], plain.group[b]);
    }
    EXPECT_TRUE(partition.order());
  }
}

TEST_F(PartitionTest, ungrouped_forgets_merges) {
  std::mt19937 random(3);
  TensorGraph graph = parse(additions(8, random));
  Partition partition(graph, *graph.exprs().front().op->getBlock());
  unsigned merged = partition.merge(partition.groupOf(0), partition.groupOf(1));
  ASSERT_EQ(partition.groupOf(0), merged);
  Partition apart = partition.ungrouped();
  EXPECT_NE(apart.groupOf(0), apart.groupOf(1));
  EXPECT_EQ(apart.order()->size(), apart.numOps());
  EXPECT_EQ(partition.groupOf(1), merged);
}

/// Joined expressions may stand on both sides of others, until those join them as well.
TEST_F(PartitionTest, searches_are_right_in_and_behind_cycles) {
  std::mt19937 random(11);
  int cyclic = 0;
  for (int round = 0; round < 20; ++round) {
    TensorGraph graph = parse(additions(16, random));
    Partition partition(graph, *graph.exprs().front().op->getBlock());
    PlainPartition plain(graph);
    for (int step = 0; step < 10; ++step) {
      unsigned a = random() % 16, b = random() % 16;
      partition.join({a, b});
      plain.merge(plain.group[a], plain.group[b]);
      for (unsigned from = 0; from < 16; ++from)
        for (unsigned to = 0; to < 16; ++to) {
          if (plain.group[from] != plain.group[to]) {
            ASSERT_EQ(partition.reaches(partition.groupOf(from), partition.groupOf(to)),
                      plain.reaches(plain.group[from], plain.group[to], false));
          }
        }
      cyclic += !partition.order();
    }
  }
  EXPECT_GT(cyclic, 0);
}

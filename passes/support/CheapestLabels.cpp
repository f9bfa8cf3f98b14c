// Label 1 is the side of the source. A node pays for label 1 by its edge to the sink, and for label 0 by its edge from
// the source. The costs of an edge, p if x alone is 1 and q if y alone is, are p for x = 1, -p for y = 1, and p + q if
// y alone is: two costs of nodes and one directed edge. The largest flow is found along shortest paths (Edmonds, Karp).
#include "passes/support/CheapestLabels.h"

#include <algorithm>
#include <limits>

using namespace tilewright;

double LabelCosts::of(const std::vector<bool> &labels) const {
  double sum = 0;
  for (size_t node = 0; node < nodes.size(); ++node)
    sum += nodes[node][labels[node]];
  for (const Edge &edge : edges)
    if (labels[edge.from] != labels[edge.to])
      sum += labels[edge.from] ? edge.onlyFrom : edge.onlyTo;
  return sum;
}

namespace {
/// Residual capacities between all pairs of vertices. The last two vertices are the source and the sink.
class Residual {
public:
  explicit Residual(unsigned nodes) : size(nodes + 2), room(size, std::vector<double>(size)) {}

  unsigned source() const { return size - 2; }
  unsigned sink() const { return size - 1; }

  void widen(unsigned from, unsigned to, double capacity) {
    room[from][to] += capacity;
    most = std::max(most, room[from][to]);
  }

  /// Sends as much as fits along shortest paths until none is left. Returns which vertices the source then reaches.
  std::vector<bool> saturate() {
    while (true) {
      std::vector<unsigned> before = pathsFromSource();
      if (before[sink()] == size) {
        std::vector<bool> reached(size);
        std::transform(before.begin(), before.end(), reached.begin(), [&](unsigned each) { return each != size; });
        return reached;
      }
      double least = std::numeric_limits<double>::infinity();
      for (unsigned at = sink(); at != source(); at = before[at])
        least = std::min(least, room[before[at]][at]);
      for (unsigned at = sink(); at != source(); at = before[at]) {
        room[before[at]][at] -= least;
        room[at][before[at]] += least;
      }
    }
  }

private:
  /// Returns the vertex before each one on a shortest path from the source; `size` for those that none leads to.
  std::vector<unsigned> pathsFromSource() const {
    std::vector<unsigned> before(size, size), open{source()};
    before[source()] = source();
    for (size_t next = 0; next < open.size(); ++next)
      for (unsigned to = 0; to < size; ++to)
        if (before[to] == size && room[open[next]][to] > kRounding * most) {
          before[to] = open[next];
          open.push_back(to);
        }
    return before;
  }

  /// Part of the widest capacity that may be left by rounding.
  static constexpr double kRounding = 1e-12;

  unsigned size;
  std::vector<std::vector<double>> room;
  double most = 0;
};
} // namespace

std::vector<bool> tilewright::cheapestLabels(const LabelCosts &costs) {
  std::vector<std::array<double, 2>> nodes = costs.nodes;
  Residual graph(nodes.size());
  for (const LabelCosts::Edge &edge : costs.edges) {
    nodes[edge.from][1] += edge.onlyFrom;
    nodes[edge.to][1] -= edge.onlyFrom;
    graph.widen(edge.to, edge.from, std::max(0.0, edge.onlyFrom + edge.onlyTo));
  }
  for (unsigned node = 0; node < nodes.size(); ++node) {
    auto [first, second] = nodes[node];
    graph.widen(graph.source(), node, std::max(0.0, first - second));
    graph.widen(node, graph.sink(), std::max(0.0, second - first));
  }
  std::vector<bool> reached = graph.saturate();
  reached.resize(nodes.size());
  return reached;
}

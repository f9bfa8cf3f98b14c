// The policy `welder`: GraphConnecting of Welder (figure 7). In topological order, each edge is connected at the memory
// level with which the connected subgraph takes the least time: in the next kernel, or on the chip. Which of the levels
// on the chip is better for each edge, and the tiles with the least traffic for the subgraph (SubGraphTiling), are what
// planning a group finds. Contractions take part; a kernel reaches up to shared memory, without barriers of the grid.
#include "passes/plan/fusion/GroupingPolicy.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;

namespace {
class GraphConnector {
public:
  explicit GraphConnector(SearchSpace &space) : grouping(space) {}

  Grouping run() {
    SearchSpace &space = grouping.searched();
    for (unsigned node : space.exprs)
      for (unsigned reader : space.readersOf(node))
        connect(grouping.nameOf(node), grouping.nameOf(reader));
    return std::move(grouping);
  }

private:
  /// Connects two subgraphs if one kernel takes less time, or as much with less traffic. A reshape is always connected,
  /// since it costs nothing and its other side can only be reached through it.
  void connect(unsigned producer, unsigned reader) {
    if (producer == reader || !grouping.canMerge({producer, reader}))
      return;
    const CostedGroup &a = grouping.group(producer), &b = grouping.group(reader),
                      &both = grouping.merged({producer, reader});
    double apart = a.seconds + b.seconds;
    bool isEqual = std::abs(both.seconds - apart) <= kTie * apart;
    if (both.isPossible() &&
        (isEqual ? a.isView || b.isView || both.bytes < a.bytes + b.bytes : both.seconds < apart))
      grouping.merge({producer, reader});
  }

  Grouping grouping;
};
} // namespace

std::vector<Grouping> tilewright::groupByWelder(SearchSpace &space) { return {GraphConnector(space).run()}; }

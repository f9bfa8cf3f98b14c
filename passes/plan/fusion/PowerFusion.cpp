// The policy `powerfusion`: PowerFusion's merging of graphs per op (section 6). Each op has several generated variants
// (parallel structure, tiles, scopes), of which planning a group keeps the one that the performance model prefers. Pairs
// of graphs that are connected or independent merge in the order of their gain, and merging goes on to a fixed point; a
// pair that the model does not predict to gain is pruned. Operators bound by arithmetic stay apart, as calls of a library
// would; whether they are follows from their traffic and not from their kind.
#include "passes/plan/fusion/GroupingPolicy.h"
#include <queue>
#include <tuple>

using namespace mlir;
using namespace tilewright;

namespace {
class GraphMerger {
public:
  explicit GraphMerger(SearchSpace &space) : grouping(space), versions(space.dependences.size()) {}

  Grouping run() {
    for (unsigned name : grouping.inOrder())
      push(name);
    while (!pairs.empty()) {
      Pair best = pairs.top();
      pairs.pop();
      if (!isCurrent(best) || !grouping.canMerge({best.a, best.b}))
        continue;
      unsigned merged = grouping.merge({best.a, best.b});
      ++versions[best.a];
      ++versions[best.b];
      push(merged);
    }
    return std::move(grouping);
  }

private:
  /// A pair of groups, as they were when its gain was predicted.
  struct Pair {
    double gain;
    unsigned a, b, versionOfA, versionOfB;

    /// Orders by gain; the earlier pair comes first among equals.
    bool operator<(const Pair &other) const {
      return std::tie(gain, other.a, other.b) < std::tie(other.gain, a, b);
    }
  };

  bool isCurrent(const Pair &pair) const {
    return grouping.has(pair.a) && grouping.has(pair.b) && versions[pair.a] == pair.versionOfA &&
           versions[pair.b] == pair.versionOfB;
  }

  bool usesLibrary(unsigned name) const {
    return grouping.group(name).contracts && grouping.group(name).isComputeBound;
  }

  void push(unsigned name) {
    if (usesLibrary(name))
      return;
    for (unsigned other : grouping.neighboursOf(name)) {
      if (usesLibrary(other))
        continue;
      const CostedGroup &merged = grouping.merged({name, other});
      double gain = grouping.group(name).seconds + grouping.group(other).seconds - merged.seconds;
      bool isFree = grouping.group(name).isView || grouping.group(other).isView;
      if (merged.isPossible() && (gain > 0 || (isFree && gain == 0)))
        pairs.push({gain, name, other, versions[name], versions[other]});
    }
  }

  Grouping grouping;
  std::vector<unsigned> versions; ///< by group: number of merges
  std::priority_queue<Pair> pairs;
};
} // namespace

std::vector<Grouping> tilewright::groupByPowerFusion(SearchSpace &space) { return {GraphMerger(space).run()}; }

#include "passes/plan/search/Combine.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include <map>


using namespace mlir;
using namespace tilewright;

/// The groups of a region in two groupings that differ there.
using Difference = std::pair<SmallVector<unsigned>, SmallVector<unsigned>>;

/// Returns the regions in which two groupings differ, in program order.
static std::vector<Difference> differencesOf(const Grouping &a, const Grouping &b) {
  llvm::EquivalenceClasses<unsigned> joined;
  for (const Grouping *grouping : {&a, &b})
    for (unsigned name : grouping->inOrder())
      for (unsigned expr : grouping->group(name).exprs)
        joined.unionSets(grouping->group(name).exprs.front(), expr);
  std::map<unsigned, Difference> regions; // by the leader of their expressions
  for (unsigned name : a.inOrder())
    regions[joined.getLeaderValue(a.group(name).exprs.front())].first.push_back(name);
  for (unsigned name : b.inOrder())
    regions[joined.getLeaderValue(b.group(name).exprs.front())].second.push_back(name);
  std::vector<Difference> found;
  for (auto &[leader, region] : regions)
    if (region.first.size() > 1 || region.second.size() > 1)
      found.push_back(std::move(region));
  return found;
}

static double secondsOf(const Grouping &grouping, ArrayRef<unsigned> names, double perKernel) {
  double seconds = 0;
  for (unsigned name : names)
    seconds += grouping.group(name).isView ? 0 : grouping.group(name).seconds + perKernel;
  return seconds;
}

/// Returns the grouping with the groups that another one has in the region, or nothing if that makes a cycle.
static std::optional<Grouping> replace(Grouping grouping, const Grouping &other, const Difference &region) {
  SearchSpace &space = grouping.searched();
  for (unsigned name : region.first) {
    SmallVector<const CostedGroup *> pieces;
    for (unsigned expr : grouping.group(name).exprs)
      pieces.push_back(&space.alone(expr));
    grouping.split(name, pieces);
  }
  for (unsigned name : region.second) {
    SmallVector<unsigned> names;
    for (unsigned expr : other.group(name).exprs)
      names.push_back(grouping.nameOf(expr));
    if (names.size() > 1 && !grouping.tryMerge(names))
      return std::nullopt;
  }
  return grouping;
}

Grouping tilewright::combine(ArrayRef<Grouping> groupings, const SearchLimits &limits) {
  double perKernel = limits.secondsPerKernel;
  Grouping best = *llvm::min_element(groupings, [&](const Grouping &a, const Grouping &b) {
    return a.seconds(perKernel) < b.seconds(perKernel);
  });
  for (const Grouping &other : groupings)
    for (const Difference &region : differencesOf(best, other))
      if (secondsOf(other, region.second, perKernel) < secondsOf(best, region.first, perKernel))
        if (std::optional<Grouping> replaced = replace(best, other, region))
          best = std::move(*replaced);
  return best;
}

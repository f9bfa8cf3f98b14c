#include "passes/plan/space/TileGrowth.h"

#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <set>
#include <vector>

using namespace tilewright;

namespace {
/// A convex cost with its minimum at `best`, and the traffic that larger tiles save.
struct Bowl {
  std::vector<double> best;
  size_t largest = std::numeric_limits<size_t>::max(); ///< largest sum of size indices that still fits

  double secondsOf(TilePlace place) const {
    double seconds = 1;
    for (size_t dim = 0; dim < place.size(); ++dim)
      seconds += std::pow(static_cast<double>(place[dim]) - best[dim], 2);
    return seconds;
  }

  static size_t sum(TilePlace place) {
    size_t all = 0;
    for (size_t at : place)
      all += at;
    return all;
  }
};

struct Outcome {
  size_t visited;
  double quickest = std::numeric_limits<double>::infinity();
  std::vector<std::vector<size_t>> order;
};

Outcome search(const Bowl &bowl, std::vector<size_t> counts, size_t most) {
  Outcome outcome{};
  outcome.quickest = std::numeric_limits<double>::infinity();
  outcome.visited = growTiles(
      counts, most,
      [](TilePlace place) { return -2.0 * static_cast<double>(place[0]) - static_cast<double>(place[1]); },
      [&](TilePlace place) {
        outcome.order.push_back(place.vec());
        double seconds = bowl.secondsOf(place);
        if (Bowl::sum(place) > bowl.largest)
          return VisitedTile{};
        outcome.quickest = std::min(outcome.quickest, seconds);
        return VisitedTile{true, seconds};
      });
  return outcome;
}

TEST(TileGrowth, FindsTheBestOfABowlWithoutVisitingAll) {
  Outcome outcome = search({{7, 2, 5}}, {10, 10, 10}, 96);
  EXPECT_EQ(outcome.quickest, 1);
  EXPECT_LE(outcome.visited, 96u);
}

TEST(TileGrowth, VisitsEachTileOfASmallSpaceOnce) {
  Outcome outcome = search({{0, 0}}, {3, 4}, 96);
  EXPECT_EQ(outcome.visited, 12u);
  EXPECT_EQ(std::set<std::vector<size_t>>(outcome.order.begin(), outcome.order.end()).size(), outcome.order.size());
}

TEST(TileGrowth, GrowsAlongTheDimFirstThatCutsTrafficMost) {
  Outcome outcome = search({{9, 9}}, {10, 10}, 3);
  EXPECT_EQ(outcome.order, (std::vector<std::vector<size_t>>{{0, 0}, {1, 0}, {0, 1}}));
}

TEST(TileGrowth, LeavesAloneWhatIsLargerThanWhatDoesNotFit) {
  Outcome outcome = search({{9, 9}, 2}, {10, 10}, 96);
  for (const std::vector<size_t> &place : outcome.order)
    EXPECT_LE(Bowl::sum(place), 3u);
  EXPECT_EQ(outcome.quickest, 1 + 64 + 64);
}
} // namespace

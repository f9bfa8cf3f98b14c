// Threads take all units of a launch once, those of their own part first.
#include "runtime/SharedUnits.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace tilewright::runtime;

namespace {
using Units = std::vector<uint32_t>;

/// Takes units for one thread until none is left.
Units takeAll(SharedUnits &units, uint32_t launch, unsigned thread) {
  Units taken;
  while (std::optional<uint32_t> unit = units.take(launch, thread))
    taken.push_back(*unit);
  return taken;
}
} // namespace

TEST(SharedUnits, BeginsWithTheOwnPartAndThenTakesTheLastOfOthers) {
  SharedUnits units(/*launches=*/1, /*threads=*/2);
  units.share(0, 7);
  EXPECT_EQ(takeAll(units, 0, 1), Units({3, 4, 5, 6, 2, 1, 0}));
}

TEST(SharedUnits, KeepsLaunchesApart) {
  SharedUnits units(/*launches=*/3, /*threads=*/2);
  for (uint32_t launch : {0u, 1u, 2u})
    units.share(launch, launch);
  EXPECT_EQ(takeAll(units, 2, 0), Units({0, 1}));
  EXPECT_EQ(takeAll(units, 1, 0), Units({0}));
  EXPECT_EQ(takeAll(units, 0, 0), Units());
}

TEST(SharedUnits, GivesEachUnitToOneThread) {
  constexpr unsigned kThreads = 3;
  constexpr uint32_t kUnits = 20000;
  SharedUnits units(/*launches=*/1, kThreads);
  units.share(0, kUnits);
  Units taken[kThreads];
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] { taken[thread] = takeAll(units, 0, thread); });
  std::vector<int> times(kUnits);
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads[thread].join();
    for (uint32_t unit : taken[thread])
      ++times[unit];
  }
  EXPECT_EQ(times, std::vector<int>(kUnits, 1));
}

// Threads of a team share work, meet, and come late without holding anybody up.
#include "runtime/ThreadTeam.h"

#include <gtest/gtest.h>
#include <sched.h>

using namespace tilewright::runtime;

namespace {
/// Counts the calls of a piece of work by number.
std::vector<int> callsOf(ThreadTeam &team, unsigned rounds, bool meets) {
  std::vector<std::atomic<int>> calls(team.size());
  for (unsigned round = 0; round < rounds; ++round)
    team.run([&](unsigned number) {
      ++calls[number];
      if (meets)
        team.meet();
    });
  return {calls.begin(), calls.end()};
}

/// Keeps this thread, and those that it starts, on one core.
class OnOneCore {
public:
  OnOneCore() {
    sched_getaffinity(0, sizeof before, &before);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before, &before); }

private:
  cpu_set_t before;
};
} // namespace

TEST(ThreadTeam, CallsTheCallersPartOnceInEveryRound) {
  ThreadTeam team(3);
  EXPECT_EQ(callsOf(team, 1000, /*meets=*/false).front(), 1000);
}

TEST(ThreadTeam, CallsNoPartTwiceInARound) {
  ThreadTeam team(4);
  for (int calls : callsOf(team, 1000, /*meets=*/false))
    EXPECT_LE(calls, 1000);
}

TEST(ThreadTeam, CallsAllPartsOfARoundInWhichThreadsMeet) {
  ThreadTeam team(3);
  EXPECT_EQ(callsOf(team, 500, /*meets=*/true), std::vector<int>(3, 500));
}

TEST(ThreadTeam, JoinsNoRoundTwiceIfShortAndCommonOnesAlternate) {
  // A thread that joined a round twice would wait at its barrier for ever, or call its part once too often.
  ThreadTeam team(3);
  std::vector<std::atomic<int>> common(3);
  for (int round = 0; round < 2000; ++round)
    team.run([&](unsigned number) {
      if (round % 2 == 0)
        return;
      ++common[number];
      team.meet();
    });
  for (std::atomic<int> &calls : common)
    EXPECT_EQ(calls, 1000);
}

TEST(ThreadTeam, ReturnsWhenAllThatJoinedHaveReturned) {
  ThreadTeam team(2);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside{0};
    team.run([&](unsigned) {
      ++inside;
      std::this_thread::yield();
      --inside;
    });
    ASSERT_EQ(inside, 0);
  }
}

TEST(ThreadTeam, WaitsForNoThreadThatComesTooLate) {
  // On one core the caller ends a short round before the other thread can begin it.
  OnOneCore core;
  ThreadTeam team(2);
  EXPECT_LT(callsOf(team, 1000, /*meets=*/false).back(), 1000);
}

TEST(ThreadTeam, MeetsOnOneCore) {
  OnOneCore core;
  ThreadTeam team(2);
  EXPECT_EQ(callsOf(team, 20, /*meets=*/true), std::vector<int>(2, 20));
}

TEST(ThreadTeam, KeepsTheOtherThreadOffTheCallersCore) {
  cpu_set_t others;
  sched_getaffinity(0, sizeof others, &others);
  if (CPU_COUNT(&others) < 2)
    GTEST_SKIP() << "the process has one core";
  ThreadTeam team(2);
  OnOneCore caller;
  team.run([&](unsigned number) {
    if (number == 1)
      sched_getaffinity(0, sizeof others, &others);
    team.meet();
  });
  EXPECT_GT(CPU_COUNT(&others), 0);
  EXPECT_FALSE(CPU_ISSET(sched_getcpu(), &others));
}

TEST(ThreadTeam, KeepsCoresThatSomeoneElseChose) {
  cpu_set_t all, chosen, found;
  sched_getaffinity(0, sizeof all, &all);
  if (CPU_COUNT(&all) < 2)
    GTEST_SKIP() << "the process has one core";
  ThreadTeam team(2);
  CPU_ZERO(&chosen);
  CPU_SET(sched_getcpu(), &chosen);
  auto onOther = [&](const std::function<void()> &work) {
    team.run([&](unsigned number) {
      if (number == 1)
        work();
      team.meet();
    });
  };
  onOther([&] { sched_setaffinity(0, sizeof chosen, &chosen); });
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all)) { // the caller moves from core to core
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      sched_setaffinity(0, sizeof one, &one);
      onOther([&] { sched_getaffinity(0, sizeof found, &found); });
      EXPECT_TRUE(CPU_EQUAL(&found, &chosen));
    }
  sched_setaffinity(0, sizeof all, &all);
}

// Which tensors stay in a memory that is too small for all: those that were used last.
#include "passes/plan/grid/RecentUse.h"

#include <gtest/gtest.h>
#include <random>

using namespace tilewright;
using Counts = llvm::SmallVector<unsigned>;

namespace {
TEST(RecentUse, all_stay_where_all_have_room) {
  EXPECT_EQ(keepByRecentUse({{40, 0, {1, 3}}, {60, 1, {2}}}, 100), Counts({2, 1}));
}

TEST(RecentUse, what_was_not_used_for_the_longest_time_is_spilled) {
  // Phase 2 has room for two: the first tensor was written before the second, but is read in phase 1.
  EXPECT_EQ(keepByRecentUse({{50, 0, {1, 4}}, {50, 0, {4}}, {50, 2, {3}}}, 100), Counts({2, 0, 1}));
}

TEST(RecentUse, reads_before_the_spill_find_the_tensor) {
  EXPECT_EQ(keepByRecentUse({{60, 0, {1, 5}}, {60, 2, {3}}}, 100), Counts({1, 1}));
}

TEST(RecentUse, what_nobody_reads_any_more_makes_room) {
  EXPECT_EQ(keepByRecentUse({{100, 0, {1}}, {100, 2, {3}}, {100, 4, {5, 6}}}, 100), Counts({1, 1, 2}));
}

TEST(RecentUse, a_tensor_that_its_phase_still_reads_is_not_spilled) {
  EXPECT_EQ(keepByRecentUse({{60, 0, {1, 2}}, {60, 1, {2}}}, 100), Counts({2, 0}));
}

TEST(RecentUse, a_tensor_larger_than_the_memory_is_spilled_alone) {
  EXPECT_EQ(keepByRecentUse({{60, 0, {3}}, {101, 1, {2}}}, 100), Counts({1, 0}));
  EXPECT_EQ(keepByRecentUse({{60, 0, {3}}}, 0), Counts({0}));
}

TEST(RecentUse, no_phase_has_more_than_the_memory) {
  std::mt19937 random(11);
  auto pick = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  int64_t kept = 0, spilled = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<HandedOn> tensors;
    for (int64_t count = 1 + pick(8); count > 0; --count) {
      HandedOn &tensor = tensors.emplace_back(HandedOn{64 * (1 + pick(10)), static_cast<unsigned>(pick(6)), {}});
      for (unsigned phase = tensor.written + 1; phase < 10; ++phase)
        if (pick(3) == 0)
          tensor.read.push_back(phase);
    }
    int64_t capacity = 64 * pick(20);
    Counts counts = keepByRecentUse(tensors, capacity);
    for (unsigned phase = 0; phase < 10; ++phase) {
      int64_t bytes = 0;
      for (auto [tensor, count] : llvm::zip(tensors, counts))
        if (count > 0 && tensor.written <= phase && phase <= tensor.read[count - 1])
          bytes += tensor.bytes;
      EXPECT_LE(bytes, capacity);
    }
    for (auto [tensor, count] : llvm::zip(tensors, counts)) {
      kept += count;
      spilled += tensor.read.size() - count;
    }
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(spilled, 1000);
}
} // namespace

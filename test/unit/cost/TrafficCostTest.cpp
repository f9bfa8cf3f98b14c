// Tests that costs are monotone in the work and in the machine, and that they add up.
#include "passes/cost/TrafficCost.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {

GroupWork someWork() {
  GroupWork work;
  work.inputBytes = 1 << 20;
  work.outputBytes = 1 << 19;
  work.blockBytes = 1 << 21;
  work.arithmetic = 1e6;
  work.special = 1e5;
  work.workgroups = 16;
  return work;
}

double seconds(const GroupWork &work, const Target &target) { return predictKernel(work, target).seconds; }

TEST(TrafficCost, names_bytes_and_seconds_with_units) {
  Prediction prediction = predictKernel(someWork(), *lookupTarget("x86-64-avx512"));
  std::vector<CostTerm> terms = prediction.terms();
  ASSERT_GE(terms.size(), 2u);
  EXPECT_EQ(terms[0].name, "bytes");
  EXPECT_EQ(terms[0].unit, tile::Unit::bytes);
  EXPECT_EQ(terms[1].name, "seconds");
  EXPECT_EQ(terms[1].unit, tile::Unit::seconds);
  EXPECT_EQ(prediction.bytes, terms[0].value);
}

TEST(TrafficCost, more_work_never_takes_less_time) {
  for (const std::string &name : knownTargets()) {
    Target target = *lookupTarget(name);
    double before = seconds(someWork(), target);
    for (double GroupWork::*field : {&GroupWork::inputBytes, &GroupWork::outputBytes, &GroupWork::blockBytes,
                                     &GroupWork::arithmetic, &GroupWork::special, &GroupWork::barriers})
      for (double factor : {1.5, 10.0, 1000.0}) {
        GroupWork more = someWork();
        more.*field = more.*field * factor + 1;
        EXPECT_GE(seconds(more, target), before) << name;
      }
  }
}

TEST(TrafficCost, a_cpu_waits_for_a_part_of_its_traffic_and_a_gpu_for_none) {
  for (const char *name : {"x86-64-avx512", "cuda:h200"}) {
    Target target = *lookupTarget(name);
    Prediction both = predictKernel(someWork(), target);
    double global = both.traffic[0].seconds, rest = std::max(both.arithmeticSeconds, both.traffic[1].seconds);
    double share = target.traits.threadBlocks ? 0 : target.costs.cpu.exposedTraffic;
    double expected = target.launchSeconds + std::max(global, rest) + share * std::min(global, rest);
    EXPECT_DOUBLE_EQ(both.seconds, expected) << name;
  }
}

TEST(TrafficCost, more_cores_and_workgroups_never_take_more_time) {
  Target target = *lookupTarget("x86-64-avx512");
  double previous = seconds(someWork(), withCores(target, 1));
  for (int64_t cores : {2, 4, 8, 16}) {
    double now = seconds(someWork(), withCores(target, cores));
    EXPECT_LE(now, previous) << cores;
    previous = now;
  }
  GroupWork work = someWork();
  work.workgroups = 1;
  previous = seconds(work, target);
  for (work.workgroups = 2; work.workgroups < 20; ++work.workgroups) {
    EXPECT_LE(seconds(work, target), previous);
    previous = seconds(work, target);
  }
}

TEST(TrafficCost, one_launch_is_cheaper_than_two) {
  Target target = *lookupTarget("x86-64-avx2");
  GroupWork a = someWork(), b = someWork();
  EXPECT_LT(predictKernel({a, b}, target).seconds, seconds(a, target) + seconds(b, target));
}

// Two kernels that touch 48 MB between them do not find all of it in a cache of 32 MB; fused, they move less.
TEST(TrafficCost, fewer_bytes_never_take_longer_for_being_in_one_kernel) {
  Target target = *lookupTarget("x86-64-avx512");
  GroupWork half, fused;
  half.workgroups = fused.workgroups = target.cores;
  half.inputBytes = 24e6;
  fused.inputBytes = 40e6;
  double separate = 2 * predictKernel({half}, target, /*workingSetBytes=*/48e6).seconds;
  EXPECT_LT(seconds(fused, target), separate);
  EXPECT_GT(separate, 2 * seconds(half, target));
}

// A tensor that fits the last-level cache moves at the cache's rate, a larger one at that of memory.
TEST(TrafficCost, size_decides_the_level) {
  Target target = *lookupTarget("x86-64-avx512");
  GroupWork small, large;
  small.workgroups = large.workgroups = target.cores;
  small.inputBytes = 16e6;
  large.inputBytes = 160e6;
  double launch = target.launchSeconds;
  EXPECT_NEAR(seconds(small, target) - launch, 16e6 / target.levels[2].bandwidth, 1e-9);
  EXPECT_NEAR(seconds(large, target) - launch, 160e6 / target.levels[3].bandwidth, 1e-9);
}
// Four tiles of which the last is cut in half take two cores as long as four whole ones.
TEST(TrafficCost, a_tile_cut_at_the_border_leaves_its_core_waiting) {
  Target target = *lookupTarget("x86-64-avx512");
  GroupWork whole, cut;
  whole.arithmetic = 4e8;
  whole.tiles = whole.workgroups = 2 * target.cores;
  cut = whole;
  cut.filled = 0.875;
  cut.arithmetic = cut.filled * whole.arithmetic;
  EXPECT_DOUBLE_EQ(seconds(cut, target), seconds(whole, target));
}

} // namespace

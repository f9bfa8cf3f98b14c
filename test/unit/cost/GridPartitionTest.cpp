// Tests kernels with grid barriers: they are cut where not all blocks are certain to be resident, and where a barrier
// does not pay.
#include "passes/cost/GridPartition.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
Target known(const char *name) { return *lookupTarget(name); }

GridStage stage(std::string name, int64_t blocks, int64_t threads, llvm::SmallVector<unsigned> producers = {}) {
  GridStage made;
  made.name = std::move(name);
  made.work.blocks = blocks;
  made.work.threads = threads;
  made.work.registers = kUnknownRegisters;
  made.work.bytes = 1e6;
  made.work.nests.push_back({/*turns=*/2, /*globalLoads=*/1, /*sharedLoads=*/0, /*instructions=*/4});
  made.producers = std::move(producers);
  return made;
}

std::string print(const GridPartition &partition, llvm::ArrayRef<GridStage> stages) {
  std::string text;
  llvm::raw_string_ostream os(text);
  partition.print(stages, os);
  return text;
}

/// Partitions the stages and checks the result's own contract.
GridPartition partition(llvm::ArrayRef<GridStage> stages, const Target &target, GridRules rules = {}) {
  GridPartition made = partitionAtGridSync(stages, target, rules);
  EXPECT_EQ(made.verify(stages, target), "");
  return made;
}

TEST(GridPartition, two_small_phases_share_a_kernel) {
  std::vector<GridStage> stages = {stage("partial", 256, 256), stage("final", 1, 256, {0})};
  GridPartition made = partition(stages, known("cuda:h200"));
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_EQ(made.kernels[0].phases.size(), 2u);
  EXPECT_EQ(made.kernels[0].blocks, 256);
  EXPECT_NE(print(made, stages).find("partial on 256\n  barrier\n  final on 1"), std::string::npos);
}

TEST(GridPartition, forbidden_it_is_two_launches_and_takes_longer) {
  std::vector<GridStage> stages = {stage("partial", 256, 256), stage("final", 1, 256, {0})};
  Target target = known("cuda:h200");
  GridPartition made = partition(stages, target, {/*allowed=*/false, /*byCost=*/true});
  ASSERT_EQ(made.kernels.size(), 2u);
  ASSERT_EQ(made.cuts.size(), 1u);
  EXPECT_EQ(made.cuts[0].reason, "grid scope is forbidden");
  EXPECT_GT(made.seconds(), partition(stages, target).seconds());
}

TEST(GridPartition, stages_that_walk_get_no_more_blocks_than_are_resident) {
  std::vector<GridStage> stages = {stage("wide", 100000, 256), stage("next", 100000, 256, {0})};
  Target target = known("cuda:h200");
  GridPartition made = partition(stages, target, {true, /*byCost=*/false});
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_EQ(made.kernels[0].residentBlocks, 4); // blocks of 256 threads with 64 registers
  EXPECT_EQ(made.kernels[0].blocks, 4 * 132);
}

TEST(GridPartition, a_grid_that_cannot_be_smaller_is_cut_with_its_numbers) {
  std::vector<GridStage> stages = {stage("product", 600, 256), stage("sum", 4, 256, {0})};
  stages[0].walks = false;
  GridPartition made = partition(stages, known("cuda:h200"), {true, /*byCost=*/false});
  ASSERT_EQ(made.kernels.size(), 2u);
  EXPECT_EQ(made.cuts[0].stage, 1u);
  EXPECT_EQ(made.cuts[0].reason,
            "the 600 blocks of product cannot all be resident: the target guarantees 132 SMs with 4 blocks each of 256 "
            "threads, 64 registers a thread and 0 bytes of shared memory");
  stages[0].work.blocks = 528;
  EXPECT_EQ(partition(stages, known("cuda:h200"), {true, false}).kernels.size(), 1u);
}

TEST(GridPartition, shared_memory_and_registers_of_one_stage_bound_the_others) {
  std::vector<GridStage> stages = {stage("product", 200, 256), stage("sum", 4, 256, {0})};
  for (GridStage &own : stages)
    own.walks = false;
  Target target = known("cuda:h200");
  GridRules rules = {true, /*byCost=*/false};
  EXPECT_EQ(partition(stages, target, rules).kernels.size(), 1u);
  stages[1].work.sharedBytes = 150 * 1024;
  EXPECT_EQ(partition(stages, target, rules).kernels.size(), 2u);
  stages[1].work.sharedBytes = 0;
  stages[1].work.registers = 255;
  EXPECT_EQ(partition(stages, target, rules).kernels.size(), 2u);
}

TEST(GridPartition, the_smallest_device_of_the_target_counts) {
  std::vector<GridStage> stages = {stage("product", 4 * 132, 256), stage("sum", 4, 256, {0})};
  stages[0].walks = false;
  GridRules rules = {true, /*byCost=*/false};
  EXPECT_EQ(partition(stages, known("cuda:h200"), rules).kernels.size(), 1u);
  EXPECT_EQ(partition(stages, known("sm_90"), rules).kernels.size(), 2u); // the smallest device has 78 SMs
}

TEST(GridPartition, a_barrier_that_costs_more_than_a_launch_does_not_pay) {
  std::vector<GridStage> stages = {stage("partial", 256, 256), stage("final", 1, 256, {0})};
  Target target = known("cuda:h200");
  target.gpu.gridBarrierSeconds = 2 * target.launchSeconds;
  GridPartition made = partition(stages, target);
  ASSERT_EQ(made.kernels.size(), 2u);
  EXPECT_EQ(made.cuts[0].reason.rfind("a barrier does not pay: one kernel is predicted to take", 0), 0u);
}

TEST(GridPartition, goes_breadth_first_and_puts_stages_of_a_level_side_by_side) {
  std::vector<GridStage> stages = {stage("a", 8, 128), stage("d", 8, 128, {2, 3}), stage("b", 8, 128, {0}),
                                   stage("c", 8, 128, {0})};
  GridPartition made = partition(stages, known("cuda:a100"));
  ASSERT_EQ(made.kernels.size(), 1u);
  ASSERT_EQ(made.kernels[0].phases.size(), 3u);
  EXPECT_EQ(made.kernels[0].phases[1].size(), 2u);
  EXPECT_EQ(made.kernels[0].phases[2][0].stage, 1u);
  EXPECT_EQ(made.kernels[0].blocks, 16);
}

TEST(GridPartition, verify_finds_a_stage_before_its_producer) {
  std::vector<GridStage> stages = {stage("a", 8, 128), stage("b", 8, 128, {0})};
  Target target = known("cuda:a100");
  GridPartition made = partition(stages, target);
  std::swap(made.kernels[0].phases[0], made.kernels[0].phases[1]);
  EXPECT_EQ(made.verify(stages, target), "b does not come after a, which it reads");
  made = partition(stages, target);
  made.kernels[0].blocks = 1 << 20;
  EXPECT_NE(made.verify(stages, target).find("blocks wait for each other"), std::string::npos);
}

/// The tiles of a product do not divide evenly among its blocks, so sharing them would save an eighth of its time.
TEST(GridPartition, tiles_are_shared_if_that_is_faster_by_the_error) {
  GridStage product = stage("product", 133, 256);
  product.steps = 64;
  product.seconds = [](double, double) { return 40e-6; };
  product.sharedSeconds = [](double, double) { return 34e-6; };
  Target target = known("cuda:h200");
  target.gpu.gridBarrierSeconds = 1e-6;
  auto shares = [&](double error) {
    target.costs.confidence.barriers = error;
    return partition({product}, target).kernels.front().phases.front().front().sharesTiles;
  };
  EXPECT_TRUE(shares(0.1));
  EXPECT_FALSE(shares(0.2));
}
} // namespace

// The search for block orders of contraction chains (Chimera 4) is tested against the closed form and against exhaustive
// search.
#include "test/unit/plan/tiling/GemmChainOrders.h"
#include "gtest/gtest.h"
#include <cmath>
#include <numeric>

using namespace tilewright;

namespace {
// Rounding down stays within the paper's bound of the real-valued optimum, and the search finds no worse result.
TEST(BlockSearchTest, search_reaches_the_closed_form_of_the_gemm_chain) {
  constexpr double m = 2048, n = 2048, k = 2048, l = 2048, capacity = 8192;
  for (int64_t least : {1, 8, 16}) {
    GemmChainOptimum optimum = gemmChainOptimum(m, n, k, l, capacity, least);
    EXPECT_NEAR(optimum.m, -least + std::sqrt(least * least + capacity), 1e-9);
    EXPECT_NEAR(optimum.m, optimum.l, 1e-9);
    EXPECT_NEAR(optimum.moved, 2 * m * l * (k + n) / optimum.m, 1e-3);
    OperatorChain chain = gemmChain(m, n, k, l, 1);
    auto tm = static_cast<int64_t>(optimum.m), tl = static_cast<int64_t>(optimum.l);
    Movement rounded = movementOf(chain, mlkn(tm, least, least, tl));
    EXPECT_LE(rounded.memoryBytes, capacity);
    EXPECT_GE(rounded.moved, optimum.moved);
    double bound = 1 + std::max(optimum.m / m + 1.0 / tm, optimum.l / l + 1.0 / tl);
    EXPECT_LE(rounded.moved, bound * optimum.moved);
    SearchSpace space{capacity, {1, least, least, 1}, 1, 1, 0};
    std::optional<OrderChoice> found = searchOrder(chain, space);
    ASSERT_TRUE(found);
    EXPECT_LE(found->movement.memoryBytes, capacity);
    EXPECT_LE(found->movement.moved, rounded.moved);
    EXPECT_GE(found->movement.moved, optimum.moved * 0.999);
  }
}

// Section 4.2: of all orders of the example, mlkn moves least, with tiles of m and l near those of the closed form.
TEST(BlockSearchTest, order_mlkn_is_the_best_of_the_gemm_chain) {
  double closed = gemmChainOptimum(2048, 2048, 2048, 2048, 8192, 16).m;
  std::optional<OrderChoice> found = searchOrder(gemmChain(2048, 2048, 2048, 2048, 1), {8192, {1, 16, 16, 1}, 1, 1, 0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->block.order, std::vector<unsigned>({M, L, K, N}));
  for (unsigned loop : {M, L})
    EXPECT_NEAR(found->block.tiles[loop], closed, 0.1 * closed);
}

TEST(BlockSearchTest, closed_form_with_a_result_that_crosses_twice_is_a_minimum) {
  constexpr double m = 512, n = 300, k = 700, l = 600, capacity = 4000, least = 9, crossings = 2;
  GemmChainOptimum optimum = gemmChainOptimum(m, n, k, l, capacity, least, crossings);
  EXPECT_NEAR((optimum.m + least) * (optimum.l + least), capacity + least * least, 1e-6);
  for (double factor : {0.97, 0.99, 1.01, 1.03}) {
    double tm = optimum.m * factor, tl = (capacity + least * least) / (tm + least) - least;
    EXPECT_GT(m * l * ((k + n) / tm + (k + crossings * n) / tl), optimum.moved);
  }
}

/// Returns the least seconds over all orders and tiles that fit.
double exhaustive(const OperatorChain &chain, const SearchSpace &space) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<unsigned> order(chain.loops.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    BlockOrder block{order, std::vector<int64_t>(order.size(), 1)};
    for (size_t dim = 0; dim < order.size();) {
      OrderChoice choice = weigh(chain, space, block);
      if (choice.movement.memoryBytes <= space.capacityBytes)
        best = std::min(best, choice.seconds);
      for (dim = 0; dim < order.size() && ++block.tiles[dim] > chain.loops[dim].extent; ++dim)
        block.tiles[dim] = 1;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(BlockSearchTest, search_finds_what_trying_everything_finds) {
  for (double capacity : {16, 40, 90, 200})
    for (int64_t cores : {1, 3}) {
      OperatorChain chain = gemmChain(12, 7, 9, 10, 1);
      SearchSpace space{capacity, {}, cores, 1, 0};
      std::optional<OrderChoice> found = searchOrder(chain, space);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->block.verify(chain), "");
      EXPECT_DOUBLE_EQ(found->seconds, exhaustive(chain, space)) << capacity << " " << cores;
    }
}

TEST(BlockSearchTest, more_memory_never_moves_more) {
  OperatorChain chain = gemmChain(128, 64, 64, 128);
  double before = std::numeric_limits<double>::infinity();
  for (double capacity = 2048; capacity < 1 << 20; capacity *= 2) {
    std::optional<OrderChoice> found = searchOrder(chain, {capacity, {6, 16, 1, 16}, 1, 1, 0});
    ASSERT_TRUE(found);
    EXPECT_LE(found->seconds, before * 1.001);
    before = found->seconds;
  }
  EXPECT_DOUBLE_EQ(before, 4.0 * (128 * 64 + 64 * 128 + 128 * 64 + 128 * 64)); // each tensor once
}

TEST(BlockSearchTest, nothing_is_found_where_the_least_tiles_do_not_fit) {
  EXPECT_FALSE(searchOrder(gemmChain(128, 64, 64, 128), {1024, {32, 32, 32, 32}, 1, 1, 0}));
}

// Eight blocks of rows on three cores: the last round leaves one core idle.
TEST(BlockSearchTest, idle_cores_are_charged) {
  OperatorChain chain = gemmChain(64, 8, 8, 64);
  OrderChoice choice = weigh(chain, {1e9, {}, 3, 1, 0}, mlkn(8, 8, 8, 16));
  EXPECT_EQ(choice.parallelBlocks, 8);
  EXPECT_DOUBLE_EQ(choice.idle, 9.0 / 8);
  EXPECT_DOUBLE_EQ(choice.seconds, choice.movement.bytes * 9 / 8);
}

TEST(BlockSearchTest, levels_nest_and_the_slowest_bounds) {
  OperatorChain chain = gemmChain(2048, 2048, 2048, 2048);
  ChainMachine machine{{{"L1", 48e3, 200e9}, {"L2", 1e6, 100e9}, {"L3", 16e6, 40e9}}, 2, 240e9};
  std::vector<int64_t> inner = {6, 64, 1, 64};
  std::optional<BlockSchedule> schedule = scheduleChain(chain, machine, inner);
  ASSERT_TRUE(schedule);
  ASSERT_EQ(schedule->levels.size(), 3u);
  double slowest = schedule->arithmeticSeconds, idle = schedule->levels[2].choice.idle;
  for (size_t level = 0; level < 3; ++level) {
    const OrderChoice &choice = schedule->levels[level].choice;
    const CacheLevel &cache = machine.caches[level];
    EXPECT_EQ(schedule->levels[level].name, cache.name);
    EXPECT_LE(choice.movement.memoryBytes, cache.capacityBytes);
    for (size_t loop = 0; loop < inner.size(); ++loop)
      EXPECT_TRUE(choice.block.tiles[loop] % inner[loop] == 0 || choice.block.tiles[loop] == 2048);
    inner = choice.block.tiles;
    slowest = std::max(slowest, choice.movement.bytes / cache.bytesPerSecond * idle);
  }
  EXPECT_DOUBLE_EQ(schedule->seconds, slowest);
  EXPECT_EQ(schedule->levels[2].choice.parallelBlocks % machine.cores, 0);
}

TEST(BlockSearchTest, operators_apart_move_the_tensor_between_them) {
  OperatorChain chain = gemmChain(64, 8, 8, 64);
  std::vector<OperatorChain> apart = separately(chain);
  ASSERT_EQ(apart.size(), 2u);
  for (const OperatorChain &one : apart)
    EXPECT_EQ(one.verify(), "");
  SearchSpace space{1e9, {}, 1, 1, 0};
  double fused = searchOrder(chain, space)->movement.moved, sum = 0;
  for (const OperatorChain &one : apart)
    sum += searchOrder(one, space)->movement.moved;
  EXPECT_DOUBLE_EQ(sum - fused, 2 * 64 * 64);
}
} // namespace

// Block orders of contraction chains (Chimera 4). Algorithm 1 is tested against the paper's table and against counting;
// the search is tested against the closed form and against exhaustive search.
#include "passes/plan/tiling/cpu/BlockSearch.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>

using namespace tilewright;

namespace {
enum { M, N, K, L }; // loops of the paper's chain
enum { A, B, C1, C2, D, E }; // tensors of its two operators, in order

BlockOrder mlkn(int64_t m, int64_t n, int64_t k, int64_t l) { return {{M, L, K, N}, {m, n, k, l}}; }
double trips(double extent, double tile) { return std::ceil(extent / tile); }

// Table III, with tiles that divide no extent.
TEST(BlockOrderTest, gemm_chain_in_order_mlkn_moves_what_the_paper_says) {
  constexpr int64_t m = 61, n = 37, k = 53, l = 47, tm = 8, tn = 5, tk = 7, tl = 11;
  OperatorChain chain = gemmChain(m, n, k, l, /*elementBytes=*/1);
  Movement movement = movementOf(chain, mlkn(tm, tn, tk, tl));
  double expected[] = {m * k * trips(l, tl), k * l * trips(m, tm), 0, 0, n * l * trips(m, tm), m * n * trips(l, tl)};
  double footprints[] = {tm * tk, tk * tl, tm * tl, tm * tl, tl * tn, tm * tn};
  ASSERT_EQ(movement.tensors.size(), 6u);
  double sum = 0;
  for (int i = 0; i < 6; ++i) {
    EXPECT_DOUBLE_EQ(movement.tensors[i].moved, expected[i]) << i;
    EXPECT_DOUBLE_EQ(movement.tensors[i].footprint, footprints[i]) << i;
    sum += expected[i];
  }
  EXPECT_DOUBLE_EQ(movement.moved, sum);
  EXPECT_DOUBLE_EQ(movement.memoryBytes, std::max(tm * tk + tk * tl + tm * tl, tm * tl + tl * tn + tm * tn));
}

// The three observations of section 4.2, on the paper's own examples.
TEST(BlockOrderTest, loops_move_what_the_observations_say) {
  OperatorChain chain = gemmChain(60, 36, 52, 48);
  std::vector<int64_t> tiles = {10, 9, 13, 8};
  double once = 60 * 52;
  EXPECT_DOUBLE_EQ(movementOf(chain, {{M, K, N, L}, tiles}).tensors[A].moved, once);
  EXPECT_DOUBLE_EQ(movementOf(chain, {{M, N, L, K}, tiles}).tensors[A].moved, once * 4 * 6);
  std::vector<unsigned> order = {M, N, K, L};
  do {
    Movement here = movementOf(chain, {order, tiles});
    std::vector<int64_t> wholeK = tiles;
    wholeK[K] = 52;
    Movement without = movementOf(chain, {order, wholeK});
    EXPECT_DOUBLE_EQ(here.tensors[D].moved, without.tensors[D].moved);
    EXPECT_DOUBLE_EQ(here.tensors[E].moved, without.tensors[E].moved);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(BlockOrderTest, a_loop_of_one_trip_replaces_nothing) {
  OperatorChain chain = gemmChain(60, 36, 52, 48);
  Movement movement = movementOf(chain, mlkn(10, 36, 52, 8));
  EXPECT_DOUBLE_EQ(movement.tensors[A].moved, 60 * 52);
  EXPECT_DOUBLE_EQ(movement.tensors[E].moved, 60 * 36);
}

// A loop of the consumer outside the producer's reduction makes the producer run again.
TEST(BlockOrderTest, order_mlnk_computes_the_first_product_for_every_block_of_n) {
  OperatorChain chain = gemmChain(60, 36, 52, 48);
  Movement fused = movementOf(chain, mlkn(10, 9, 13, 8));
  Movement again = movementOf(chain, {{M, L, N, K}, {10, 9, 13, 8}});
  EXPECT_DOUBLE_EQ(fused.multiplications, chain.multiplications());
  EXPECT_DOUBLE_EQ(again.multiplications, 4.0 * 60 * 52 * 48 + 60.0 * 48 * 36);
  EXPECT_DOUBLE_EQ(again.tensors[A].moved, 4 * fused.tensors[A].moved);
}

// Accumulators stay on the chip until an outer reduction that returns to them has ended.
TEST(BlockOrderTest, order_mkln_keeps_all_sums_of_a_row_of_blocks) {
  OperatorChain chain = gemmChain(60, 36, 52, 48);
  EXPECT_DOUBLE_EQ(movementOf(chain, {{M, K, L, N}, {10, 9, 13, 8}}).tensors[C1].footprint, 10 * 48);
}

// If rows of A and of E stay for all blocks of l, they occupy memory during both matmuls, as in attention.
TEST(BlockOrderTest, tiles_that_are_found_again_take_memory_while_the_other_product_runs) {
  OperatorChain chain = gemmChain(512, 64, 64, 512, /*elementBytes=*/1);
  Movement movement = movementOf(chain, mlkn(8, 64, 64, 32));
  EXPECT_DOUBLE_EQ(movement.tensors[A].moved, 512 * 64);
  EXPECT_DOUBLE_EQ(movement.tensors[E].moved, 512 * 64);
  EXPECT_DOUBLE_EQ(movement.memoryBytes, 8 * 64 + 64 * 32 + 8 * 32 + /*E or A*/ 8 * 64);
}

/// Counts loads of tiles by walking over all blocks. An operator loads a tile whenever it is not the one that it used
/// last.
double countLoads(const OperatorChain &chain, const BlockOrder &block, std::vector<double> &executed) {
  std::vector<int64_t> at(chain.loops.size(), 0);
  std::map<std::pair<size_t, unsigned>, std::vector<int64_t>> last;
  std::vector<std::vector<int64_t>> lastBlock(chain.ops.size());
  executed.assign(chain.ops.size(), 0);
  double loaded = 0;
  auto isLast = [&](unsigned loop) { return at[loop] + block.tiles[loop] >= chain.loops[loop].extent; };
  auto visit = [&] {
    for (size_t number = 0; number < chain.ops.size(); ++number) {
      const ChainOp &op = chain.ops[number];
      bool runs = true; // true once the producers' own loops have ended
      for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
        runs &= chain.runs(loop, number) || isLast(loop);
      if (!runs)
        continue;
      std::vector<int64_t> own;
      for (unsigned loop : op.loops)
        own.push_back(at[loop]);
      executed[number] += own != lastBlock[number];
      lastBlock[number] = own;
      for (unsigned index : op.tensors) {
        const ChainTensor &tensor = chain.tensors[index];
        std::vector<int64_t> where;
        double elements = 1;
        for (const ChainIndex &dim : tensor.dims) {
          int64_t size = 1;
          for (const ChainTerm &term : dim) {
            where.push_back(at[term.loop]);
            int64_t left = chain.loops[term.loop].extent - at[term.loop];
            size += term.stride * (std::min(block.tiles[term.loop], left) - 1);
          }
          elements *= size;
        }
        auto [known, isFirst] = last.try_emplace({number, index}, where);
        if (tensor.isIO && (isFirst || known->second != where))
          loaded += elements;
        known->second = where;
      }
    }
  };
  std::function<void(size_t)> walk = [&](size_t depth) {
    if (depth == block.order.size())
      return visit();
    unsigned loop = block.order[depth];
    for (at[loop] = 0; at[loop] < chain.loops[loop].extent; at[loop] += block.tiles[loop])
      walk(depth + 1);
  };
  walk(0);
  return loaded;
}

/// Two one-dimensional convolutions, the second over windows of the first's results: y[h2] of z[2 h2 + r2].
OperatorChain convolutionChain() {
  enum { H, R2, O, R1, I };
  return {{{"h", 9}, {"r2", 3}, {"o", 5}, {"r1", 4}, {"i", 3}},
          {{"x", {{{H, 2}, {R2}, {R1}}, {{I}}}},
           {"w1", {{{R1}}, {{I}}, {{O}}}},
           {"z", {{{H, 2}, {R2}}, {{O}}}, 4, false},
           {"w2", {{{R2}}, {{O}}}},
           {"y", {{{H}}}}},
          {{"first", {H, R2, O, R1, I}, {0, 1, 2}}, {"second", {H, R2, O}, {2, 3, 4}}}};
}

TEST(BlockOrderTest, the_algorithm_counts_what_walking_over_the_blocks_counts) {
  std::mt19937 random(0);
  OperatorChain chains[] = {gemmChain(7, 5, 6, 4), gemmChain(3, 8, 2, 9), convolutionChain()};
  for (const OperatorChain &chain : chains) {
    ASSERT_EQ(chain.verify(), "");
    std::vector<unsigned> order(chain.loops.size());
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < 400; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      BlockOrder block{order, {}};
      for (const ChainLoop &loop : chain.loops)
        block.tiles.push_back(std::uniform_int_distribution<int64_t>(1, loop.extent)(random));
      ASSERT_EQ(block.verify(chain), "");
      std::vector<double> executed;
      Movement movement = movementOf(chain, block);
      double loads = countLoads(chain, block, executed);
      std::string text;
      llvm::raw_string_ostream os(text);
      block.print(chain, os);
      EXPECT_DOUBLE_EQ(movement.moved, loads) << text;
      EXPECT_EQ(llvm::ArrayRef(movement.blocks), llvm::ArrayRef(executed)) << text;
    }
  }
}

// Rounding down stays within the paper's bound of the real-valued optimum, and the search finds no worse result.
TEST(BlockOrderTest, search_reaches_the_closed_form_of_the_gemm_chain) {
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
TEST(BlockOrderTest, order_mlkn_is_the_best_of_the_gemm_chain) {
  double closed = gemmChainOptimum(2048, 2048, 2048, 2048, 8192, 16).m;
  std::optional<OrderChoice> found = searchOrder(gemmChain(2048, 2048, 2048, 2048, 1), {8192, {1, 16, 16, 1}, 1, 1, 0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->block.order, std::vector<unsigned>({M, L, K, N}));
  for (unsigned loop : {M, L})
    EXPECT_NEAR(found->block.tiles[loop], closed, 0.1 * closed);
}

TEST(BlockOrderTest, closed_form_with_a_result_that_crosses_twice_is_a_minimum) {
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

TEST(BlockOrderTest, search_finds_what_trying_everything_finds) {
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

TEST(BlockOrderTest, more_memory_never_moves_more) {
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

TEST(BlockOrderTest, nothing_is_found_where_the_least_tiles_do_not_fit) {
  EXPECT_FALSE(searchOrder(gemmChain(128, 64, 64, 128), {1024, {32, 32, 32, 32}, 1, 1, 0}));
}

TEST(BlockOrderTest, chains_have_the_same_form_whatever_they_are_called) {
  OperatorChain chain = gemmChain(128, 64, 32, 256), renamed = chain, wider = chain, online = chain;
  renamed.loops[0].name = "rows";
  renamed.loops[0].expr = 7;
  renamed.tensors[1].name = "weights";
  EXPECT_EQ(chain.form(), renamed.form());
  wider.loops[1].extent = 65;
  EXPECT_NE(chain.form(), wider.form());
  online.loops[3].whole = true;
  EXPECT_NE(chain.form(), online.form());
}

// Eight blocks of rows on three cores: the last round leaves one core idle.
TEST(BlockOrderTest, idle_cores_are_charged) {
  OperatorChain chain = gemmChain(64, 8, 8, 64);
  OrderChoice choice = weigh(chain, {1e9, {}, 3, 1, 0}, mlkn(8, 8, 8, 16));
  EXPECT_EQ(choice.parallelBlocks, 8);
  EXPECT_DOUBLE_EQ(choice.idle, 9.0 / 8);
  EXPECT_DOUBLE_EQ(choice.seconds, choice.movement.bytes * 9 / 8);
}

TEST(BlockOrderTest, levels_nest_and_the_slowest_bounds) {
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

// The second matmul waits for whole rows of the softmax in between. These rows are kept, but A and B need not be whole
// in tiles.
TEST(BlockOrderTest, a_reduction_between_keeps_rows_unless_it_is_online) {
  OperatorChain chain = gemmChain(512, 64, 64, 512);
  chain.loops[L].whole = true;
  BlockOrder block = mlkn(8, 64, 64, 32);
  Movement waits = movementOf(chain, block), online = movementOf(withOnlineReductions(chain), block);
  EXPECT_DOUBLE_EQ(waits.tensors[C1].footprint, 8 * 512);
  EXPECT_DOUBLE_EQ(online.tensors[C1].footprint, 8 * 32);
  EXPECT_DOUBLE_EQ(waits.moved, online.moved);
  EXPECT_DOUBLE_EQ(waits.multiplications, chain.multiplications());
}

TEST(BlockOrderTest, operators_apart_move_the_tensor_between_them) {
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

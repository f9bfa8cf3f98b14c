// Block orders of contraction chains (Chimera 4): algorithm 1 is tested against the paper's table and against counting.
#include "test/unit/plan/tiling/GemmChainOrders.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>

using namespace tilewright;

namespace {
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
} // namespace

// Tiles and blocks of K for contractions on CPUs, chosen by what moves between caches, and the cost of accesses.
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/cpu/ChainMovement.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class ContractionTilesTest : public PlanFixture {
protected:
  static std::string matmul(int64_t m, int64_t k, int64_t n, const char *result = "f32") {
    auto shape = [](int64_t a, int64_t b) { return "tensor<" + std::to_string(a) + "x" + std::to_string(b) + "x"; };
    std::string a = shape(m, k) + "f32>", b = shape(k, n) + "f32>", y = shape(m, n);
    y += std::string(result) + ">";
    return "func.func @matmul(%a: " + a + ", %b: " + b + ") -> " + y +
           " {\n  %zero = arith.constant dense<0.0> : " + y + "\n  %y = linalg.matmul ins(%a, %b : " + a + ", " + b +
           ") outs(%zero : " + y + ") -> " + y + "\n  return %y : " + y + "\n}";
  }

  int64_t termsOf(const std::string &source) {
    TensorGraph graph = parse(source);
    std::optional<IterationSpace> space = spaceOfAll(graph);
    EXPECT_TRUE(space);
    return space ? kPerBlock(graph, space->roots.front(), *space, target) : -1;
  }

  double arithmeticOf(const std::string &source) {
    TensorGraph graph = parse(source);
    std::optional<IterationSpace> space = spaceOfAll(graph);
    EXPECT_TRUE(space);
    return space ? workOf(graph, *space, target).arithmetic : 0;
  }
};

// A panel of 64 columns by K = 768 stays in a core's outer cache (1 MB) for all rows, so accumulators never leave
// registers.
TEST_F(ContractionTilesTest, terms_that_fit_are_taken_at_once) { EXPECT_EQ(termsOf(matmul(128, 768, 192)), 0); }

// A panel with K = 4096 does not fit and is strided, so its blocks are copied.
TEST_F(ContractionTilesTest, panels_that_outgrow_the_cache_are_taken_in_blocks) {
  EXPECT_EQ(termsOf(matmul(128, 4096, 192)), 256);
}

// If rhs is as wide as a register block, its steps are contiguous, and the largest even blocks that fit are used.
TEST_F(ContractionTilesTest, blocks_are_as_large_as_fit) {
  EXPECT_EQ(termsOf(matmul(128, 4096, 64)), 2048);
  target.levels[1].capacityBytes /= 2;
  EXPECT_EQ(termsOf(matmul(128, 4096, 64)), 1368) << "a third, in whole steps";
}

// If one register block has all rows, each panel is read once. If it comes from the private outer cache, K is whole;
// from further away, it is read a few rows at a time.
TEST_F(ContractionTilesTest, a_single_block_of_rows_takes_all_of_k) {
  EXPECT_EQ(termsOf(matmul(5, 1024, 192)), 0);
  EXPECT_EQ(termsOf(matmul(5, 4096, 1536)), 8);
}

// Rows of a matrix are then read from end to end, and each core reads half of them, since every piece of a row costs a
// jump.
TEST_F(ContractionTilesTest, rows_from_memory_are_cut_for_cores_alone) {
  auto tilesOf = [&](int64_t cores) {
    target.cores = cores;
    TensorGraph graph = parse(matmul(1, 1024, 50257));
    return spaceOfAll(graph)->tiles;
  };
  EXPECT_EQ(tilesOf(1), std::vector<int64_t>({1024, 50257}));
  EXPECT_EQ(tilesOf(2), std::vector<int64_t>({1024, 25152}));
}

// The predicted movement is that of the code: with blocks of K, the operand is read once instead of once for every
// block of rows.
TEST_F(ContractionTilesTest, blocks_are_in_the_movement) {
  TensorGraph graph = parse(matmul(120, 4096, 64));
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  space->tiles = space->extents;
  std::vector<OperatorChain> chains = chainsOf(graph, allOf(graph), *space);
  ASSERT_EQ(chains.size(), 1u);
  double outer = movementIn(graph, *space, chains, target)[1].bytes;
  EXPECT_LT(outer, 4.0 * (120 * 4096 + 2 * 64 * 4096 + 5 * 120 * 64));
}

// With stride two, whole vectors are read and shuffled. With stride eight, elements are gathered one by one.
TEST_F(ContractionTilesTest, strided_reads_cost_less_than_gathers) {
  auto strided = [](int64_t apart) {
    std::string wide = "tensor<64x" + std::to_string(512 * apart) + "xf32>";
    return "#in = affine_map<(i, j) -> (i, j * " + std::to_string(apart) +
           ")>\n#out = affine_map<(i, j) -> (i, j)>\nfunc.func @take(%x: " + wide +
           ") -> tensor<64x512xf32> {\n  %e = tensor.empty() : tensor<64x512xf32>\n"
           "  %y = linalg.generic {indexing_maps = [#in, #out], iterator_types = [\"parallel\", \"parallel\"]} ins(%x "
           ": " +
           wide +
           ") outs(%e : tensor<64x512xf32>) {\n  ^bb0(%a: f32, %o: f32):\n    %m = arith.mulf %a, %a : f32\n"
           "    linalg.yield %m : f32\n  } -> tensor<64x512xf32>\n  return %y : tensor<64x512xf32>\n}";
  };
  EXPECT_LT(3 * arithmeticOf(strided(2)), arithmeticOf(strided(8)));
  EXPECT_LT(arithmeticOf(strided(1)), arithmeticOf(strided(2)));
}
} // namespace

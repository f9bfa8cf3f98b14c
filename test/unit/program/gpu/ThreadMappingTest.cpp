// Tests how threads share a nest: every point has its thread, and if lines of a buffer conflict in banks, neighbouring
// threads take lines that do not.
#include "passes/program/gpu/ThreadMapping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
TEST(BitRange, a_turn_is_undone_bit_by_bit) {
  BitRange range{/*first=*/2, /*count=*/4, /*turned=*/3};
  std::set<int64_t> seen;
  for (int64_t thread = 0; thread < 64; thread += 4) {
    int64_t index = range.indexOf(thread | 3); // bits of other dims do not matter
    seen.insert(index);
    for (unsigned bit = 0; bit < range.count; ++bit)
      EXPECT_EQ(index >> bit & 1, thread >> range.threadBit(bit) & 1);
  }
  EXPECT_EQ(seen.size(), 16u);
  EXPECT_EQ(range.indexOf(4), 8);
}

/// Maps a copy of two heads by 16 lines of 32 halves into a buffer whose lines have room for `room` elements.
class ThreadMapping : public testing::Test {
protected:
  ThreadMapping() { context.loadDialect<TileDialect, arith::ArithDialect>(); }

  NestMapping copy(int64_t room, BlockShape shape) {
    std::string buffer = "!tile.slice<2x16x" + std::to_string(room) + "xf16, block>";
    std::string text = R"(
      #id = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1, d2)>
      tile.program @p outputs 1 {
      ^bb0(%x: !tile.slice<2x16x32xf16, global>, %y: !tile.slice<2x16x32xf16, global>):
        tile.parallel [1] tiles [1] workgroups 1 {
        tile.walk {
        ^bb0(%i: index):
          %b = tile.alloc : )" +
                       buffer + R"(
          tile.compute [2, 16, 32] sizes [2, 16, 32] offsets [] () vector 2 reduce [] {
            %v = tile.load %x at #id : !tile.slice<2x16x32xf16, global> -> f16
            tile.store %v, %b at #id : f16, )" +
                       buffer + "\ntile.yield\n}\n}\n}\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    NestMapping mapping;
    module->walk([&](ComputeOp nest) { mapping = mapNest(nest, shape); });
    EXPECT_EQ(mapping.verify(), "");
    return mapping;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(ThreadMapping, lines_that_are_spread_are_taken_in_order) {
  NestMapping mapping = copy(/*room=*/32, {128, 0}); // two lines of 64 bytes cover all banks
  EXPECT_EQ(mapping.lanes, 8);
  EXPECT_EQ(mapping.bits[1].first, 2u);
  EXPECT_EQ(mapping.bits[1].turned, 0u);
}

TEST_F(ThreadMapping, lines_that_meet_in_banks_are_taken_apart) {
  NestMapping mapping = copy(/*room=*/40, {128, 0}); // neighbouring lines of 16 words, 20 words apart, conflict
  int64_t next = mapping.bits[1].indexOf(4);
  EXPECT_EQ(next * 20 % 32, 16);
}
} // namespace

// Tests the scopes at which threads synchronise: the rules of PowerFusion 5.1 on numbers of units, and the scopes
// derived from the maps of two nests against a brute-force check of every thread and element.
#include "passes/program/movement/ParallelUnits.h"
#include "passes/program/movement/SlicePattern.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr UnitLevels kFourWarps{/*lanes=*/32, /*warps=*/4, /*blocks=*/1};

TEST(ParallelUnits, a_thread_meets_itself_at_no_barrier) {
  EXPECT_EQ(scopeOfThreads(77, 77, kFourWarps), Scope::thread);
}

TEST(ParallelUnits, lanes_of_one_warp_meet_in_it) { EXPECT_EQ(scopeOfThreads(32, 63, kFourWarps), Scope::warp); }

TEST(ParallelUnits, four_warps_whose_numbers_agree_divided_by_four_meet_in_their_block) {
  EXPECT_EQ(scopeOfThreads(0 * 32, 3 * 32, kFourWarps), Scope::block);
  EXPECT_EQ(scopeOfThreads(4 * 32, 7 * 32 + 31, kFourWarps), Scope::block);
}

TEST(ParallelUnits, neighbouring_warps_of_two_blocks_meet_on_the_device) {
  EXPECT_EQ(scopeOfThreads(3 * 32, 4 * 32, kFourWarps), Scope::grid);
}

TEST(ParallelUnits, blocks_of_a_cluster_meet_in_it) {
  constexpr UnitLevels pairs{32, 4, 2};
  EXPECT_EQ(scopeOfThreads(3 * 32, 4 * 32, pairs), Scope::cluster);
  EXPECT_EQ(scopeOfThreads(7 * 32, 8 * 32, pairs), Scope::grid);
}

TEST(ParallelUnits, scopes_grow_with_distance_and_have_no_order) {
  for (int64_t a = 0; a < 300; a += 7)
    for (int64_t b = a; b < 300; b += 5) {
      EXPECT_EQ(scopeOfThreads(a, b, kFourWarps), scopeOfThreads(b, a, kFourWarps));
      EXPECT_GE(scopeOfThreads(a, b + 1, kFourWarps), std::min(scopeOfThreads(a, b, kFourWarps), Scope::warp));
    }
}

std::string printed(const SlicePattern &pattern) {
  std::string text;
  llvm::raw_string_ostream os(text);
  pattern.print(os);
  return text;
}

TEST(SlicePattern, a_dense_box_is_one_segment) { EXPECT_EQ(printed(*patternOfBox({3, 5}, {5, 1})), "1 x 15 by 15"); }

TEST(SlicePattern, rows_of_a_wider_tensor_are_segments) {
  EXPECT_EQ(printed(*patternOfBox({4, 16}, {512, 1})), "4 x 16 by 512");
  EXPECT_EQ(printed(*patternOfBox({2, 4, 16}, {2048, 512, 1})), "8 x 16 by 512");
}

TEST(SlicePattern, a_column_is_segments_of_one_element) {
  EXPECT_EQ(printed(*patternOfBox({7, 1}, {53, 1})), "7 x 1 by 53");
}

TEST(SlicePattern, segments_at_two_distances_are_no_pattern) { EXPECT_FALSE(patternOfBox({2, 4, 16}, {4096, 512, 1})); }

/// Two nests over a buffer, the first of which writes it.
class HandoverScope : public testing::Test {
protected:
  HandoverScope() { context.loadDialect<TileDialect, arith::ArithDialect>(); }

  void parse(const std::string &first, const std::string &second) {
    std::string text = R"(
      #id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
      #turned = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>
      #row = affine_map<(d0, d1)[s0, s1] -> (d0, 0)>
      #shifted = affine_map<(d0, d1)[s0, s1] -> (d0, (d1 + 1) mod 64)>
      tile.program @p outputs 1 {
      ^bb0(%x: !tile.slice<64x256xf32, global>, %y: !tile.slice<64x256xf32, global>):
        tile.parallel [1] tiles [1] workgroups 1 {
        tile.walk {
        ^bb0(%i: index):
          %b = tile.alloc : !tile.slice<64x256xf32, block>
          )" + first + second +
                       "\n}\n}\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    nests.clear();
    module->walk([&](ComputeOp nest) { nests.push_back(nest); });
  }

  static std::string writes(const std::string &extents, const std::string &map) {
    return "tile.compute " + extents + " sizes " + extents + " offsets [] () vector 1 reduce [] {\n" +
           "%v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32\n tile.store %v, %b at " + map +
           " : f32, !tile.slice<64x256xf32, block>\n tile.yield\n }\n";
  }
  static std::string reads(const std::string &extents, const std::string &map) {
    return "tile.compute " + extents + " sizes " + extents + " offsets [] () vector 1 reduce [] {\n" +
           "%v = tile.load %b at " + map + " : !tile.slice<64x256xf32, block> -> f32\n" +
           "tile.store %v, %y at #id : f32, !tile.slice<64x256xf32, global>\n tile.yield\n }\n";
  }
  static std::string sums(const std::string &extents) {
    return "tile.compute " + extents + " sizes " + extents +
           " offsets [] () vector 1 reduce [1] into (%b : !tile.slice<64x256xf32, block>) at [#row] inits [0.0 : f32] "
           "kinds [\"add\"] {\n ^bb0(%acc: f32):\n %v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32\n"
           "%n = arith.addf %v, %acc : f32\n tile.yield %n : f32\n }\n";
  }

  struct Access {
    AffineMap map;
    AccessKind kind;
  };

  /// Returns the access of a nest to the buffer.
  static Access access(ComputeOp nest) {
    for (Operation &op : nest.getBodyBlock()) {
      if (auto load = dyn_cast<LoadOp>(op); load && load.getSlice().getDefiningOp())
        return {load.getMap(), AccessKind::load};
      if (auto store = dyn_cast<StoreOp>(op); store && store.getSlice().getDefiningOp())
        return {store.getMap(), AccessKind::store};
    }
    return {cast<AffineMapAttr>(nest.getAccMaps()[0]).getValue(), AccessKind::accumulator};
  }

  /// Returns, for each element, the threads that touch it.
  static std::map<std::vector<int64_t>, std::set<int64_t>> touched(ComputeOp nest, const NestMapping &mapping) {
    Access own = access(nest);
    std::map<std::vector<int64_t>, std::set<int64_t>> result;
    for (int64_t thread = 0; thread < mapping.threads; ++thread) {
      bool waited = own.kind == AccessKind::load && mapping.reduced != 0;
      bool leads = waited || (thread & mapping.idle) == 0;
      leads &= own.kind != AccessKind::accumulator || (thread & mapping.reduced) == 0;
      for (int64_t row = 0; leads && row < nest.getSizes()[0]; ++row)
        for (int64_t column = 0; column < nest.getSizes()[1]; ++column) {
          auto isOwn = [&](int64_t dim, int64_t point) {
            const BitRange &bits = mapping.bits[dim];
            int64_t vector = point / (dim == 1 ? mapping.lanes : 1), count = int64_t(1) << bits.count;
            // The leading thread holds the sum over all points of a reduced dim.
            bool summed = own.kind == AccessKind::accumulator && nest.isReduced(dim);
            return summed || vector % count == bits.indexOf(thread);
          };
          if (isOwn(0, row) && isOwn(1, column)) {
            SmallVector<int64_t> element = own.map.compose({row, column, 0, 0});
            result[{element.begin(), element.end()}].insert(thread);
          }
        }
    }
    return result;
  }

  void expectScope(BlockShape shape, Scope expected) {
    NestMapping first = mapNest(nests[0], shape), second = mapNest(nests[1], shape);
    UnitLevels levels{32, shape.threads / 32, 1};
    Access written = access(nests[0]), read = access(nests[1]);
    Scope scope = handoverScope(unitsOf(nests[0], first, written.map, written.kind),
                                unitsOf(nests[1], second, read.map, read.kind), levels);
    Scope exact = Scope::thread;
    auto writers = touched(nests[0], first), readers = touched(nests[1], second);
    for (auto &[element, threads] : readers)
      for (int64_t reader : threads)
        for (int64_t writer : writers[element])
          exact = std::max(exact, scopeOfThreads(writer, reader, levels));
    EXPECT_EQ(scope, expected);
    EXPECT_EQ(exact, expected);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  SmallVector<ComputeOp> nests;
};

TEST_F(HandoverScope, one_pattern_stays_with_its_thread) {
  parse(writes("[8, 64]", "#id"), reads("[8, 64]", "#id"));
  expectScope({128, 0}, Scope::thread);
  expectScope({256, 0}, Scope::thread);
}

TEST_F(HandoverScope, neighbours_of_a_warp_meet_in_it) {
  parse(writes("[1, 32]", "#id"), reads("[1, 32]", "#shifted"));
  expectScope({32, 0}, Scope::warp);
}

TEST_F(HandoverScope, a_transposition_crosses_warps) {
  parse(writes("[64, 64]", "#id"), reads("[64, 64]", "#turned"));
  expectScope({128, 0}, Scope::block);
}

TEST_F(HandoverScope, a_sum_over_a_warp_is_read_in_it) {
  parse(sums("[1, 64]"), reads("[1, 64]", "#row"));
  expectScope({32, 0}, Scope::warp);
}

TEST_F(HandoverScope, a_sum_over_a_block_is_read_by_its_warps) {
  parse(sums("[1, 256]"), reads("[1, 256]", "#row"));
  expectScope({64, 0}, Scope::block);
}
} // namespace

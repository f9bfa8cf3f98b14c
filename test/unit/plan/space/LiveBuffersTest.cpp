// Buffers for the accumulators of a contraction. Accumulators that the next nests read from registers need none.
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/target/Target.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class LiveBuffersTest : public PlanFixture {
protected:
  LiveBuffersTest() {
    llvm::Expected<Target> gpu = lookupTarget("cuda:h200");
    EXPECT_TRUE(bool(gpu));
    target = *gpu;
  }

  /// Returns isHandedOver for a product of 128 x 96 by 96 x 288. A second op doubles the columns that `slice` takes of
  /// it, or all of them; `columns` is their type.
  bool isHandedOver(const std::string &slice, const std::string &columns) {
    std::string read = slice.empty() ? "%p" : "%s";
    TensorGraph graph = parse("#id = affine_map<(i, j) -> (i, j)>\n"
                              "func.func @product(%a: tensor<128x96xf16>, %b: tensor<96x288xf16>) -> " +
                              columns + R"( {
  %zero = arith.constant dense<0.0> : tensor<128x288xf32>
  %p = linalg.matmul ins(%a, %b : tensor<128x96xf16>, tensor<96x288xf16>)
      outs(%zero : tensor<128x288xf32>) -> tensor<128x288xf32>
)" + slice +
                              "  %e = tensor.empty() : " + columns +
                              R"(
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins()" +
                              read + " : " + columns + ") outs(%e : " + columns + R"() {
  ^bb0(%u: f32, %o: f32):
    %d = arith.addf %u, %u : f32
    linalg.yield %d : f32
  } -> )" + columns +
                              "\n  return %y : " + columns + "\n}");
    IterationSpace space = spaceOf(graph);
    return tilewright::isHandedOver(graph, space, space.roots.front());
  }

  IterationSpace spaceOf(const TensorGraph &graph) {
    std::string reason;
    std::optional<IterationSpace> space = spaceOfAll(graph, &reason);
    EXPECT_TRUE(space) << reason;
    return space.value_or(IterationSpace());
  }
};

TEST_F(LiveBuffersTest, sums_that_are_read_at_their_points_have_none) {
  EXPECT_TRUE(isHandedOver("", "tensor<128x288xf32>"));
}

// A fused projection's queries: threads would read accumulators that other threads hold.
TEST_F(LiveBuffersTest, sums_of_which_a_slice_is_read_are_a_buffer) {
  EXPECT_FALSE(isHandedOver("  %s = tensor.extract_slice %p[0, 96] [128, 96] [1, 1] : tensor<128x288xf32> to "
                            "tensor<128x96xf32>\n",
                            "tensor<128x96xf32>"));
}

// The heads of an attention: the first head's accumulators may not overwrite the operands that other heads still read.
TEST_F(LiveBuffersTest, sums_of_several_matrices_of_what_was_kept_are_a_buffer) {
  TensorGraph graph = parse(R"(
#id = affine_map<(h, i, j) -> (h, i, j)>
#rows = affine_map<(h, i, j) -> (h, i)>
func.func @heads(%x: tensor<6x49x49xf32>, %v: tensor<6x49x32xf32>) -> tensor<6x49x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x49xf32>
  %none = arith.constant dense<0.0> : tensor<6x49x32xf32>
  %k = tensor.empty() : tensor<6x49x49xf32>
  %e = tensor.empty() : tensor<6x49x32xf32>
  %p = linalg.exp ins(%x : tensor<6x49x49xf32>) outs(%k : tensor<6x49x49xf32>) -> tensor<6x49x49xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<6x49x49xf32>) outs(%zero : tensor<6x49xf32>) dimensions = [2]
  %u = linalg.batch_matmul ins(%p, %v : tensor<6x49x49xf32>, tensor<6x49x32xf32>)
      outs(%none : tensor<6x49x32xf32>) -> tensor<6x49x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%u, %s : tensor<6x49x32xf32>, tensor<6x49xf32>) outs(%e : tensor<6x49x32xf32>) {
  ^bb0(%w: f32, %t: f32, %o: f32):
    %d = arith.divf %w, %t : f32
    linalg.yield %d : f32
  } -> tensor<6x49x32xf32>
  return %y : tensor<6x49x32xf32>
})");
  IterationSpace space = spaceOf(graph);
  auto product = llvm::find_if(
      space.roots, [&](const GroupRoot &root) { return graph.exprs()[root.expr].kind == ExprKind::contraction; });
  ASSERT_TRUE(product != space.roots.end());
  int64_t heads = product->dims[0];
  ASSERT_EQ(space.extents[heads], 6);
  space.tiles[heads] = 1;
  EXPECT_TRUE(tilewright::isHandedOver(graph, space, *product));
  space.tiles[heads] = 6;
  EXPECT_FALSE(tilewright::isHandedOver(graph, space, *product));
}

// Exponentials are summed over keys in a walk. After that loop, rows of the results are divided by their sums, twice.
// The second results reuse the memory of the exponentials.
TEST_F(LiveBuffersTest, buffers_behind_a_walk_lie_where_those_in_it_were) {
  TensorGraph graph = parse(R"(
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
func.func @walked(%x: tensor<64x256xf32>, %v: tensor<256x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %k = tensor.empty() : tensor<64x256xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %p = linalg.exp ins(%x : tensor<64x256xf32>) outs(%k : tensor<64x256xf32>) -> tensor<64x256xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<64x256xf32>) outs(%zero : tensor<64xf32>) dimensions = [1]
  %u = linalg.matmul ins(%p, %v : tensor<64x256xf32>, tensor<256x64xf32>) outs(%none : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  %w = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%u, %s : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    %t = math.tanh %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %z = linalg.reduce { arith.addf } ins(%w : tensor<64x64xf32>) outs(%zero : tensor<64xf32>) dimensions = [1]
  %q = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %z : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    %t = math.tanh %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %r = linalg.reduce { arith.addf } ins(%q : tensor<64x64xf32>) outs(%zero : tensor<64xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %r : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
})");
  IterationSpace space = spaceOf(graph);
  int64_t keys = llvm::find(space.extents, 256) - space.extents.begin();
  space.tiles = space.extents;
  space.tiles[keys] = 64;
  GroupChoice part;
  part.exprs = allOf(graph);
  Walk walk = walkAlong(graph, part, space.roots, keys);
  ASSERT_EQ(walk.refused, "");
  std::vector<WalkPhase> together(space.roots.size(), WalkPhase::inside);
  int64_t row = 64 * sizeof(float), bytes = liveBufferBytes(graph, space, walk.phases, target);
  EXPECT_GE(bytes, 2 * 64 * row);
  EXPECT_LE(bytes + 64 * row, liveBufferBytes(graph, space, together, target));
}
} // namespace

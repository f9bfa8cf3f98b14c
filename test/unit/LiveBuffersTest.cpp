// What of a contraction's sums is a buffer: those that the next nests take in registers are none.
#include "passes/plan/LiveBuffers.h"
#include "passes/target/Target.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class LiveBuffersTest : public PlanFixture {
protected:
  /// Of a product of 128 x 96 by 96 x 288, of which `columns` (a type) are doubled.
  bool isHandedOver(const std::string &slice, const std::string &columns) {
    std::string read = slice.empty() ? "%p" : "%s";
    llvm::Expected<Target> gpu = lookupTarget("cuda:h200");
    EXPECT_TRUE(bool(gpu));
    target = *gpu;
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
    std::string reason;
    std::optional<IndexSpace> space = spaceOfAll(graph, &reason);
    EXPECT_TRUE(space) << reason;
    return space && tilewright::isHandedOver(graph, *space, space->roots.front());
  }
};

TEST_F(LiveBuffersTest, sums_that_are_read_at_their_points_have_none) {
  EXPECT_TRUE(isHandedOver("", "tensor<128x288xf32>"));
}

// As the queries of a fused projection: threads have other sums of it than they would read.
TEST_F(LiveBuffersTest, sums_of_which_a_slice_is_read_are_a_buffer) {
  EXPECT_FALSE(isHandedOver("  %s = tensor.extract_slice %p[0, 96] [128, 96] [1, 1] : tensor<128x288xf32> to "
                            "tensor<128x96xf32>\n",
                            "tensor<128x96xf32>"));
}
} // namespace

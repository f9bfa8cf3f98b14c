// A plan says for each contraction on a GPU how blocks compute it. A contraction that no block can compute is refused,
// and not left out.
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {
class PlannedGemmsTest : public PlanFixture {
protected:
  PlannedGemmsTest() { target = *lookupTarget("cuda:h200"); }

  static OpPlan &contractionOf(Plan &plan) {
    for (OpPlan &op : plan.kernels.front().groups.front().ops)
      if (!op.microKernel.empty())
        return op;
    llvm_unreachable("the plan has a contraction");
  }
};

TEST_F(PlannedGemmsTest, what_cannot_be_read_is_refused) {
  TensorGraph graph = parse(R"(
func.func @product(%a: tensor<256x96xf16>, %b: tensor<96x160xf16>) -> tensor<256x160xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x160xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<256x160xf32>) -> tensor<256x160xf32>
  %p = linalg.matmul ins(%a, %b : tensor<256x96xf16>, tensor<96x160xf16>)
                     outs(%z : tensor<256x160xf32>) -> tensor<256x160xf32>
  return %p : tensor<256x160xf32>
})");
  Plan plan = *makePlan(graph, target);
  EXPECT_EQ(whyNotComputed(plan, graph, target), "");
  contractionOf(plan).dims[2] = -1; // K
  std::string why = whyNotComputed(plan, graph, target);
  EXPECT_NE(why.find("gemm: no block of threads can compute it: none of its reduced dims is a dim of the space"),
            std::string::npos)
      << why;
}
} // namespace

// The micro kernels that plans for GPUs name must be those that are predicted and used, and whose registers are
// counted.
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "passes/plan/space/PlanNumerics.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {

class SettleMicroKernelsTest : public PlanFixture {
protected:
  /// 2048 x 2048 x 2048, of f16 accumulated in f32, optionally with lhs computed by the kernel.
  static constexpr const char *kProduct = R"(
func.func @product(%a: tensor<2048x2048xf16>, %b: tensor<2048x2048xf16>) -> tensor<2048x2048xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x2048xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %p = linalg.matmul ins(%a, %b : tensor<2048x2048xf16>, tensor<2048x2048xf16>)
                     outs(%z : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %p : tensor<2048x2048xf32>
})";
  static constexpr const char *kOfExponentials = R"(
func.func @product(%a: tensor<128x64xf16>, %b: tensor<64x128xf16>) -> tensor<128x128xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %x = tensor.empty() : tensor<128x64xf16>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.exp ins(%a : tensor<128x64xf16>) outs(%x : tensor<128x64xf16>) -> tensor<128x64xf16>
  %p = linalg.matmul ins(%r, %b : tensor<128x64xf16>, tensor<64x128xf16>)
                     outs(%z : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %p : tensor<128x128xf32>
})";

  static constexpr const char *kByExponentials = R"(
func.func @product(%a: tensor<128x64xf16>, %b: tensor<64x128xf16>) -> tensor<128x128xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %x = tensor.empty() : tensor<64x128xf16>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.exp ins(%b : tensor<64x128xf16>) outs(%x : tensor<64x128xf16>) -> tensor<64x128xf16>
  %p = linalg.matmul ins(%a, %r : tensor<128x64xf16>, tensor<64x128xf16>)
                     outs(%z : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %p : tensor<128x128xf32>
})";

  /// 2048 x 2048 x 2048, of bytes, with the layout of rhs as a parameter.
  static constexpr const char *kBytes = R"(
func.func @product(%a: tensor<2048x2048xi8>, %b: tensor<2048x2048xi8>) -> tensor<2048x2048xi32> {{
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2048x2048xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<2048x2048xi32>) -> tensor<2048x2048xi32>
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {0}>,
                                         affine_map<(m, n, k) -> (m, n)>],
                        iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<2048x2048xi8>, tensor<2048x2048xi8>) outs(%z : tensor<2048x2048xi32>) {{
  ^bb0(%u: i8, %v: i8, %s: i32):
    %ue = arith.extsi %u : i8 to i32
    %ve = arith.extsi %v : i8 to i32
    %m = arith.muli %ue, %ve : i32
    %n = arith.addi %s, %m : i32
    linalg.yield %n : i32
  } -> tensor<2048x2048xi32>
  return %p : tensor<2048x2048xi32>
})";

  static Plan planned(const TensorGraph &graph, llvm::StringRef machine, NumericsMode numerics) {
    PlanOptions options;
    options.numerics = numerics;
    return *makePlan(graph, *lookupTarget(machine), options);
  }

  static const OpPlan &contractionOf(const Plan &plan) {
    for (const KernelPlan &kernel : plan.kernels)
      for (const GroupPlan &part : kernel.groups)
        for (const OpPlan &op : part.ops)
          if (!op.microKernel.empty())
            return op;
    llvm_unreachable("the plan has a contraction");
  }

  static double secondsOf(const Plan &plan) {
    for (const CostTerm &term : plan.kernels.front().predicted)
      if (term.name == "seconds")
        return term.value;
    llvm_unreachable("kernels have predictions");
  }

  static Plan handMade(llvm::StringRef label) {
    OpPlan op;
    op.id = 1;
    op.root = true;
    op.microKernel = label.str();
    Plan plan;
    plan.kernels = {{"k", {GroupPlan{{op}}}, {}}};
    plan.edges.push_back({0, 0, 1, 0, tile::Scope::launch, false, false, "", 0, 0, ""});
    return plan;
  }
};

// Tensor cores do not round each product separately. Strict numerics use a slower micro kernel, and the prediction is
// for that one.
TEST_F(SettleMicroKernelsTest, strict_products_are_predicted_with_what_they_name) {
  TensorGraph graph = parse(kProduct);
  Plan quick = planned(graph, "cuda:h200", NumericsMode::standard);
  Plan strict = planned(graph, "cuda:h200", NumericsMode::strict);
  double least = 2 * 2048.0 * 2048 * 2048 / lookupTarget("cuda:h200")->flopsPerSecond;
  EXPECT_EQ(llvm::StringRef(contractionOf(quick).microKernel).split('-').first, "wgmma");
  EXPECT_EQ(llvm::StringRef(contractionOf(strict).microKernel).split('-').first, "fma");
  EXPECT_LT(secondsOf(quick), least);
  EXPECT_GE(secondsOf(strict), least);
}

TEST_F(SettleMicroKernelsTest, planners_name_what_is_taken) {
  TensorGraph graph = parse(kProduct);
  for (llvm::StringRef machine : {"cuda:h200", "sm_90", "cuda:a100"})
    for (NumericsMode numerics : {NumericsMode::standard, NumericsMode::strict, NumericsMode::tf32}) {
      Plan plan = planned(graph, machine, numerics);
      EXPECT_TRUE(settleMicroKernels(plan, graph, *lookupTarget(machine)).empty());
    }
}

TEST_F(SettleMicroKernelsTest, what_the_target_has_not_is_named_no_longer) {
  TensorGraph graph = parse(kOfExponentials);
  Plan plan = handMade("wgmma-64x8");
  std::vector<SettledKernel> settled = settleMicroKernels(plan, graph, *lookupTarget("cuda:a100"));
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].op, 1u);
  EXPECT_EQ(settled[0].before, "wgmma-64x8");
  EXPECT_EQ(settled[0].reason, "target 'cuda:a100' has no 'wgmma' for f16 times f16 with accumulators in f32");
  EXPECT_EQ(contractionOf(plan).microKernel, "mma_sync-16x8");
  EXPECT_TRUE(settleMicroKernels(plan, graph, *lookupTarget("cuda:a100")).empty());

  plan = handMade("wgmma-64x8");
  EXPECT_TRUE(settleMicroKernels(plan, graph, *lookupTarget("cuda:h200")).empty());

  for (const char *unknown : {"mma_sync-64x64", "nonsense"}) {
    plan = handMade(unknown);
    settled = settleMicroKernels(plan, graph, *lookupTarget("cuda:a100"));
    ASSERT_EQ(settled.size(), 1u);
    EXPECT_EQ(contractionOf(plan).microKernel, "mma_sync-16x8");
    EXPECT_FALSE(settled[0].reason.empty());
  }

  // A mode that forbids a micro kernel also forbids plans to name it. What was chosen for it goes with it.
  plan = handMade("mma_sync-16x8");
  plan.kernels[0].groups[0].ops[0].gemm = GemmChoice();
  plan.numerics = NumericsMode::strict;
  settled = settleMicroKernels(plan, graph, *lookupTarget("cuda:h200"));
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(llvm::StringRef(contractionOf(plan).microKernel).split('-').first, "fma");
  EXPECT_FALSE(contractionOf(plan).gemm);
}

// lhs can come from registers, but only descriptors can address rhs.
TEST_F(SettleMicroKernelsTest, warpgroups_read_rows_from_buffers) {
  TensorGraph graph = parse(kOfExponentials);
  Plan plan = handMade("wgmma-64x8");
  plan.edges[0].scope = tile::Scope::block;
  EXPECT_TRUE(settleMicroKernels(plan, graph, *lookupTarget("cuda:h200")).empty());
}

TEST_F(SettleMicroKernelsTest, warpgroups_read_no_columns_from_buffers) {
  TensorGraph graph = parse(kByExponentials);
  Plan plan = handMade("wgmma-64x8");
  plan.edges[0] = {0, 0, 1, 1, tile::Scope::block, false, false, "", 0, 0, ""};
  std::vector<SettledKernel> settled = settleMicroKernels(plan, graph, *lookupTarget("cuda:h200"));
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].after, "mma_sync-16x8");
  EXPECT_EQ(settled[0].reason, "an operand is in a buffer of the block, which descriptors of 'wgmma' cannot address");
}

// The instruction transposes only 16-bit elements, and plans for bytes must respect that.
TEST_F(SettleMicroKernelsTest, warpgroups_read_bytes_along_the_terms) {
  Target h200 = *lookupTarget("cuda:h200");
  for (const char *lanes : {"(n, k)", "(k, n)"}) {
    bool alongK = llvm::StringRef(lanes) == "(n, k)";
    TensorGraph graph = parse(llvm::formatv(kBytes, lanes));
    Plan plan = planned(graph, "cuda:h200", NumericsMode::strict); // integers are exact
    EXPECT_EQ(contractionOf(plan).microKernel, alongK ? "wgmma-64x8" : "mma_sync-16x8");
    EXPECT_TRUE(settleMicroKernels(plan, graph, h200).empty());

    Plan other = handMade("wgmma-64x8");
    other.kernels[0].groups[0].ops[0].id = 0;
    other.edges.clear();
    std::vector<SettledKernel> settled = settleMicroKernels(other, graph, h200);
    ASSERT_EQ(settled.empty(), alongK);
    if (alongK)
      continue;
    EXPECT_EQ(settled[0].after, "mma_sync-16x8");
    EXPECT_EQ(settled[0].reason, "'wgmma' of si8 reads operands whose K is contiguous, and in one of them it is not");
  }
}

// With 128 accumulators per thread, a block of 256 threads is alone on an SM, although 64 registers would allow four.
TEST_F(SettleMicroKernelsTest, presence_is_proved_with_the_registers_of_sums) {
  TensorGraph graph = parse(kProduct);
  Target h200 = *lookupTarget("cuda:h200");
  Plan plan = planned(graph, "cuda:h200", NumericsMode::standard);
  GroupPlan &part = plan.kernels[0].groups[0];
  EXPECT_EQ(countedRegisters(plan, graph, KernelPlan(), h200), 64);
  for (OpPlan &op : part.ops)
    if (!op.microKernel.empty())
      op.microKernel = "wgmma-64x8";
  EXPECT_EQ(countedRegisters(plan, graph, plan.kernels[0], h200), 255);
}
} // namespace

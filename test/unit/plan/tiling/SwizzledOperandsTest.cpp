// Weights stored as swizzled tiles: when planners choose that, what plans from files may state, and what it gains.
#include "passes/plan/tiling/gpu/SwizzledOperands.h"
#include "passes/cost/ChooseGemm.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/target/Warpgroups.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {

class TileImagesTest : public PlanFixture {
protected:
  TileImagesTest() { h200 = *lookupTarget("cuda:h200"); }

  /// A product of f16 by a weight or by an argument.
  static std::string product(int64_t m, int64_t k, int64_t n, bool isWeight = true) {
    return llvm::formatv(R"(
"util.global"() <{{initial_value = #stream.parameter.named<"model"::"w"> : tensor<{1}x{2}xf16>, sym_name = "w",
                  sym_visibility = "private", type = tensor<{1}x{2}xf16>}> : () -> ()
func.func @product(%a: tensor<{0}x{1}xf16>, %b: tensor<{1}x{2}xf16>) -> tensor<{0}x{2}xf32> {{
  %c0 = arith.constant 0.0 : f32
  %w = "util.global.load"() <{{global = @w}> : () -> tensor<{1}x{2}xf16>
  %e = tensor.empty() : tensor<{0}x{2}xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<{0}x{2}xf32>) -> tensor<{0}x{2}xf32>
  %p = linalg.matmul ins(%a, %{3} : tensor<{0}x{1}xf16>, tensor<{1}x{2}xf16>)
                     outs(%z : tensor<{0}x{2}xf32>) -> tensor<{0}x{2}xf32>
  return %p : tensor<{0}x{2}xf32>
})",
                         m, k, n, isWeight ? "w" : "b");
  }

  static TensorPlan *laidOut(Plan &plan) {
    for (KernelPlan &kernel : plan.kernels)
      for (GroupPlan &part : kernel.groups)
        for (TensorPlan &tensor : part.tensors)
          if (!tensor.layout.empty())
            return &tensor;
    return nullptr;
  }

  static std::vector<int64_t> argumentsOf(const TensorPlan &tensor, tile::LayoutKind kind) {
    for (const LayoutStep &step : tensor.layout)
      if (step.kind == kind)
        return step.arguments;
    return {};
  }

  Target h200;
};

TEST_F(TileImagesTest, AWeightOfALargeProductIsStoredByTiles) {
  TensorGraph graph = parse(product(2048, 1000, 2048));
  Plan plan = *makePlan(graph, h200);
  TensorPlan *weight = laidOut(plan);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->tensor, "in1");
  // Steps have K = 64, and the last one is padded. Whole tiles need no more columns.
  EXPECT_EQ(argumentsOf(*weight, tile::LayoutKind::pad), (std::vector<int64_t>{1024, 2048}));
  EXPECT_EQ(argumentsOf(*weight, tile::LayoutKind::split), (std::vector<int64_t>{2048, 16, 64}));
  EXPECT_EQ(argumentsOf(*weight, tile::LayoutKind::swizzle), (std::vector<int64_t>{8}));
  EXPECT_EQ(whyNotLaidOut(plan, graph, h200), "");
  EXPECT_TRUE(plainCopies(plan, graph, h200).empty());
}

TEST_F(TileImagesTest, WhatIsNoWeightIsCopiedAsItIs) {
  TensorGraph graph = parse(product(2048, 1024, 2048, /*isWeight=*/false));
  Plan plan = *makePlan(graph, h200);
  EXPECT_EQ(laidOut(plan), nullptr);
  auto plain = plainCopies(plan, graph, h200);
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].reason, "its rhs is no weight of a parameter file");
}

TEST_F(TileImagesTest, APlanMayLeaveAWeightAsItIs) {
  TensorGraph graph = parse(product(2048, 1024, 2048));
  Plan plan = *makePlan(graph, h200);
  laidOut(plan)->layout.clear();
  EXPECT_EQ(whyNotLaidOut(plan, graph, h200), "");
  EXPECT_EQ(plainCopies(plan, graph, h200)[0].reason, "the plan says so");
}

TEST_F(TileImagesTest, ALayoutIsThatOfTheTiles) {
  TensorGraph graph = parse(product(2048, 1024, 2048));
  Plan plan = *makePlan(graph, h200);
  laidOut(plan)->layout.back().arguments = {4};
  EXPECT_NE(whyNotLaidOut(plan, graph, h200).find("it is not the swizzled layout that its tiles need"),
            std::string::npos);
}

TEST_F(TileImagesTest, OnlyWarpgroupsReadImages) {
  TensorGraph graph = parse(product(2048, 1024, 2048));
  Plan plan = *makePlan(graph, h200), elsewhere = *makePlan(graph, *lookupTarget("cuda:a100"));
  EXPECT_EQ(laidOut(elsewhere), nullptr);
  elsewhere.kernels[0].groups[0].tensors[1].layout = laidOut(plan)->layout;
  EXPECT_NE(whyNotLaidOut(elsewhere, graph, *lookupTarget("cuda:a100")).find("no contraction of warpgroups reads it"),
            std::string::npos);
}

/// 128 x 256 accumulators of 256 threads, in steps of K = 64 of f16.
GemmTiling tilingOf(int64_t n) {
  Target target = *lookupTarget("cuda:h200");
  GemmTile tile{128, n, 1024, 2, 2};
  return *chooseGemmTiling(tile, 256, *warpgroupKernel(target, {"f16", "f16", "f32"}, NumericsMode::standard),
                           target.costs.gpu);
}

TEST(BulkCopyGain, CountsInstructionsAgainstWaits) {
  Target target = *lookupTarget("cuda:h200");
  double plain = 16.0 * 1024 * 256 * 2;
  BulkCopyGain gain = bulkCopyGain({/*tiles=*/16, /*steps=*/16, /*copyBytes=*/16, plain}, tilingOf(256), 256, target);
  EXPECT_EQ(gain.copies, 16 * 16 * 64); // 32 KB per step, 512 bytes per instruction
  EXPECT_EQ(gain.waits, 16 * 16 * 8);   // warps
  EXPECT_EQ(gain.addedBytes, 0);
  EXPECT_TRUE(gain.pays());
  // Narrower copies take more instructions. Elements too narrow for asynchronous copies are loaded and stored.
  EXPECT_EQ(bulkCopyGain({16, 16, 4, plain}, tilingOf(256), 256, target).copies, 4 * gain.copies);
  EXPECT_EQ(bulkCopyGain({16, 16, 2, plain}, tilingOf(256), 256, target).copies, 16 * gain.copies);
}

TEST(BulkCopyGain, TilesThatAreMostlyFilledUpDoNotPay) {
  Target target = *lookupTarget("cuda:h200");
  BulkCopyGain gain = bulkCopyGain({16, 16, 16, 16.0 * 1024 * 136 * 2}, tilingOf(256), 256, target);
  EXPECT_EQ(gain.addedBytes, 16.0 * 1024 * (256 - 136) * 2);
  EXPECT_FALSE(gain.pays());
}

} // namespace

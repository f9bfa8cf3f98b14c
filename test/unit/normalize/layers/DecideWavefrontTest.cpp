// Tests of the decisions about wavefronts: how columns are divided between blocks, and whether layers run at once.
#include "passes/normalize/layers/DecideWavefront.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
class DecideWavefrontTest : public PlanFixture {
protected:
  /// Returns a stack of layers whose projections have weights of so many rows and columns.
  LayerStack stackOf(size_t layers, int64_t steps, int64_t rows, int64_t columns) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
    LayerStack stack;
    stack.layers.resize(layers);
    for (RecurrentLayer &layer : stack.layers)
      layer.steps = steps;
    SmallVector<Value> weights;
    for (size_t layer = 1; layer < layers; ++layer)
      weights.push_back(
          tensor::EmptyOp::create(builder, builder.getUnknownLoc(), {rows, columns}, builder.getF32Type()));
    stack.ofProjections[weights.front()] = weights;
    return stack;
  }
};

// The weights of all groups are in the shared memory of blocks that are resident at once, and no group is of padding
// only.
TEST_F(DecideWavefrontTest, groups_fit_the_shared_memory_of_resident_blocks) {
  Target h200 = *lookupTarget("cuda:h200");
  for (int64_t layers : {1, 2, 3, 10, 64})
    for (int64_t columns : {16, 96, 384, 1000, 2048})
      for (int64_t bytes : {128, 1024, 16384}) {
        auto fits = [&](int64_t own) {
          int64_t blocks = layers * llvm::divideCeil(columns, own), each = own * bytes,
                  together = llvm::divideCeil(blocks, h200.gpu.guaranteedSms);
          return each <= h200.blockBytes && together * each <= h200.gpu.sharedBytesPerSm;
        };
        ColumnGroups groups = groupColumns(columns, bytes, layers, h200);
        EXPECT_GE(groups.count * groups.columns, columns);
        if (groups.count == 1)
          continue;
        EXPECT_TRUE(fits(groups.columns)) << columns << " columns, " << bytes << " bytes, " << layers << " layers";
        EXPECT_LT((groups.count - 1) * groups.columns, columns) << "a group of zeros only";
      }
}

// The LSTM of Souffle's table 2: f32 weights of ten layers fit the shared memory of the SMs in groups of 64 columns.
TEST_F(DecideWavefrontTest, ten_layers_of_an_lstm_stay_in_shared_memory) {
  ColumnGroups groups = groupColumns(2048, 256 * 4, 10, *lookupTarget("cuda:h200"));
  EXPECT_EQ(groups.count, 32);
  EXPECT_EQ(groups.columns, 64);
}

// Weights beyond the shared memory of all SMs are not divided.
TEST_F(DecideWavefrontTest, weights_that_do_not_fit_stay_whole) {
  ColumnGroups groups = groupColumns(8192, 1024 * 4, 10, *lookupTarget("cuda:h200"));
  EXPECT_EQ(groups.count, 1);
  EXPECT_EQ(groups.columns, 8192);
}

// Blocks that need more memory besides their weights, or of which fewer may share an SM, have other groups.
TEST_F(DecideWavefrontTest, costs_of_blocks_change_groups) {
  Target usual = *lookupTarget("cuda:h200"), other = usual;
  other.costs.gpu.waveBytes = usual.blockBytes;
  EXPECT_NE(groupColumns(2048, 256 * 4, 10, other).count, groupColumns(2048, 256 * 4, 10, usual).count);
  other = usual;
  other.costs.gpu.waveBlocks = 1;
  EXPECT_NE(groupColumns(2048, 256 * 4, 10, other).count, groupColumns(2048, 256 * 4, 10, usual).count);
}

// Steps that are saved cost a barrier each; weights that are read in each step cost their bytes.
TEST_F(DecideWavefrontTest, layers_run_at_once_unless_their_weights_take_longer_than_barriers) {
  Target h200 = *lookupTarget("cuda:h200");
  EXPECT_TRUE(decideWavefront(stackOf(10, 100, 256, 1024), std::nullopt, h200, NumericsMode::standard).taken);
  EXPECT_FALSE(decideWavefront(stackOf(2, 100, 16384, 16384), std::nullopt, h200, NumericsMode::standard).taken);
}
} // namespace

// Tests which contractions are merged, and the layout of their columns.
#include "passes/normalize/forms/HorizontalMerge.h"
#include "test/unit/PlanFixture.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

namespace {

class HorizontalMergeTest : public PlanFixture {
protected:
  /// Parses matmuls of one tensor of 9 x 640 with weights of the given numbers of columns.
  TensorGraph products(llvm::ArrayRef<int64_t> columns) {
    std::string body;
    llvm::raw_string_ostream os(body);
    for (auto [i, n] : llvm::enumerate(columns))
      os << llvm::formatv(R"(
  %w{0} = arith.constant dense_resource<w{0}> : tensor<640x{1}xf32>
  %z{0} = arith.constant dense<0.0> : tensor<9x{1}xf32>
  %y{0} = linalg.matmul ins(%x, %w{0} : tensor<9x640xf32>, tensor<640x{1}xf32>) outs(%z{0} : tensor<9x{1}xf32>) -> tensor<9x{1}xf32>
  "use"(%y{0}) : (tensor<9x{1}xf32>) -> ())",
                          i, n);
    return parse("func.func @products(%x: tensor<9x640xf32>) {" + body + "\n  return\n}");
  }

  HorizontalMerges merges(llvm::ArrayRef<int64_t> columns) { return findHorizontalMerges(products(columns), target); }
};

TEST_F(HorizontalMergeTest, equal_parts_have_a_slot_each) {
  for (int64_t columns : {70, 768}) {
    HorizontalMerges found = merges({columns, columns, columns});
    ASSERT_EQ(found.offers.size(), 1u);
    EXPECT_EQ(found.offers[0].contractions, (std::vector<unsigned>{0, 1, 2}));
    EXPECT_EQ(found.offers[0].columns.toString(), "1 x (1 + 1 + 1) x " + std::to_string(columns));
    EXPECT_TRUE(found.offers[0].byRule().taken);
  }
}

TEST_F(HorizontalMergeTest, unequal_parts_share_their_greatest_common_divisor) {
  HorizontalMerges found = merges({512, 128});
  ASSERT_EQ(found.offers.size(), 1u);
  EXPECT_EQ(found.offers[0].columns.toString(), "1 x (4 + 1) x 128");
}

TEST_F(HorizontalMergeTest, columns_that_only_fill_up_blocks_keep_parts_apart) {
  HorizontalMerges found = merges({4100, 70});
  ASSERT_EQ(found.offers.size(), 1u);
  FormChoice choice = found.offers[0].byRule();
  EXPECT_FALSE(choice.taken);
  EXPECT_NE(choice.reason.find("to whole register blocks"), std::string::npos);
}

// The decision compares times: a launch that costs more is worth more padded columns.
TEST_F(HorizontalMergeTest, a_dear_launch_is_worth_more_columns) {
  target.launchSeconds = 1;
  EXPECT_TRUE(merges({4100, 70}).offers.front().byRule().taken);
}

// A choice can be edited: other columns are laid out if they are whole heads and slots, and refused otherwise.
TEST_F(HorizontalMergeTest, the_columns_of_a_choice_are_laid_out_or_refused) {
  TensorGraph graph = products({128, 64, 64});
  HorizontalMerges found = findHorizontalMerges(graph, target);
  ASSERT_EQ(found.offers.size(), 1u);
  HorizontalMerge &merge = found.offers[0];
  FormChoice choice = merge.byRule();
  EXPECT_EQ(merge.layOut(graph, choice), "");
  EXPECT_EQ(merge.columns.toString(), "1 x (2 + 1 + 1) x 64");
  choice.parameters = {{"heads", {2}}, {"width", {16}}};
  EXPECT_EQ(merge.layOut(graph, choice), "");
  EXPECT_EQ(merge.columns.toString(), "2 x (4 + 2 + 2) x 16");
  choice.parameters["width"] = {24};
  EXPECT_EQ(merge.layOut(graph, choice), "128 columns are no 2 heads of whole slots of 24");
  choice.parameters = {{"heads", {0}}, {"width", {64}}};
  EXPECT_EQ(merge.layOut(graph, choice), "its parameters must be a positive number of heads and their width");
}

} // namespace

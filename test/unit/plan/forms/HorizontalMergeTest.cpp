// Tests which contractions are merged, and the layout of their columns.
#include "passes/plan/forms/HorizontalMerge.h"
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
    ASSERT_EQ(found.merges.size(), 1u);
    EXPECT_EQ(found.merges[0].contractions, (std::vector<unsigned>{0, 1, 2}));
    EXPECT_EQ(found.merges[0].columns.toString(), "1 x (1 + 1 + 1) x " + std::to_string(columns));
    EXPECT_GT(found.merges[0].savedSeconds, 0);
  }
}

TEST_F(HorizontalMergeTest, unequal_parts_share_their_greatest_common_divisor) {
  HorizontalMerges found = merges({512, 128});
  ASSERT_EQ(found.merges.size(), 1u);
  EXPECT_EQ(found.merges[0].columns.toString(), "1 x (4 + 1) x 128");
}

TEST_F(HorizontalMergeTest, columns_that_only_fill_up_blocks_keep_parts_apart) {
  HorizontalMerges found = merges({4100, 70});
  EXPECT_TRUE(found.merges.empty());
  ASSERT_EQ(found.declined.size(), 1u);
  EXPECT_NE(found.declined[0].reason.find("to whole register blocks"), std::string::npos);
}

// The decision compares times: a launch that costs more is worth more padded columns.
TEST_F(HorizontalMergeTest, a_dear_launch_is_worth_more_columns) {
  target.launchSeconds = 1;
  EXPECT_EQ(merges({4100, 70}).merges.size(), 1u);
}

TEST_F(HorizontalMergeTest, every_merge_verifies_and_says_what_it_is) {
  TensorGraph graph = products({128, 64, 64});
  HorizontalMerges found = findHorizontalMerges(graph, target);
  ASSERT_EQ(found.merges.size(), 1u);
  EXPECT_EQ(found.merges[0].verify(graph), "");
  std::string text;
  llvm::raw_string_ostream os(text);
  found.print(os);
  EXPECT_EQ(text.substr(0, text.find(", saves")), "merge 0, 1, 2: columns 1 x (2 + 1 + 1) x 64, 0 epilogue steps");
  found.merges[0].columns.width = 32;
  EXPECT_NE(found.merges[0].verify(graph), "");
  found.merges[0].contractions.pop_back();
  EXPECT_NE(found.merges[0].verify(graph), "");
}

} // namespace

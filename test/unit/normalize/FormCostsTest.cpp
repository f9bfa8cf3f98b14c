// Tests that the cost parameters of rewrites are used: another value of one changes what a small function becomes.
#include "test/unit/CostsFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {
class FormCostsTest : public CostsFixture {
protected:
  using MakePass = std::unique_ptr<Pass> (*)(std::string target);

  static std::unique_ptr<Pass> normalize(std::string target) { return createNormalizeExprs({std::move(target)}); }
  static std::unique_ptr<Pass> onePass(std::string target) { return createOnePassVariance({std::move(target)}); }
  static std::unique_ptr<Pass> collapse(std::string target) { return createCollapseDims({std::move(target)}); }
  static std::unique_ptr<Pass> convolve(std::string target) { return createConvolutionToMatmul({std::move(target)}); }
  static std::unique_ptr<Pass> split(std::string target) { return createSplitReductions({std::move(target)}); }
  static std::unique_ptr<Pass> pack(std::string target) { return createPackWeights({std::move(target)}); }

  /// Returns true if a pass on functions leaves another one once the parameter has this value.
  bool changesForm(StringRef name, double value, const std::string &source, MakePass make) {
    return changes(name, value, [&] {
      return rewritten(source, [&](PassManager &passes) { passes.addNestedPass<func::FuncOp>(make(fileOfTarget())); });
    });
  }

  /// Adds updates to rows of a tensor.
  static std::string scatter(int64_t rows, int64_t updates) {
    return llvm::formatv(R"(
func.func @f(%x: tensor<{0}x4xf32>, %at: tensor<{1}x1xi64>, %new: tensor<{1}x4xf32>) -> tensor<{0}x4xf32> {{
  %y = "iree_linalg_ext.scatter"(%new, %at, %x) <{{dimension_map = array<i64: 0>, unique_indices = false}> ({{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) : (tensor<{1}x4xf32>, tensor<{1}x1xi64>, tensor<{0}x4xf32>) -> tensor<{0}x4xf32>
  return %y : tensor<{0}x4xf32>
})",
                         rows, updates);
  }

  /// The sum of squared differences to the mean, for each channel of images with the channels last.
  static std::string variance(int64_t images, int64_t height, int64_t width, int64_t channels) {
    std::string x = llvm::formatv("tensor<{0}x{1}x{2}x{3}xf32>", images, height, width, channels),
                y = llvm::formatv("tensor<{0}xf32>", channels);
    return llvm::formatv(R"(
#image = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#all = affine_map<(c) -> (c)>
func.func @f(%x: {0}) -> {1} {{
  %none = arith.constant 0.0 : f32
  %n = arith.constant {2}.0 : f32
  %e = tensor.empty() : {0}
  %f = tensor.empty() : {1}
  %zero = linalg.fill ins(%none : f32) outs(%f : {1}) -> {1}
  %total = linalg.generic {{indexing_maps = [#image, #channel], iterator_types = [{3}]}
      ins(%x : {0}) outs(%zero : {1}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> {1}
  %mean = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel"]}
      ins(%total : {1}) outs(%f : {1}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %n : f32
    linalg.yield %s : f32
  } -> {1}
  %d = linalg.generic {{indexing_maps = [#image, #channel, #image], iterator_types = [{4}]}
      ins(%x, %mean : {0}, {1}) outs(%e : {0}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> {0}
  %q = linalg.generic {{indexing_maps = [#image, #image], iterator_types = [{4}]} ins(%d : {0}) outs(%e : {0}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> {0}
  %v = linalg.generic {{indexing_maps = [#image, #channel], iterator_types = [{3}]}
      ins(%q : {0}) outs(%zero : {1}) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> {1}
  return %v : {1}
})",
                         x, y, images * height * width, R"("reduction", "reduction", "reduction", "parallel")",
                         R"("parallel", "parallel", "parallel", "parallel")");
  }
};

TEST_F(FormCostsTest, long_running_sums_are_cut_into_blocks) {
  std::string source = R"(
func.func @f(%x: tensor<96xi64>) -> tensor<96xi64> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<96xi64>
  %f = tensor.empty() : tensor<i64>
  %start = linalg.fill ins(%zero : i64) outs(%f : tensor<i64>) -> tensor<i64>
  %y:2 = "iree_linalg_ext.scan"(%x, %e, %start) <{dimension = 0 : i64, inclusive = false}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.addi %a, %b : i64
    "iree_linalg_ext.yield"(%s) : (i64) -> ()
  }) : (tensor<96xi64>, tensor<96xi64>, tensor<i64>) -> (tensor<96xi64>, tensor<i64>)
  return %y#0 : tensor<96xi64>
})";
  EXPECT_TRUE(changesForm("common.scanBlock", 16, source, normalize));
}

TEST_F(FormCostsTest, few_updates_are_compared_with_elements_of_any_tensor) {
  EXPECT_TRUE(changesForm("common.fewUpdates", 1, scatter(700000, 3), normalize));
}

TEST_F(FormCostsTest, many_updates_are_compared_with_the_elements_of_a_small_tensor) {
  EXPECT_TRUE(changesForm("common.comparedPairs", 100, scatter(70, 20), normalize));
}

// Images that a workgroup can hold need no parts, and sums of short parts are many.
TEST_F(FormCostsTest, variances_are_taken_in_parts_that_a_workgroup_holds) {
  std::string source = variance(8, 31, 33, 64);
  EXPECT_TRUE(changesForm("common.varianceTile", 8, source, onePass));
  EXPECT_TRUE(changesForm("common.variancePart", 4096, source, onePass));
  EXPECT_TRUE(changesForm("common.varianceMemory", 0.1, source, onePass));
}

TEST_F(FormCostsTest, variances_are_cut_within_a_dim_that_would_give_many_parts) {
  EXPECT_TRUE(changesForm("common.varianceSpareParts", 1000, variance(3, 400, 40, 64), onePass));
}

// A block keeps the rows of this softmax only if they leave no memory for partial results.
TEST_F(FormCostsTest, rows_that_a_block_keeps_leave_memory_for_partial_results) {
  target = llvm::cantFail(lookupTarget("cuda:h200"));
  std::string source = R"(
func.func @f(%x: tensor<3x57800xf32>) -> tensor<3x57800xf32> {
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3x57800xf32>
  %f = tensor.empty() : tensor<3xf32>
  %start = linalg.fill ins(%least : f32) outs(%f : tensor<3xf32>) -> tensor<3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x57800xf32>) outs(%start : tensor<3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<3x57800xf32>, tensor<3xf32>) outs(%e : tensor<3x57800xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<3x57800xf32>
  return %y : tensor<3x57800xf32>
})";
  EXPECT_TRUE(changesForm("gpu.besideRowBytes", 1, source, split));
}

TEST_F(FormCostsTest, dims_are_joined_where_rows_leave_lanes_empty) {
  std::string source = R"(
func.func @f(%x: tensor<9x7x45xf32>) -> tensor<9x7x45xf32> {
  %e = tensor.empty() : tensor<9x7x45xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<9x7x45xf32>) outs(%e : tensor<9x7x45xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<9x7x45xf32>
  return %y : tensor<9x7x45xf32>
})";
  EXPECT_TRUE(changesForm("cpu.shortRow", 1.05, source, collapse));
}

TEST_F(FormCostsTest, inputs_are_repeated_that_are_small_beside_the_op) {
  std::string source = R"(
func.func @f(%x: tensor<2x9x7x3xf32>, %b: tensor<3xf32>) -> tensor<2x7x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x7x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<2x7x3xf32>) -> tensor<2x7x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, r, i, j) -> (n, r, i, j)>, affine_map<(n, r, i, j) -> (j)>,
                                        affine_map<(n, r, i, j) -> (n, i, j)>],
                       iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
      ins(%x, %b : tensor<2x9x7x3xf32>, tensor<3xf32>) outs(%start : tensor<2x7x3xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %a = arith.addf %u, %v : f32
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<2x7x3xf32>
  return %y : tensor<2x7x3xf32>
})";
  EXPECT_TRUE(changesForm("cpu.repeatedInput", 64, source, collapse));
}

TEST_F(FormCostsTest, groups_of_many_filters_are_contractions) {
  std::string source = R"(
func.func @f(%x: tensor<1x2x16x30x30xf32>, %k: tensor<2x12x16x3x3xf32>) -> tensor<1x2x12x28x28xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x2x12x28x28xf32>
  %y = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<1x2x16x30x30xf32>, tensor<2x12x16x3x3xf32>)
      outs(%zero : tensor<1x2x12x28x28xf32>) -> tensor<1x2x12x28x28xf32>
  return %y : tensor<1x2x12x28x28xf32>
})";
  EXPECT_TRUE(changesForm("common.filtersOfGroup", 64, source, convolve));
}

// The image of the second convolution has the channels last, as the first one leaves it.
TEST_F(FormCostsTest, lines_of_many_channels_are_read_one_after_another) {
  std::string source = llvm::formatv(R"(
func.func @f(%x: tensor<1x16x60x60xf32>) -> tensor<1x32x56x56xf32> {{
  %a = arith.constant dense<0.5> : tensor<24x16x3x3xf32>
  %b = arith.constant dense<0.5> : tensor<32x24x3x3xf32>
  %u = arith.constant dense<0.0> : tensor<1x24x58x58xf32>
  %v = arith.constant dense<0.0> : tensor<1x32x56x56xf32>
  %y = linalg.conv_2d_nchw_fchw {0} ins(%x, %a : tensor<1x16x60x60xf32>, tensor<24x16x3x3xf32>)
      outs(%u : tensor<1x24x58x58xf32>) -> tensor<1x24x58x58xf32>
  %z = linalg.conv_2d_nchw_fchw {0} ins(%y, %b : tensor<1x24x58x58xf32>, tensor<32x24x3x3xf32>)
      outs(%v : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
  return %z : tensor<1x32x56x56xf32>
})",
                                     "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}");
  EXPECT_TRUE(changesForm("common.channelsInLine", 64, source, convolve));
}

TEST_F(FormCostsTest, a_computed_rhs_that_many_rows_read_is_packed) {
  target = llvm::cantFail(lookupTarget("x86-64-avx2"));
  std::string source = contraction("96x40", "64x40", "96x64",
                                   "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
                                   "affine_map<(m, n, k) -> (m, n)>");
  EXPECT_TRUE(changesForm("cpu.packedRows", 1000, source, pack));
  EXPECT_TRUE(changesForm("cpu.partsOfCache", 1000, source, pack));
}
} // namespace

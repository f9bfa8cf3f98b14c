// Tests what IREE fuses into its contractions, as measured: the cases named in IreeFolding.cpp.
#include "passes/graph/Eligibility.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class EligibilityTest : public PlanFixture {
protected:
  /// Treats all contractions as IREE's.
  static std::vector<int64_t> foldsOf(const TensorGraph &graph) {
    std::vector<bool> irees;
    for (const TensorExpr &expr : graph.exprs())
      irees.push_back(expr.kind == ExprKind::contraction);
    return foldsIntoContraction(graph, irees);
  }
  /// Builds a matmul of %a and %b to %m, followed by `body`.
  std::vector<int64_t> foldsAfterMatmul(const std::string &body, const std::string &results) {
    graph = std::make_unique<TensorGraph>(
        parse("func.func @f(%a: tensor<96x160xf32>, %b: tensor<160x224xf32>, %bias: tensor<224xf32>) -> (" + results +
              R"() {
  %z = arith.constant dense<0.0> : tensor<96x224xf32>
  %zr = arith.constant dense<0.0> : tensor<96xf32>
  %e = tensor.empty() : tensor<96x224xf32>
  %m = linalg.matmul ins(%a, %b : tensor<96x160xf32>, tensor<160x224xf32>) outs(%z : tensor<96x224xf32>) -> tensor<96x224xf32>
)" + body + "}"));
    return foldsOf(*graph);
  }
  static std::string unary(const char *result, const char *op, const char *input) {
    return std::string("  %") + result + " = linalg." + op + " ins(%" + input +
           " : tensor<96x224xf32>) outs(%e : tensor<96x224xf32>) -> tensor<96x224xf32>\n";
  }
  static std::string biased(const char *result, const char *input) {
    return std::string("  %") + result + R"( = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%)" +
           input + R"(, %bias : tensor<96x224xf32>, tensor<224xf32>) outs(%e : tensor<96x224xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %r = arith.addf %u, %v : f32
    linalg.yield %r : f32
  } -> tensor<96x224xf32>
)";
  }
  static std::string sum(const char *result, const char *input) {
    return std::string("  %") + result + " = linalg.reduce { arith.addf } ins(%" + input +
           " : tensor<96x224xf32>) outs(%zr : tensor<96xf32>) dimensions = [1]\n";
  }
  using Folds = std::vector<int64_t>;
  const std::string square = "tensor<96x224xf32>", row = "tensor<96xf32>";
  std::unique_ptr<TensorGraph> graph;
};

TEST_F(EligibilityTest, a_chain_folds) {
  EXPECT_EQ(foldsAfterMatmul(biased("x", "m") + unary("y", "exp", "x") + "  return %y : " + square + "\n", square),
            (Folds{-1, 0, 0}));
}
TEST_F(EligibilityTest, a_chain_that_escapes_in_between_folds) {
  EXPECT_EQ(foldsAfterMatmul(unary("x", "abs", "m") + unary("y", "exp", "x") + "  return %x, %y : " + square + ", " +
                                 square + "\n",
                             square + ", " + square),
            (Folds{-1, 0, 0}));
}
TEST_F(EligibilityTest, only_the_first_of_two_readers_folds) {
  EXPECT_EQ(foldsAfterMatmul(unary("x", "abs", "m") + unary("y", "exp", "x") + unary("w", "tanh", "x") +
                                 "  return %y, %w : " + square + ", " + square + "\n",
                             square + ", " + square),
            (Folds{-1, 0, 0, -1}));
}
TEST_F(EligibilityTest, two_readers_of_the_contraction_keep_both_out) {
  EXPECT_EQ(foldsAfterMatmul(unary("x", "abs", "m") + unary("y", "exp", "m") + "  return %x, %y : " + square + ", " +
                                 square + "\n",
                             square + ", " + square),
            (Folds{-1, -1, -1}));
}
TEST_F(EligibilityTest, a_reduction_beside_keeps_it_out) {
  EXPECT_EQ(foldsAfterMatmul(unary("x", "abs", "m") + sum("y", "m") + "  return %x, %y : " + square + ", " + row + "\n",
                             square + ", " + row),
            (Folds{-1, -1, -1}));
}
TEST_F(EligibilityTest, what_follows_a_reduction_stays_out) {
  EXPECT_EQ(foldsAfterMatmul(unary("x", "abs", "m") + sum("s", "x") +
                                 "  %sb = linalg.broadcast ins(%s : tensor<96xf32>) outs(%e : tensor<96x224xf32>) "
                                 "dimensions = [1]\n"
                                 "  %y = linalg.add ins(%x, %sb : tensor<96x224xf32>, tensor<96x224xf32>) outs(%e : "
                                 "tensor<96x224xf32>) -> tensor<96x224xf32>\n  return %y : " +
                                 square + "\n",
                             square),
            (Folds{-1, 0, -1, -1, -1}));
}
TEST_F(EligibilityTest, a_transpose_after_folds) {
  EXPECT_EQ(foldsAfterMatmul(unary("x", "abs", "m") +
                                 "  %te = tensor.empty() : tensor<224x96xf32>\n"
                                 "  %t = linalg.transpose ins(%x : tensor<96x224xf32>) outs(%te : tensor<224x96xf32>) "
                                 "permutation = [1, 0]\n  return %t : tensor<224x96xf32>\n",
                             "tensor<224x96xf32>"),
            (Folds{-1, 0, 0}));
}
const char *expand = "  %x = tensor.expand_shape %y [[0], [1, 2]] output_shape [96, 7, 32] : tensor<96x224xf32> into "
                     "tensor<96x7x32xf32>\n";
TEST_F(EligibilityTest, an_expansion_at_the_end_folds) {
  EXPECT_EQ(foldsAfterMatmul(biased("y", "m") + expand + "  return %x : tensor<96x7x32xf32>\n", "tensor<96x7x32xf32>"),
            (Folds{-1, 0, 0}));
}
TEST_F(EligibilityTest, an_expansion_before_a_transpose_keeps_all_out) {
  EXPECT_EQ(foldsAfterMatmul(biased("y", "m") + expand +
                                 "  %te = tensor.empty() : tensor<7x96x32xf32>\n"
                                 "  %t = linalg.transpose ins(%x : tensor<96x7x32xf32>) outs(%te : "
                                 "tensor<7x96x32xf32>) permutation = [1, 0, 2]\n  return %t : tensor<7x96x32xf32>\n",
                             "tensor<7x96x32xf32>"),
            (Folds{-1, -1, -1, -1}));
}
TEST_F(EligibilityTest, a_slice_keeps_what_follows_out) {
  EXPECT_EQ(foldsAfterMatmul("  %s = tensor.extract_slice %m[0, 10] [96, 100] [1, 1] : tensor<96x224xf32> to "
                             "tensor<96x100xf32>\n  %se = tensor.empty() : tensor<96x100xf32>\n"
                             "  %y = linalg.exp ins(%s : tensor<96x100xf32>) outs(%se : tensor<96x100xf32>) -> "
                             "tensor<96x100xf32>\n  return %y : tensor<96x100xf32>\n",
                             "tensor<96x100xf32>"),
            (Folds{-1, -1, -1}));
}

std::string bmm(const char *lhsType, const char *rhsType, const char *before) {
  return std::string("func.func @f(%a: ") + lhsType + ", %b: " + rhsType + ") -> tensor<4x18x20xf32> {\n" + before +
         R"(  %z = arith.constant dense<0.0> : tensor<4x18x20xf32>
  %m = linalg.batch_matmul ins(%l, %r : tensor<4x18x16xf32>, tensor<4x16x20xf32>) outs(%z : tensor<4x18x20xf32>) -> tensor<4x18x20xf32>
  return %m : tensor<4x18x20xf32>
})";
}
TEST_F(EligibilityTest, only_innermost_transposes_of_operands_fold) {
  TensorGraph inner = parse(bmm("tensor<4x18x16xf32>", "tensor<4x20x16xf32>", R"(
  %l = tensor.cast %a : tensor<4x18x16xf32> to tensor<4x18x16xf32>
  %e = tensor.empty() : tensor<4x16x20xf32>
  %r = linalg.transpose ins(%b : tensor<4x20x16xf32>) outs(%e : tensor<4x16x20xf32>) permutation = [0, 2, 1]
)"));
  EXPECT_EQ(foldsOf(inner), (Folds{1, -1}));
  TensorGraph outer = parse(bmm("tensor<18x4x16xf32>", "tensor<4x16x20xf32>", R"(
  %e = tensor.empty() : tensor<4x18x16xf32>
  %l = linalg.transpose ins(%a : tensor<18x4x16xf32>) outs(%e : tensor<4x18x16xf32>) permutation = [1, 0, 2]
  %r = tensor.cast %b : tensor<4x16x20xf32> to tensor<4x16x20xf32>
)"));
  EXPECT_EQ(foldsOf(outer), (Folds{-1, -1}));
}

TEST_F(EligibilityTest, special_functions_are_counted) {
  TensorGraph graph = parse(softmaxSource);
  EXPECT_EQ(specialOps(graph.exprs()[2]), 0) << "sub";
  EXPECT_EQ(specialOps(graph.exprs()[3]), 1) << "exp";
  EXPECT_EQ(specialOps(graph.exprs()[6]), 1) << "div";
}

TEST_F(EligibilityTest, gathers_and_windows_are_left) {
  TensorGraph graph = parse(R"(
func.func @pool(%x: tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32> {
  %z = arith.constant dense<0.0> : tensor<1x3x4x4xf32>
  %w = tensor.empty() : tensor<2x2xf32>
  %p = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%x, %w : tensor<1x3x8x8xf32>, tensor<2x2xf32>) outs(%z : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  return %p : tensor<1x3x4x4xf32>
})");
  ASSERT_EQ(graph.exprs().size(), 1u);
  EXPECT_EQ(whyNotEligible(graph.exprs()[0]), "a reduction over windows, as in pooling");
}

TEST_F(EligibilityTest, powers_of_integers_have_constant_exponents) {
  auto reason = [&](const std::string &exponent) {
    TensorGraph graph = parse(R"(
#id = affine_map<(i) -> (i)>
func.func @power(%x: tensor<7xi32>) -> tensor<7xi32> {
  %three = arith.constant 3 : i32
  %e = tensor.empty() : tensor<7xi32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<7xi32>) outs(%e : tensor<7xi32>) {
  ^bb0(%v: i32, %o: i32):
    %r = math.ipowi %v, )" + exponent +
                              R"( : i32
    linalg.yield %r : i32
  } -> tensor<7xi32>
  return %p : tensor<7xi32>
})");
    return whyNotEligible(graph.exprs()[0]);
  };
  EXPECT_EQ(reason("%three"), "");
  EXPECT_EQ(reason("%v"), "math.ipowi calls a function, unless its exponent is a constant");
}
} // namespace

// The number of bindings of a kernel, if tensors can share them.
#include "passes/graph/Bindings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tilewright;

namespace {

class BindingsTest : public ::testing::Test {
protected:
  BindingsTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, tensor::TensorDialect>();
    context.allowUnregisteredDialects();
    llvm::Expected<Target> known = lookupTarget("sm_80");
    target = *known;
    target.maxBindings = 2;
  }

  /// Returns the result of the last op in the body of a function of x : tensor<4xf32>.
  Value last(StringRef body) {
    std::string source = ("func.func @f(%x: tensor<4xf32>) { " + body + " return }").str();
    modules.push_back(parseSourceString<ModuleOp>(source, &context));
    auto function = *modules.back()->getOps<func::FuncOp>().begin();
    return function.getBody().front().getTerminator()->getPrevNode()->getResult(0);
  }

  Value parameter(StringRef type) {
    return last(("%w = \"util.global.load\"() <{global = @w}> : () -> " + type).str());
  }

  int64_t count(ArrayRef<Value> inputs, ArrayRef<Value> outputs, bool isPrivate = false) {
    return countBindings(inputs, outputs, [=](Value) { return isPrivate; }, target);
  }

  MLIRContext context;
  Target target;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(BindingsTest, tensors_have_their_own_while_there_are_enough) {
  Value w = parameter("tensor<4xf32>"), v = parameter("tensor<4xf32>");
  EXPECT_EQ(count({w, v}, {}), 2);
  EXPECT_EQ(count({w, v, parameter("tensor<2xf32>")}, {}), 1);
}

TEST_F(BindingsTest, weights_share_by_type_and_origin) {
  Value single = parameter("tensor<4xf32>"), half = parameter("tensor<3x5xf16>");
  Value constant = last("%c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>");
  EXPECT_EQ(count({single, parameter("tensor<7xf32>"), half, constant}, {}), 3);
  EXPECT_EQ(weightGroupOf(constant, target)->isConstant, true);
  EXPECT_EQ(weightGroupOf(single, target)->isConstant, false);
}

TEST_F(BindingsTest, what_a_mutable_global_holds_is_no_weight) {
  for (bool isMutable : {false, true}) {
    std::string global = isMutable ? ", is_mutable" : "";
    modules.push_back(parseSourceString<ModuleOp>(
        "\"util.global\"() <{sym_name = \"w\", type = tensor<4xf32>" + global + "}> : () -> ()\n" +
            "func.func @f() { %w = \"util.global.load\"() <{global = @w}> : () -> tensor<4xf32> return }",
        &context));
    func::FuncOp function = *modules.back()->getOps<func::FuncOp>().begin();
    EXPECT_EQ(weightGroupOf(function.getBody().front().front().getResult(0), target).has_value(), !isMutable);
  }
}

TEST_F(BindingsTest, constants_are_found_behind_reshapes) {
  Value view = last("%c = arith.constant dense<2.0> : tensor<6xf32> "
                    "%v = tensor.expand_shape %c [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>");
  ASSERT_TRUE(constantBehindViews(view));
  EXPECT_EQ(constantBehindViews(view).getNumElements(), 6);
}

TEST_F(BindingsTest, results_of_the_kernel_alone_share) {
  Value y = last("%y = \"some.op\"() : () -> tensor<4xf32>");
  EXPECT_EQ(count({}, {y, y, y}, /*isPrivate=*/true), 1);
  EXPECT_EQ(count({}, {y, y, y}, /*isPrivate=*/false), 3);
}

TEST_F(BindingsTest, what_is_no_weight_keeps_a_binding) {
  Value made = last("%y = \"some.op\"(%x) : (tensor<4xf32>) -> tensor<4xf32>");
  EXPECT_FALSE(weightGroupOf(made, target));
  EXPECT_FALSE(weightGroupOf(last("%c = arith.constant dense<1.0> : tensor<1024x1024xf32>"), target));
  // The file packs eight into a byte, memory has one per byte.
  EXPECT_FALSE(weightGroupOf(parameter("tensor<8xi1>"), target));
  EXPECT_EQ(count({made, made, made}, {}), 3);
}

TEST_F(BindingsTest, a_large_weight_is_not_stored_twice) {
  auto load = [](StringRef shape, StringRef readers) {
    return ("%w = \"util.global.load\"() <{global = @w}> : () -> tensor<" + shape + "> " + readers).str();
  };
  std::string two = "\"some.reader\"(%w) : (tensor<1024x1024xf32>) -> () "
                    "\"some.reader\"(%w) : (tensor<1024x1024xf32>) -> ()";
  auto weightOf = [&](const std::string &body) {
    std::string source = "func.func @f() { " + body + " return }";
    modules.push_back(parseSourceString<ModuleOp>(source, &context));
    return (*modules.back()->getOps<func::FuncOp>().begin()).getBody().front().front().getResult(0);
  };
  EXPECT_FALSE(weightGroupOf(weightOf(load("1024x1024xf32", two)), target));
  Target generous = target;
  generous.costs.gpu.repeatedWeightBytes = 4 * 1024 * 1024;
  EXPECT_TRUE(weightGroupOf(weightOf(load("1024x1024xf32", two)), generous));
  std::string one = "\"some.reader\"(%w) : (tensor<1024x1024xf32>) -> ()";
  EXPECT_TRUE(weightGroupOf(weightOf(load("1024x1024xf32", one)), target));
}

TEST_F(BindingsTest, processors_have_one_for_each_tensor) {
  llvm::Expected<Target> known = lookupTarget("x86-64-avx2");
  target = *known;
  target.maxBindings = 2;
  Value w = parameter("tensor<4xf32>");
  EXPECT_EQ(count({w, w, w}, {}), 3);
}

} // namespace

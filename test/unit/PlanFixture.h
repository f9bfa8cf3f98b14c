// Fixture for tests that plan small graphs, which are parsed from linalg sources into a TensorGraph.
#ifndef TILEWRIGHT_TEST_UNIT_PLANFIXTURE_H
#define TILEWRIGHT_TEST_UNIT_PLANFIXTURE_H

#include "dialects/tile/TileDialect.h"
#include "passes/Pipelines.h"
#include "passes/plan/tiling/FindIterationSpace.h"
#include "passes/plan/scopes/ChooseScopes.h"
#include "passes/plan/fusion/Explorers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace tilewright {

class PlanFixture : public ::testing::Test {
protected:
  PlanFixture() {
    registerBackends();
    context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::tensor::TensorDialect>();
    context.allowUnregisteredDialects();
    auto found = lookupTarget("x86-64-avx512");
    EXPECT_TRUE(static_cast<bool>(found));
    target = *found;
  }

  /// Returns the graph of the only function in `source`.
  TensorGraph parse(const std::string &source) {
    module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    return TensorGraph::build((*module->getOps<mlir::func::FuncOp>().begin()).getBody().front());
  }

  static llvm::SmallVector<unsigned> allOf(const TensorGraph &graph) {
    return llvm::to_vector(llvm::seq<unsigned>(0, graph.exprs().size()));
  }

  /// Returns the iteration space of all expressions as one group, with the scopes that the planner would choose.
  std::optional<IterationSpace> spaceOfAll(const TensorGraph &graph, std::string *reason = nullptr) {
    GroupChoice part;
    part.exprs = allOf(graph);
    for (auto &[edge, choice] : chooseScopes(graph, part.exprs, /*threadOnly=*/false, target))
      part.scopes[edge] = choice.scope;
    OrDeclined<IterationSpace> space = findIterationSpace(graph, part, target, NumericsMode::standard);
    if (reason)
      *reason = space.why().reason;
    return space ? std::optional(std::move(*space)) : std::nullopt;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Target target;
};

/// Softmax over the last axis, decomposed as front ends do.
inline const char *softmaxSource = R"(
func.func @softmax(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %low = arith.constant dense<0xFF800000> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<37x53xf32>) outs(%low : tensor<37xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<37xf32>) outs(%e : tensor<37x53xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %mb : tensor<37x53xf32>, tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %p = linalg.exp ins(%d : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<37x53xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<37xf32>) outs(%e : tensor<37x53xf32>) dimensions = [1]
  %y = linalg.div ins(%p, %sb : tensor<37x53xf32>, tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  return %y : tensor<37x53xf32>
})";

} // namespace tilewright

#endif

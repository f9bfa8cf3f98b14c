// Tests that a program can add a micro kernel to the compiler that it links, and compile with it.
#include "passes/Passes.h"
#include "passes/target/MicroKernel.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tilewright;

namespace {
const char *product = R"(
tile.program @product outputs 1 {
^bb0(%a: !tile.slice<6x19xf32, global>, %b: !tile.slice<19x16xf32, global>, %y: !tile.slice<6x16xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [6, 16, 19] sizes [6, 16, 19] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<6x16xf32, global>) at [affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>] inits [0.0 : f32]
        kinds ["add"] attributes {micro_kernel = "separate-2x1"} {
    ^bb0(%s: f32):
      %u = tile.load %a at affine_map<(m, n, k)[s0, s1, s2] -> (m, k)> : !tile.slice<6x19xf32, global> -> f32
      %v = tile.load %b at affine_map<(m, n, k)[s0, s1, s2] -> (k, n)> : !tile.slice<19x16xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
)";

TEST(MicroKernelRegistrationTest, code_generation_calls_the_step_in_the_blocks_it_asks_for) {
  MicroKernel kernel;
  kernel.name = "separate";
  kernel.types = {"f32", "f32", "f32"};
  kernel.speed = 0.1; // slow, so that it is used only where a plan names it
  kernel.block = {2, 1};
  kernel.step = [](ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
    return arith::AddFOp::create(builder, accumulators, arith::MulFOp::create(builder, lhs, rhs)).getResult();
  };
  ASSERT_EQ(registerMicroKernel(kernel), "");

  MLIRContext context;
  context.loadDialect<tile::TileDialect, arith::ArithDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(product, &context);
  ASSERT_TRUE(module);
  PassManager passes(&context);
  ConvertToVectorOptions options;
  options.target = "x86-64-avx2";
  passes.addPass(createConvertToVector(options));
  ASSERT_TRUE(succeeded(passes.run(*module)));
  int64_t products = 0, fused = 0;
  module->walk([&](arith::MulFOp op) { products += isa<VectorType>(op.getType()); });
  module->walk([&](math::FmaOp) { ++fused; });
  EXPECT_EQ(products, 2); // a block is two rows by one vector, in loops
  EXPECT_EQ(fused, 0);
}
} // namespace

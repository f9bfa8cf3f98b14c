// Tests register blocks (Chimera 5.B) and the registry of micro kernels.
#include "passes/target/MicroKernel.h"
#include "passes/target/Target.h"
#include "gtest/gtest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace tilewright;

namespace {
TEST(MicroKernelTest, blocks_of_x86) {
  RegisterBlock wide = registerBlock(32), narrow = registerBlock(16);
  EXPECT_EQ(wide.rows, 6);
  EXPECT_EQ(wide.vectors, 4);
  EXPECT_EQ(narrow.rows, 6);
  EXPECT_EQ(narrow.vectors, 2);
}

TEST(MicroKernelTest, blocks_leave_room_for_a_second_accumulator_of_each_vector) {
  RegisterBlock block = registerBlock(32, {/*perVector=*/2, /*fixed=*/2});
  EXPECT_EQ(block.rows, 4);
  EXPECT_EQ(block.vectors, 4);
}

TEST(MicroKernelTest, blocks_fit_and_no_other_does_more_for_each_load) {
  for (int64_t registers = 6; registers <= 64; ++registers)
    for (int64_t perVector : {1, 2}) {
      RegisterBlock block = registerBlock(registers, {perVector, 2});
      if (registers < 2 + 2 + perVector)
        continue; // too few even for two rows by one vector
      EXPECT_LE(block.vectors * (block.rows + perVector) + 2, registers);
      EXPECT_EQ(block.rows % 2, 0);
      for (int64_t rows = 2; rows < registers; rows += 2)
        for (int64_t vectors = 1; vectors * (rows + perVector) + 2 <= registers; vectors *= 2)
          EXPECT_LE(rows * vectors * (block.rows + block.vectors), block.rows * block.vectors * (rows + vectors));
    }
}

std::string chosen(const char *target, ProductTypes types, RhsLayout layout = {0},
                   NumericsMode numerics = NumericsMode::standard) {
  Target known = *lookupTarget(target);
  auto kernel = chooseMicroKernel(known, types, layout, numerics);
  return kernel ? kernel->label(known) : "none";
}

TEST(MicroKernelTest, the_quickest_that_the_processor_has_is_chosen) {
  ProductTypes floats{"f32", "f32", "f32"}, narrow{"bf16", "bf16", "f32"}, bytes{"ui8", "si8", "i32"};
  EXPECT_EQ(chosen("x86-64-avx512bf16", floats), "fma-6x4");
  EXPECT_EQ(chosen("x86-64-avx512bf16", narrow), "dpbf16-6x4");
  EXPECT_EQ(chosen("x86-64-avx512", narrow), "fma_pairs-6x4");
  EXPECT_EQ(chosen("x86-64-avx2", narrow), "fma_pairs-6x2");
  EXPECT_EQ(chosen("x86-64-avx512bf16", bytes), "vpdpbusd-6x4");
  EXPECT_EQ(chosen("x86-64-avx512", bytes), "pmaddwd-4x4");
  EXPECT_EQ(chosen("x86-64-v2", bytes), "pmaddwd-4x2");
}

TEST(MicroKernelTest, strict_numerics_take_no_kernel_that_flushes) {
  EXPECT_EQ(chosen("x86-64-avx512bf16", {"bf16", "bf16", "f32"}, {0}, NumericsMode::strict), "fma_pairs-6x4");
}

// Without instructions for pairs, unpacked rows of rhs are widened; packed pairs are read as pairs.
TEST(MicroKernelTest, the_layout_of_rhs_counts) {
  ProductTypes narrow{"bf16", "bf16", "f32"};
  EXPECT_EQ(chosen("x86-64-avx2", narrow, {1}), "fma-6x2");
  EXPECT_EQ(chosen("x86-64-avx2", narrow, {2}), "fma_pairs-6x2");
  EXPECT_EQ(chosen("x86-64-avx2", narrow, {4}), "none");
}

// A block is four tiles, however wide the vectors are. Integers are exact in any order.
TEST(MicroKernelTest, tiles_are_chosen_where_both_operands_can_be_loaded) {
  ProductTypes narrow{"bf16", "bf16", "f32"}, bytes{"ui8", "si8", "i32"};
  EXPECT_EQ(chosen("x86-64-amx", narrow, {2, /*tiles=*/true}), "amx_bf16-32x2");
  EXPECT_EQ(chosen("x86-64-amx", narrow, {2, /*tiles=*/false}), "dpbf16-6x4");
  EXPECT_EQ(chosen("x86-64-amx", narrow, {0, /*tiles=*/true}, NumericsMode::strict), "fma_pairs-6x4");
  EXPECT_EQ(chosen("x86-64-amx", bytes, {0, /*tiles=*/true}, NumericsMode::strict), "amx_int8-32x2");
  EXPECT_EQ(chosen("x86-64-avx512bf16", narrow, {0, /*tiles=*/true}), "dpbf16-6x4");
}

// If one micro kernel takes pairs of bf16, all others can read what was packed for it, so that variants share a weight.
TEST(MicroKernelTest, all_processors_have_one_depth) {
  for (const ProductTypes &types : {ProductTypes{"bf16", "bf16", "f32"}, ProductTypes{"si8", "si8", "i32"}})
    for (const char *target : {"x86-64-v2", "x86-64-avx2", "x86-64-avx512", "x86-64-avx512bf16"})
      EXPECT_EQ(chooseMicroKernel(*lookupTarget(target), types, {0}, NumericsMode::standard)->depth,
                types.accumulator == "f32" ? 2 : 4);
}

MicroKernel outsider() {
  MicroKernel kernel;
  kernel.name = "outsider";
  kernel.types = {"f32", "f32", "f32"};
  kernel.features = {"avx2"};
  kernel.step = [](mlir::ImplicitLocOpBuilder &builder, mlir::Value accumulators, mlir::Value lhs, mlir::Value rhs) {
    mlir::Value product = mlir::arith::MulFOp::create(builder, lhs, rhs);
    return mlir::arith::AddFOp::create(builder, accumulators, product).getResult();
  };
  return kernel;
}

TEST(MicroKernelTest, registered_ones_are_preferred_where_the_processor_has_their_features) {
  Target target = *lookupTarget("x86-64-avx2");
  target.microKernels.push_back(outsider());
  ProductTypes floats{"f32", "f32", "f32"};
  EXPECT_EQ(chooseMicroKernel(target, floats, {0}, NumericsMode::standard)->name, "outsider");
  EXPECT_EQ(findMicroKernel(target, floats, {0}, "fma-6x2")->name, "fma");
  target.features = "";
  EXPECT_EQ(chooseMicroKernel(target, floats, {0}, NumericsMode::standard)->name, "fma");
}

TEST(MicroKernelTest, what_is_no_kernel_is_not_registered) {
  MicroKernel kernel = outsider();
  kernel.depth = 3;
  EXPECT_EQ(registerMicroKernel(kernel), "micro kernel 'outsider': depth: expected 1, 2 or 4");
  kernel = outsider();
  kernel.step = nullptr;
  EXPECT_EQ(registerMicroKernel(kernel), "micro kernel 'outsider': body: missing");
}
} // namespace

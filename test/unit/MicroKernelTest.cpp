// Register blocks (Chimera 5.B).
#include "passes/target/MicroKernel.h"
#include "gtest/gtest.h"

using namespace tilewright;

namespace {
TEST(MicroKernelTest, blocks_of_x86) {
  RegisterBlock wide = registerBlock(32), narrow = registerBlock(16);
  EXPECT_EQ(wide.rows, 6);
  EXPECT_EQ(wide.vectors, 4);
  EXPECT_EQ(narrow.rows, 6);
  EXPECT_EQ(narrow.vectors, 2);
}

TEST(MicroKernelTest, blocks_fit_and_no_other_does_more_for_each_load) {
  for (int64_t registers = 6; registers <= 64; ++registers) {
    RegisterBlock block = registerBlock(registers);
    EXPECT_LE(block.rows * block.vectors + block.vectors + 2, registers);
    EXPECT_EQ(block.rows % 2, 0);
    for (int64_t rows = 2; rows < registers; rows += 2)
      for (int64_t vectors = 1; rows * vectors + vectors + 2 <= registers; ++vectors)
        EXPECT_LE(rows * vectors * (block.rows + block.vectors), block.rows * block.vectors * (rows + vectors));
  }
}
} // namespace

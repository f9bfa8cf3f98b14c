// Tiles of a reshaped tensor that have the same elements, which blocks can keep from one phase of a kernel to another.
#include "passes/plan/grid/ResidentTiles.h"

#include <gtest/gtest.h>
#include <random>

using namespace tilewright;
using Shape = llvm::SmallVector<int64_t>;

namespace {
/// Returns the linear index of every element, tile by tile, in the order in which blocks compute tiles.
std::vector<int64_t> elementsOf(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> tiles) {
  int64_t total = 1, tileTotal = 1;
  for (auto [extent, tile] : llvm::zip(shape, tiles)) {
    total *= extent;
    tileTotal *= tile;
  }
  std::vector<int64_t> elements;
  for (int64_t number = 0; number < total; ++number) {
    int64_t block = number / tileTotal, inside = number % tileTotal, linear = 0, stride = 1;
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      int64_t count = shape[dim] / tiles[dim];
      linear += (block % count * tiles[dim] + inside % tiles[dim]) * stride;
      block /= count;
      inside /= tiles[dim];
      stride *= shape[dim];
    }
    elements.push_back(linear);
  }
  return elements;
}

TEST(ResidentTiles, parts_of_images_are_rows_of_them) {
  // The partials of a two-phase reduction, and the op that normalizes.
  EXPECT_EQ(reshapedTiles({32, 4, 14, 56, 64}, {1, 1, 14, 56, 32}, {32, 56, 56, 64}), Shape({1, 14, 56, 32}));
  EXPECT_EQ(reshapedTiles({29, 1733}, {1, 1733}, {1, 50257}), Shape({1, 1733}));
  EXPECT_EQ(reshapedTiles({6, 10}, {2, 10}, {6, 2, 5}), Shape({2, 2, 5}));
}

TEST(ResidentTiles, tiles_that_are_no_boxes_of_the_other_shape_are_refused) {
  // Six elements are one and a half rows of four.
  EXPECT_EQ(reshapedTiles({4, 6}, {1, 6}, {6, 4}), std::nullopt);
  // Columns of one shape are strided in the other.
  EXPECT_EQ(reshapedTiles({4, 6}, {4, 3}, {24}), std::nullopt);
}

TEST(ResidentTiles, tiles_found_have_the_same_elements_block_by_block) {
  std::mt19937 random(7);
  auto pick = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    Shape factors, shape, tiles, reshaped;
    for (int64_t i = 1 + pick(5); i > 0; --i)
      factors.push_back(1 + pick(4));
    auto group = [&](Shape &into) {
      into = {1};
      for (int64_t factor : factors) {
        if (pick(2))
          into.push_back(1);
        into.back() *= factor;
      }
    };
    group(shape);
    group(reshaped);
    for (int64_t extent : shape) {
      int64_t tile = 1 + pick(extent);
      tiles.push_back(extent % tile == 0 ? tile : extent);
    }
    std::optional<Shape> alike = reshapedTiles(shape, tiles, reshaped);
    if (!alike)
      continue;
    ++found;
    EXPECT_EQ(elementsOf(shape, tiles), elementsOf(reshaped, *alike));
  }
  EXPECT_GT(found, 1000);
}

TEST(ResidentTiles, tiles_of_the_same_shape_are_their_own) {
  EXPECT_EQ(reshapedTiles({8, 1, 9}, {2, 1, 3}, {8, 1, 9}), Shape({2, 1, 3}));
}
} // namespace

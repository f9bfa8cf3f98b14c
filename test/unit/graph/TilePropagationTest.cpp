// Tests Welder's numbers, and compares tiles with the elements that every tile of a small graph really reads.
#include "passes/graph/TilePropagation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace tilewright;

namespace {

class TilePropagationTest : public ::testing::Test {
protected:
  TilePropagationTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                        tensor::TensorDialect>();
  }

  /// Returns the graph of the only function in `source`.
  TensorGraph parse(const std::string &source) {
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    return TensorGraph::build((*module->getOps<func::FuncOp>().begin()).getBody().front());
  }

  static TileGraph connectAll(const TensorGraph &graph) {
    TileGraph tiles(graph);
    for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
      tiles.setConnect(edge, 1);
    return tiles;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

const char *matmulSoftmax = R"(
func.func @matmul_softmax(%a: tensor<98304x64xf32>, %b: tensor<64x128xf32>) -> tensor<98304x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<98304x128xf32>
  %r = tensor.empty() : tensor<98304xf32>
  %c0 = linalg.fill ins(%zero : f32) outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<98304x64xf32>, tensor<64x128xf32>)
                     outs(%c0 : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%r : tensor<98304xf32>) -> tensor<98304xf32>
  %m = linalg.reduce { arith.maximumf } ins(%c : tensor<98304x128xf32>) outs(%m0 : tensor<98304xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<98304xf32>) outs(%e : tensor<98304x128xf32>) dimensions = [1]
  %d = linalg.sub ins(%c, %mb : tensor<98304x128xf32>, tensor<98304x128xf32>)
                  outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %x = linalg.exp ins(%d : tensor<98304x128xf32>) outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%r : tensor<98304xf32>) -> tensor<98304xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<98304x128xf32>) outs(%s0 : tensor<98304xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<98304xf32>) outs(%e : tensor<98304x128xf32>) dimensions = [1]
  %y = linalg.div ins(%x, %sb : tensor<98304x128xf32>, tensor<98304x128xf32>)
                  outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  return %y : tensor<98304x128xf32>
})";

TEST_F(TilePropagationTest, traffic_of_matmul_and_softmax_is_welders) {
  TensorGraph graph = parse(matmulSoftmax);
  TileGraph tiles = connectAll(graph);
  unsigned root = graph.exprs().size() - 1;
  TilePropagation narrow = propagate(tiles, root, {{4, 128}});
  EXPECT_EQ(narrow.numTiles, 24576);
  EXPECT_EQ(memTraffic(narrow), 24576 * (35 << 10)); // 840 MB
  EXPECT_EQ(memTraffic(narrow), 840 << 20);
  TilePropagation wide = propagate(tiles, root, {{16, 128}});
  EXPECT_EQ(memTraffic(wide), 264 << 20);
}

TEST_F(TilePropagationTest, unconnected_operators_move_their_intermediates) {
  TensorGraph graph = parse(matmulSoftmax);
  TileGraph apart(graph), together = connectAll(graph);
  int64_t separately = 0;
  for (unsigned expr = 0; expr < graph.exprs().size(); ++expr) {
    TilePropagation alone = propagate(apart, expr, {{16, 128}});
    EXPECT_EQ(alone.exprs.size(), 1u);
    separately += memTraffic(alone);
  }
  EXPECT_GT(separately, memTraffic(propagate(together, graph.exprs().size() - 1, {{16, 128}})));
}

TEST_F(TilePropagationTest, subgraphs_are_joined_above_a_level) {
  TensorGraph graph = parse(R"(
func.func @chain(%a: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %0 = linalg.exp ins(%a : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %1 = linalg.sqrt ins(%0 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %2 = linalg.log ins(%1 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
})");
  TileGraph tiles(graph);
  tiles.setConnect(0, 2);
  tiles.setConnect(1, 1);
  EXPECT_EQ(tiles.subgraph(0, 0), (std::vector<unsigned>{0, 1, 2}));
  EXPECT_EQ(tiles.subgraph(0, 1), (std::vector<unsigned>{0, 1}));
  EXPECT_EQ(tiles.subgraph(2, 1), (std::vector<unsigned>{2}));
  EXPECT_EQ(tiles.subgraph(0, 2), (std::vector<unsigned>{0}));
  // Cut above level 1, the middle tile is written.
  EXPECT_EQ(memTraffic(propagate(tiles, 1, {{2, 8}, 0, 1})), 2 * 6 * 8 * 4);
}

TEST_F(TilePropagationTest, larger_tiles_never_move_more_nor_need_less) {
  TensorGraph graph = parse(matmulSoftmax);
  TileGraph tiles = connectAll(graph);
  int64_t traffic = std::numeric_limits<int64_t>::max(), footprint = 0;
  for (int64_t rows = 1; rows <= 4096; rows *= 2) {
    TilePropagation result = propagate(tiles, graph.exprs().size() - 1, {{rows, 128}});
    EXPECT_LE(memTraffic(result), traffic);
    EXPECT_GE(memFootprint(result), footprint);
    traffic = memTraffic(result);
    footprint = memFootprint(result);
  }
}

TEST_F(TilePropagationTest, reduction_tiles_shrink_the_footprint_and_not_the_traffic) {
  TensorGraph graph = parse(matmulSoftmax);
  TileGraph tiles = connectAll(graph);
  unsigned root = graph.exprs().size() - 1;
  TilePropagation whole = propagate(tiles, root, {{16, 128}}), stepped = propagate(tiles, root, {{16, 128}, 8});
  EXPECT_EQ(memTraffic(whole), memTraffic(stepped));
  EXPECT_LT(memFootprint(stepped), memFootprint(whole));
}

/// Returns the elements of the only input that the tile at `origin` of the chain's result reads, by enumeration.
std::set<std::vector<int64_t>> readBy(const TensorGraph &graph, ArrayRef<int64_t> origin, ArrayRef<int64_t> tile,
                                      ArrayRef<int64_t> shape) {
  std::set<std::vector<int64_t>> points;
  std::vector<int64_t> at(origin.begin(), origin.end());
  while (true) {
    points.insert(at);
    size_t dim = 0;
    while (dim < at.size() && ++at[dim] == std::min(origin[dim] + tile[dim], shape[dim])) {
      at[dim] = origin[dim];
      ++dim;
    }
    if (dim == at.size())
      break;
  }
  for (const TensorExpr &expr : llvm::reverse(graph.exprs())) {
    std::set<std::vector<int64_t>> read;
    for (const std::vector<int64_t> &point : points) {
      SmallVector<int64_t> index = expr.inputs[0].map.compose(point);
      read.insert(std::vector<int64_t>(index.begin(), index.end()));
    }
    points = std::move(read);
  }
  return points;
}

TEST_F(TilePropagationTest, tiles_bound_what_every_tile_reads) {
  TensorGraph graph = parse(R"(
func.func @chain(%a: tensor<6x20x7xf32>) -> tensor<5x6x28xf32> {
  %s = tensor.extract_slice %a[0, 1, 0] [6, 10, 7] [1, 2, 1] : tensor<6x20x7xf32> to tensor<6x10x7xf32>
  %c = tensor.collapse_shape %s [[0, 1, 2]] : tensor<6x10x7xf32> into tensor<420xf32>
  %x = tensor.expand_shape %c [[0, 1, 2]] output_shape [6, 5, 14] : tensor<420xf32> into tensor<6x5x14xf32>
  %e = tensor.empty() : tensor<5x6x14xf32>
  %t = linalg.transpose ins(%x : tensor<6x5x14xf32>) outs(%e : tensor<5x6x14xf32>) permutation = [1, 0, 2]
  %f = tensor.empty() : tensor<5x6x28xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k floordiv 2)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<5x6x14xf32>) outs(%f : tensor<5x6x28xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<5x6x28xf32>
  return %b : tensor<5x6x28xf32>
})");
  ASSERT_EQ(graph.exprs().size(), 5u);
  TileGraph tiles = connectAll(graph);
  std::vector<int64_t> shape = {5, 6, 28};
  for (std::vector<int64_t> tile :
       std::vector<std::vector<int64_t>>{{1, 1, 1}, {5, 6, 28}, {2, 3, 5}, {1, 2, 8}, {3, 1, 28}, {5, 1, 14}}) {
    TilePropagation result = propagate(tiles, 4, {tile});
    const TensorTile &input = result.tensors[0];
    ASSERT_EQ(input.role, TileRole::input);
    for (int64_t i = 0; i < 5; i += tile[0])
      for (int64_t j = 0; j < 6; j += tile[1])
        for (int64_t k = 0; k < 28; k += tile[2]) {
          std::set<std::vector<int64_t>> read = readBy(graph, {i, j, k}, tile, shape);
          for (unsigned dim = 0; dim < 3; ++dim) {
            int64_t low = std::numeric_limits<int64_t>::max(), high = 0;
            for (const std::vector<int64_t> &point : read) {
              low = std::min(low, point[dim]);
              high = std::max(high, point[dim]);
            }
            ASSERT_LE(high - low + 1, input.shape[dim]) << "dim " << dim << " of tile " << i << " " << j << " " << k;
          }
        }
  }
}

TEST_F(TilePropagationTest, footprint_reuses_the_space_of_dead_tiles) {
  TensorGraph graph = parse(R"(
func.func @chain(%a: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %e = tensor.empty() : tensor<64x8xf32>
  %0 = linalg.exp ins(%a : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  %1 = linalg.sqrt ins(%0 : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  %2 = linalg.log ins(%1 : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %2 : tensor<64x8xf32>
})");
  TileGraph tiles = connectAll(graph);
  // At most one source and one result are live at once.
  EXPECT_EQ(memFootprint(propagate(tiles, 2, {{4, 8}})), 2 * 4 * 8 * 4);
}
} // namespace

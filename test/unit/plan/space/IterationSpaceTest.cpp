// Iteration spaces: which dims of different roots are the same dim, which of them independent workgroups may walk, and
// how they are tiled. Sizes are odd and distinct, so that swapped dims show.
#include "passes/plan/tiling/FindIterationSpace.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class IterationSpaceTest : public PlanFixture {
protected:
  using Dims = std::vector<int64_t>;
  static Dims dimsOf(const IterationSpace &space, unsigned expr) {
    const GroupRoot &root = space.root(expr);
    return Dims(root.dims.begin(), root.dims.end());
  }
  static std::vector<unsigned> rootsOf(const IterationSpace &space) {
    std::vector<unsigned> roots;
    for (const GroupRoot &root : space.roots)
      roots.push_back(root.expr);
    return roots;
  }
};

// Rows are the grid. The reduced dims of both reductions and the columns of the result are the same dim.
TEST_F(IterationSpaceTest, softmax_walks_rows) {
  TensorGraph graph = parse(softmaxSource);
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  EXPECT_EQ(rootsOf(*space), (std::vector<unsigned>{0, 3, 4, 6})) << "max, exp, sum, div";
  EXPECT_EQ(space->extents, (Dims{37, 53}));
  EXPECT_EQ(space->grid, Dims{0});
  EXPECT_EQ(space->vector, 1);
  for (unsigned root : {0u, 3u, 4u, 6u})
    EXPECT_EQ(dimsOf(*space, root), (Dims{0, 1}));
  EXPECT_EQ(space->root(3).nest, space->root(4).nest) << "the sum takes exp from a register";
  EXPECT_LT(space->root(0).nest, space->root(3).nest);
}

// The statistics are collapsed and broadcast in between, as front ends emit them. The space stays two-dimensional.
TEST_F(IterationSpaceTest, reshapes_between_roots_vanish) {
  TensorGraph graph = parse(R"(
func.func @center(%x: tensor<1x37x53xf32>) -> tensor<1x37x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x37x1xf32>
  %e = tensor.empty() : tensor<1x37x53xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, 0)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x37x53xf32>) outs(%zero : tensor<1x37x1xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %r = arith.addf %in, %acc : f32
    linalg.yield %r : f32
  } -> tensor<1x37x1xf32>
  %c = tensor.collapse_shape %s [[0], [1, 2]] : tensor<1x37x1xf32> into tensor<1x37xf32>
  %b = linalg.broadcast ins(%c : tensor<1x37xf32>) outs(%e : tensor<1x37x53xf32>) dimensions = [2]
  %y = linalg.sub ins(%x, %b : tensor<1x37x53xf32>, tensor<1x37x53xf32>)
                  outs(%e : tensor<1x37x53xf32>) -> tensor<1x37x53xf32>
  return %y : tensor<1x37x53xf32>
})");
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->extents, (Dims{37, 53}));
  EXPECT_EQ(dimsOf(*space, 0), (Dims{-1, 0, 1})) << "a dim of one point has no place";
  EXPECT_EQ(dimsOf(*space, 3), (Dims{-1, 0, 1}));
  EXPECT_EQ(space->grid, Dims{0});
}

// exp(x) + exp(x)^T through a buffer: tiles of rows need each other, so no dim is in the grid.
const char *selfTransposed = R"(
func.func @self_transposed(%x: tensor<41x41xf32>) -> tensor<41x41xf32> {
  %e = tensor.empty() : tensor<41x41xf32>
  %a = linalg.exp ins(%x : tensor<41x41xf32>) outs(%e : tensor<41x41xf32>) -> tensor<41x41xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>,
                                        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %a : tensor<41x41xf32>, tensor<41x41xf32>) outs(%e : tensor<41x41xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %r = arith.addf %u, %v : f32
    linalg.yield %r : f32
  } -> tensor<41x41xf32>
  return %y : tensor<41x41xf32>
})";

TEST_F(IterationSpaceTest, transposed_access_to_itself_keeps_the_tensor_resident) {
  TensorGraph graph = parse(selfTransposed);
  GroupChoice part;
  part.exprs = allOf(graph);
  for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
    part.scopes[edge] = tile::Scope::block;
  OrDeclined<IterationSpace> space = findIterationSpace(graph, part, target, NumericsMode::standard);
  ASSERT_TRUE(space);
  EXPECT_TRUE(space->grid.empty());
  EXPECT_EQ(space->extents, (Dims{41, 41})) << "two dims of one root are never one";
}

TEST_F(IterationSpaceTest, transposed_access_in_registers_walks_both_dims) {
  TensorGraph graph = parse(selfTransposed);
  GroupChoice part;
  part.exprs = allOf(graph);
  for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
    part.scopes[edge] = tile::Scope::thread;
  OrDeclined<IterationSpace> space = findIterationSpace(graph, part, target, NumericsMode::standard);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->grid, (Dims{0, 1}));
  ASSERT_EQ(space->roots.size(), 1u);
  EXPECT_EQ(space->roots[0].accesses.size(), 2u) << "x and its transpose";
}

// Sums over rows and over columns of one tensor: each dim is reduced by some root.
TEST_F(IterationSpaceTest, reductions_over_different_axes_leave_no_grid) {
  TensorGraph graph = parse(R"(
func.func @axes(%x: tensor<37x53xf32>) -> (tensor<37xf32>, tensor<53xf32>) {
  %r0 = arith.constant dense<0.0> : tensor<37xf32>
  %c0 = arith.constant dense<0.0> : tensor<53xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<37x53xf32>) outs(%r0 : tensor<37xf32>) dimensions = [1]
  %c = linalg.reduce { arith.addf } ins(%x : tensor<37x53xf32>) outs(%c0 : tensor<53xf32>) dimensions = [0]
  return %r, %c : tensor<37xf32>, tensor<53xf32>
})");
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->extents, (Dims{37, 53})) << "they read x at the same index, so they share its dims";
  EXPECT_TRUE(space->grid.empty());
  EXPECT_EQ(space->workgroups, 1);
}

// A grid dim beside a reduced one is cut into a few vectors: 768 columns become three tiles of 256.
TEST_F(IterationSpaceTest, vector_dim_beside_a_reduced_one_is_cut) {
  TensorGraph graph = parse(R"(
func.func @columns(%x: tensor<16x197x768xf32>) -> tensor<16x768xf32> {
  %z = arith.constant dense<0.0> : tensor<16x768xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<16x197x768xf32>) outs(%z : tensor<16x768xf32>) dimensions = [1]
  return %s : tensor<16x768xf32>
})");
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->extents[space->vector], 768);
  EXPECT_EQ(space->grid.size(), 2u);
  EXPECT_EQ(space->tiles[space->vector], 256);
}

TEST_F(IterationSpaceTest, unrelated_expressions_share_no_space) {
  TensorGraph graph = parse(R"(
func.func @unrelated(%x: tensor<37xf32>, %y: tensor<53xf32>) -> (tensor<37xf32>, tensor<53xf32>) {
  %e = tensor.empty() : tensor<37xf32>
  %f = tensor.empty() : tensor<53xf32>
  %a = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %b = linalg.exp ins(%y : tensor<53xf32>) outs(%f : tensor<53xf32>) -> tensor<53xf32>
  return %a, %b : tensor<37xf32>, tensor<53xf32>
})");
  std::string reason;
  EXPECT_FALSE(spaceOfAll(graph, &reason));
  EXPECT_EQ(reason, "the group falls into components that share neither edges nor inputs");
}

TEST_F(IterationSpaceTest, footprint_beyond_the_target_is_refused) {
  TensorGraph graph = parse(softmaxSource);
  target.blockBytes = 100;
  std::string reason;
  EXPECT_FALSE(spaceOfAll(graph, &reason));
  EXPECT_NE(reason.find("the target has 100"), std::string::npos) << reason;
}

// The reason names the longest rows that would fit, and rows of that length do.
TEST_F(IterationSpaceTest, rows_that_would_fit_are_named) {
  auto softmaxOf = [](const std::string &columns) {
    std::string source = softmaxSource;
    for (size_t at = 0; (at = source.find("x53x", at)) != std::string::npos;)
      source.replace(at + 1, 2, columns);
    return source;
  };
  target.blockBytes = 8192;
  TensorGraph graph = parse(softmaxOf("4099"));
  GroupChoice group;
  group.exprs = allOf(graph);
  for (auto &[edge, choice] : chooseScopes(graph, group.exprs, /*threadOnly=*/false, target))
    group.scopes[edge] = choice.scope;
  OrDeclined<IterationSpace> space = findIterationSpace(graph, group, target, NumericsMode::standard);
  ASSERT_FALSE(space);
  llvm::StringRef why = space.why().wouldChange;
  ASSERT_TRUE(why.consume_front("rows of at most about ")) << why.str();
  auto [rows, rest] = why.split(' ');
  EXPECT_TRUE(rest.starts_with("points in place of 4099, or ")) << rest.str();
  graph = parse(softmaxOf(rows.str()));
  EXPECT_TRUE(spaceOfAll(graph)) << rows.str();
  graph = parse(softmaxOf(std::to_string(2 * std::stoi(rows.str()))));
  EXPECT_FALSE(spaceOfAll(graph));
}

// The plan names inputs that several nests read, and inputs that every tile reads.
TEST_F(IterationSpaceTest, staged_inputs_are_named) {
  TensorGraph graph = parse(R"(
func.func @scaled(%x: tensor<512x768xf32>, %g: tensor<768xf32>) -> tensor<512x768xf32> {
  %z = arith.constant dense<0.0> : tensor<512xf32>
  %e = tensor.empty() : tensor<512x768xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<512x768xf32>) outs(%z : tensor<512xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<512xf32>) outs(%e : tensor<512x768xf32>) dimensions = [1]
  %gb = linalg.broadcast ins(%g : tensor<768xf32>) outs(%e : tensor<512x768xf32>) dimensions = [0]
  %a = linalg.sub ins(%x, %sb : tensor<512x768xf32>, tensor<512x768xf32>)
                  outs(%e : tensor<512x768xf32>) -> tensor<512x768xf32>
  %y = linalg.mul ins(%a, %gb : tensor<512x768xf32>, tensor<512x768xf32>)
                  outs(%e : tensor<512x768xf32>) -> tensor<512x768xf32>
  return %y : tensor<512x768xf32>
})");
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  Block &body = (*module->getOps<func::FuncOp>().begin()).getBody().front();
  EXPECT_EQ(space->tileStaged, std::vector<Value>{body.getArgument(0)});
  EXPECT_EQ(space->workgroupStaged, std::vector<Value>{body.getArgument(1)});
}

// The loop over heads would read the row's table once per head. The lowering buffers it for the tile, and the plan
// counts the buffer.
TEST_F(IterationSpaceTest, what_a_nest_reads_again_takes_shared_memory) {
  const char *source = R"(
func.func @largest(%x: tensor<512x8x64xf32>, %table: tensor<512x64xf32>) -> tensor<512xf32> {
  %least = arith.constant dense<0xFF800000> : tensor<512xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, h, j) -> (i, h, j)>, affine_map<(i, h, j) -> (i, j)>,
                                        affine_map<(i, h, j) -> (i)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %table : tensor<512x8x64xf32>, tensor<512x64xf32>) outs(%least : tensor<512xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.maximumf %p, %acc : f32
    linalg.yield %r : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
})";
  TensorGraph graph = parse(source);
  target = *lookupTarget("cuda:h200");
  std::string reason;
  std::optional<IterationSpace> space = spaceOfAll(graph, &reason);
  ASSERT_TRUE(space) << reason;
  EXPECT_EQ(space->tiles, (Dims{4, 8, 64}));
  EXPECT_EQ(space->footprintBytes, 4 * 64 * 4);
}

// Every tiling covers the space and leaves no workgroup idle, whatever the shape.
TEST_F(IterationSpaceTest, tiles_fit_for_many_shapes) {
  for (int64_t rows : {1, 3, 64, 513, 4097})
    for (int64_t columns : {1, 2, 63, 64, 65, 1000, 50257}) {
      std::string type = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
      TensorGraph graph = parse("func.func @f(%x: " + type + ") -> " + type + " {\n  %e = tensor.empty() : " + type +
                                "\n  %y = linalg.exp ins(%x : " + type + ") outs(%e : " + type + ") -> " + type +
                                "\n  return %y : " + type + "\n}");
      std::optional<IterationSpace> space = spaceOfAll(graph);
      ASSERT_TRUE(space) << type;
      ASSERT_EQ(space->tiles.size(), space->extents.size());
      for (size_t dim = 0; dim < space->tiles.size(); ++dim) {
        EXPECT_GE(space->tiles[dim], 1);
        EXPECT_LE(space->tiles[dim], space->extents[dim]) << type;
      }
      EXPECT_GE(space->workgroups, 1);
      EXPECT_LE(space->workgroups, space->numTiles()) << type;
      EXPECT_LE(space->footprintBytes, target.blockBytes) << type;
    }
}
// Chimera's chain with keys as rows: rows of scores are the grid, and batches are outside of them. The transposed key
// does not have the row dim, so tiles along it keep the key. The key is recomputed at most once for each further
// workgroup.
TEST_F(IterationSpaceTest, operands_are_kept_for_the_tiles_that_share_them) {
  TensorGraph graph = parse(R"(
func.func @chain(%q: tensor<3x370x19xf32>, %k: tensor<3x530x19xf32>, %v: tensor<3x530x17xf32>) -> tensor<3x370x17xf32> {
  %t0 = tensor.empty() : tensor<3x19x530xf32>
  %s0 = arith.constant dense<0.0> : tensor<3x370x530xf32>
  %o0 = arith.constant dense<0.0> : tensor<3x370x17xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(b, k, j) -> (b, j, k)>, affine_map<(b, k, j) -> (b, k, j)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<3x530x19xf32>) outs(%t0 : tensor<3x19x530xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x19x530xf32>
  %s = linalg.batch_matmul ins(%q, %t : tensor<3x370x19xf32>, tensor<3x19x530xf32>) outs(%s0 : tensor<3x370x530xf32>)
      -> tensor<3x370x530xf32>
  %o = linalg.batch_matmul ins(%s, %v : tensor<3x370x530xf32>, tensor<3x530x17xf32>) outs(%o0 : tensor<3x370x17xf32>)
      -> tensor<3x370x17xf32>
  return %o : tensor<3x370x17xf32>
})");
  std::optional<IterationSpace> space = spaceOfAll(graph);
  ASSERT_TRUE(space);
  EXPECT_EQ(rootsOf(*space), (std::vector<unsigned>{0, 1, 2})) << "the key is laid out at block scope";
  ASSERT_EQ(space->grid.size(), 2u);
  EXPECT_EQ(space->extents[space->grid[0]], 3) << "batches outside of";
  EXPECT_EQ(space->extents[space->grid[1]], 370) << "rows";
  EXPECT_EQ(space->keptAlong(space->root(0)), 1);
  EXPECT_EQ(space->keptAlong(space->root(1)), 0);
  EXPECT_EQ(space->timesComputed(space->root(1)), 1);
  space->tiles[space->grid[1]] = 37;
  space->workgroups = 4;
  EXPECT_EQ(space->timesComputed(space->root(0)), (3 + 4 - 1) / 3.0);
}

} // namespace

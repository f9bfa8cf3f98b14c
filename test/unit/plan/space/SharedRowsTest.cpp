// Rows that several blocks share: which dims may be cut, and how many barriers the blocks wait at.
#include "passes/plan/space/SharedRows.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// A product, and its rows divided by a sum behind their mean: ops 0 (product), 1 (sum), 2 (mean), 3
/// (difference), 4 (square), 5 (sum of `summed`), 6 (quotient).
std::string normSource(const std::string &summed) {
  std::string at = "affine_map<(i, j) -> (i, j)>", row = "affine_map<(i, j) -> (i)>",
              sum = " outs(%z : tensor<37xf32>) { ^bb0(%in: f32, %acc: f32): %r = arith.addf %in, %acc : f32 "
                    "linalg.yield %r : f32 } -> tensor<37xf32>\n",
              reduce = "linalg.generic {indexing_maps = [" + at + ", " + row +
                       R"(], iterator_types = ["parallel", "reduction"]} ins()";
  return R"(
func.func @norm(%x: tensor<37x64xf16>, %w: tensor<64x160xf16>) -> tensor<37x160xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<37x160xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<37x160xf32>) -> tensor<37x160xf32>
  %rows = tensor.empty() : tensor<37xf32>
  %z = linalg.fill ins(%zero : f32) outs(%rows : tensor<37xf32>) -> tensor<37xf32>
  %p = linalg.matmul ins(%x, %w : tensor<37x64xf16>, tensor<64x160xf16>)
                     outs(%f : tensor<37x160xf32>) -> tensor<37x160xf32>
  %s = )" + reduce + "%p : tensor<37x160xf32>)" + sum + R"(
  %m = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<37xf32>) outs(%rows : tensor<37xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.constant 0.00625 : f32
    %v = arith.mulf %in, %c : f32
    linalg.yield %v : f32
  } -> tensor<37xf32>
  %d = linalg.generic {indexing_maps = [)" + at + ", " + row + ", " + at + R"(],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %m : tensor<37x160xf32>, tensor<37xf32>) outs(%e : tensor<37x160xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<37x160xf32>
  %q = linalg.generic {indexing_maps = [)" + at + ", " + at + R"(],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<37x160xf32>) outs(%e : tensor<37x160xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<37x160xf32>
  %t = )" + reduce + summed + " : tensor<37x160xf32>)" + sum + R"(
  %y = linalg.generic {indexing_maps = [)" + at + ", " + row + ", " + at + R"(],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d, %t : tensor<37x160xf32>, tensor<37xf32>) outs(%e : tensor<37x160xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<37x160xf32>
  return %y : tensor<37x160xf32>
})";
}

class SharedRowsTest : public PlanFixture {
protected:
  SharedRowsTest() {
    auto found = lookupTarget("cuda:h200");
    EXPECT_TRUE(static_cast<bool>(found));
    target = *found;
  }

  /// Returns the space of all ops as one group whose blocks may share rows, with tiles of `columns` columns.
  IterationSpace spaceWith(const TensorGraph &graph, int64_t columns, RowPlacement rows = RowPlacement::shared) {
    GroupProblem problem(graph, target, NumericsMode::standard);
    OrDeclined<PlannedGroup> group = rows == RowPlacement::shared ? planGroupSharingRows(problem, allOf(graph))
                                                                  : planGroup(problem, allOf(graph));
    EXPECT_TRUE(static_cast<bool>(group)) << group.why().reason;
    IterationSpace space = group->space;
    space.tiles[space.root(0).dims[1]] = columns;
    return space;
  }
};

TEST_F(SharedRowsTest, the_columns_of_a_product_are_in_the_grid_although_they_are_reduced) {
  TensorGraph graph = parse(normSource("%q"));
  IterationSpace shared = spaceWith(graph, 40), whole = spaceWith(graph, 160, RowPlacement::whole);
  int64_t columns = shared.root(0).dims[1];
  EXPECT_TRUE(llvm::is_contained(shared.grid, columns));
  EXPECT_FALSE(llvm::is_contained(whole.grid, whole.root(0).dims[1]));
  EXPECT_EQ(rowExchanges(graph, whole), 0);
}

TEST_F(SharedRowsTest, a_variance_shares_the_barrier_of_its_mean_if_all_parts_are_equal) {
  TensorGraph graph = parse(normSource("%q"));
  IterationSpace equal = spaceWith(graph, 40), unequal = spaceWith(graph, 48);
  EXPECT_EQ(rowExchanges(graph, equal), 1);
  EXPECT_TRUE(sharesBarrierOfMean(graph, equal, equal.root(5)));
  EXPECT_FALSE(sharesBarrierOfMean(graph, equal, equal.root(1))) << "the mean's own sum";
  EXPECT_EQ(rowExchanges(graph, unequal), 2);
}

TEST_F(SharedRowsTest, a_sum_of_other_values_behind_a_sum_has_a_barrier_of_its_own) {
  TensorGraph graph = parse(normSource("%d"));
  EXPECT_EQ(rowExchanges(graph, spaceWith(graph, 40)), 2);
}

TEST_F(SharedRowsTest, whole_tiles_of_rows_need_no_barrier) {
  TensorGraph graph = parse(normSource("%q"));
  EXPECT_EQ(rowExchanges(graph, spaceWith(graph, 160)), 0);
}

} // namespace

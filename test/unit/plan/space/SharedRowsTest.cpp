// Rows that several blocks share: which dims may be cut, and how many barriers the blocks wait at.
#include "passes/plan/space/SharedRows.h"
#include "test/unit/PlanFixture.h"
#include "test/unit/plan/space/NormalisedProduct.h"

using namespace mlir;
using namespace tilewright;

namespace {

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

TEST_F(SharedRowsTest, rows_whose_sum_is_a_result_stay_whole) {
  TensorGraph graph = parse(returningSum(normSource("%q")));
  IterationSpace space = spaceWith(graph, 160);
  EXPECT_FALSE(llvm::is_contained(space.grid, space.root(0).dims[1]));
}

TEST_F(SharedRowsTest, whole_tiles_of_rows_need_no_barrier) {
  TensorGraph graph = parse(normSource("%q"));
  EXPECT_EQ(rowExchanges(graph, spaceWith(graph, 160)), 0);
}

} // namespace

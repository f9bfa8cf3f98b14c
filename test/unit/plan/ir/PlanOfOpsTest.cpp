// Tests of the part of a plan that is about some ops.
#include "passes/plan/fusion/Outline.h"
#include "passes/plan/ir/PlanOfOps.h"
#include "test/unit/plan/ir/PlanTest.h"

using namespace mlir;
using namespace tilewright;

namespace {
class PlanOfOpsTest : public PlanTest {};

/// Returns the plan that gives each op a kernel.
Plan unfusedPlan(const TensorGraph &graph, const Target &target) {
  PlanOptions options;
  options.policy = "unfused";
  return *makePlan(graph, target, options);
}

TEST_F(PlanOfOpsTest, is_legal_for_a_function_of_the_ops) {
  Plan plan = unfusedPlan(*graph, target);
  std::vector<unsigned> ops = {sub, exp, sum};
  Plan own = planOfOps(plan, ops);
  OwningOpRef<ModuleOp> function = outline(*graph, ops);
  TensorGraph inner = TensorGraph::build((*function->getOps<func::FuncOp>().begin()).getBody().front());
  EXPECT_EQ(own.verify(inner), "");
  EXPECT_EQ(own.kernels.size(), 3u);
  EXPECT_EQ(own.edges.size(), 2u);
}

TEST_F(PlanOfOpsTest, of_all_ops_is_the_plan) {
  std::vector<unsigned> all = {max, maxRow, sub, exp, sum, sumRow, div};
  EXPECT_EQ(json(planOfOps(plan, all)), json(plan));
}
} // namespace

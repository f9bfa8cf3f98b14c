// Fixture for tests of plans as data: the plan of a softmax, its parts, and what its verifier says.
#ifndef TILEWRIGHT_UNIT_PLAN_IR_PLANTEST_H
#define TILEWRIGHT_UNIT_PLAN_IR_PLANTEST_H

#include "test/unit/PlanFixture.h"

namespace tilewright {

class PlanTest : public PlanFixture {
protected:
  void SetUp() override {
    graph = std::make_unique<TensorGraph>(parse(softmaxSource));
    plan = *makePlan(*graph, target);
    ASSERT_EQ(plan.verify(*graph), "");
    ASSERT_EQ(plan.kernels.size(), 1u);
  }

  std::string json(const Plan &of) { return llvm::formatv("{0:2}", toJson(of)).str(); }

  std::string readError(llvm::StringRef text) {
    llvm::Expected<Plan> read = planFromJson(cantFail(llvm::json::parse(text)));
    return read ? "no error" : llvm::toString(read.takeError());
  }

  GroupPlan &part() { return plan.kernels[0].groups[0]; }
  OpPlan &op(unsigned id) {
    return *llvm::find_if(part().ops, [&](const OpPlan &entry) { return entry.id == id; });
  }
  EdgePlan &edge(unsigned consumer, unsigned input) {
    return *llvm::find_if(plan.edges,
                          [&](const EdgePlan &entry) { return entry.consumer == consumer && entry.input == input; });
  }
  void expectIllegal(llvm::StringRef why) {
    std::string found = plan.verify(*graph);
    EXPECT_NE(found.find(why.str()), std::string::npos) << "found: " << found;
  }

  // The expressions of softmax, in program order.
  enum : unsigned { max, maxRow, sub, exp, sum, sumRow, div };
  std::unique_ptr<TensorGraph> graph;
  Plan plan;
};

} // namespace tilewright

#endif

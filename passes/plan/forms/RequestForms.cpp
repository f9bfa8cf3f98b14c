// Requests the forms of a plan from a file, so that the passes that offer them choose as the plan does.
#include "passes/Passes.h"
#include "passes/plan/ir/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_REQUESTFORMS
#include "passes/Passes.h.inc"

namespace {
struct RequestForms : impl::RequestFormsBase<RequestForms> {
  using RequestFormsBase::RequestFormsBase;

  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<tile::TileDialect>(); }

  void runOnOperation() override {
    if (planIn.empty())
      return;
    llvm::Expected<Plan> plan = readPlan(planIn);
    if (!plan) {
      getOperation().emitError(llvm::toString(plan.takeError()));
      return signalPassFailure();
    }
    for (FormChoice &form : plan->forms) {
      form.seconds = form.otherwiseSeconds = 0; // a rule may have predicted them for another graph
      form.reason = "the given plan says so";
      form.wouldChange = "another plan";
    }
    if (!plan->forms.empty())
      for (auto function : getOperation().getOps<func::FuncOp>())
        requestForms(function, plan->forms);
  }
};
} // namespace
} // namespace tilewright

// Chooses forms by the plans of the graphs that they give, for policies that search. A trial is a copy of the module,
// nested in it, that goes through all passes that offer forms.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/backend/Backend.h"
#include "passes/backend/KernelOptions.h"
#include "passes/normalize/layers/LayersAtOnce.h"
#include "passes/plan/forms/FormSearch.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/fusion/PlannerStep.h"
#include "passes/plan/ir/PlanLoops.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SEARCHFORMS
#include "passes/Passes.h.inc"

namespace {
/// Ops that a second suffices to normalise and to plan, at least: six trials of bert-small, of 235 ops, took 1.7 s for
/// an H200 on a shared AMD Zen 3 with AVX2 (2026-11-30).
constexpr double kTriedPerSecond = 500;

class SearchForms : public impl::SearchFormsBase<SearchForms> {
public:
  using SearchFormsBase::SearchFormsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<tile::TileDialect, arith::ArithDialect, linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
  }

private:
  /// Returns the score of a function that is normalised, all steps of its loops included.
  OrDeclined<PlanScore> scoreOfFunction(func::FuncOp function, const Target &machine, StringRef by) {
    PlanScore sum;
    for (const BlockGraph &block : graphsOf(function)) {
      if (block.graph.exprs().empty())
        continue;
      PlanOptions options;
      options.policy = by;
      options.numerics = *symbolizeNumericsMode(numerics);
      options.gridSync = gridSync;
      FusionProblem problem(block.graph, machine, options);
      OrDeclined<PlanDraft> draft = explore(problem);
      if (!draft)
        return draft.why();
      PlanDraft start = runSteps(problem, {{"startGroups", startGroups}});
      SmallVector<unsigned> mayTake;
      for (auto [expr, group] : llvm::enumerate(start.decisions.partOf))
        if (group >= 0)
          mayTake.push_back(expr);
      PlanScore own = scoreOf(problem, *draft, mayTake);
      int64_t steps = block.loop ? std::max<int64_t>(1, loopPlanOf(block).steps) : 1;
      bool isRepeated = steps > 1 && own.launches == 1 && machine.hasGridBarriers() && gridSync;
      // A barrier ends all steps but the last one of a loop in a kernel.
      double saved = isRepeated ? (steps - 1) * (machine.launchSeconds - machine.gpu.gridBarrierSeconds) : 0;
      sum.seconds += steps * own.seconds - saved;
      sum.bytes += steps * own.bytes;
      sum.launches += isRepeated ? 1 : steps * own.launches;
    }
    return sum;
  }

  OrDeclined<FormTrial> tryForms(func::FuncOp function, ArrayRef<FormChoice> requests, const Target &machine,
                                 StringRef by) {
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(getOperation()->clone());
    copy->setSymName(kTrialModule);
    auto own = copy->lookupSymbol<func::FuncOp>(function.getSymName());
    if (!requests.empty())
      requestForms(own, requests);
    KernelOptions options;
    options.target = target.getValue();
    options.numerics = numerics.getValue();
    options.cores = cores.getValue();
    options.gridSync = gridSync.getValue();
    OpPassManager manager(ModuleOp::getOperationName());
    backendOf(machine).populateNormalize(manager, options);
    getOperation().getBody()->push_back(*copy); // passes run on ops of the module only
    bool isNormalized = succeeded(runPipeline(manager, *copy));
    copy->getOperation()->remove();
    if (!isNormalized)
      return Declined{"its passes failed", "another choice"};
    own = copy->lookupSymbol<func::FuncOp>(function.getSymName());
    if (machine.hasGridBarriers() && gridSync &&
        failed(runLayersAtOnce(own, machine, *symbolizeNumericsMode(numerics))))
      return Declined{"its layers cannot run at once as requested", "another choice"};
    OrDeclined<PlanScore> score = scoreOfFunction(own, machine, by);
    return score ? OrDeclined<FormTrial>(FormTrial{recordedForms(own), *score}) : score.why();
  }

  LogicalResult search(func::FuncOp function, const Target &machine, FormSearchKind kind) {
    StringRef by = kind == FormSearchKind::all ? StringRef(policy) : StringRef("greedy");
    auto tried = [&](ArrayRef<FormChoice> requests) { return tryForms(function, requests, machine, by); };
    std::vector<FormChoice> requests;
    if (kind == FormSearchKind::all) {
      OrDeclined<std::vector<FormChoice>> found = searchAllForms(tried);
      if (!found)
        return function.emitError("no plan by policy '") << policy << "': " << found.why().reason;
      requests = std::move(*found);
    } else {
      double ops = 0;
      function.walk([&](Operation *op) { ops += !op->getParentOfType<linalg::LinalgOp>(); });
      requests = improveForms(tried, static_cast<size_t>(kTriedPerSecond * planSeconds / ops),
                              machine.costs.confidence.forms);
    }
    if (!requests.empty())
      requestForms(function, requests);
    numChanged += requests.size();
    return success();
  }

  void runOnOperation() override {
    std::optional<FormSearchKind> kind = formSearchOf(policy);
    if (!kind || *kind == FormSearchKind::none || !symbolizeNumericsMode(numerics))
      return; // the pass that plans says what is wrong with its options
    FailureOr<Target> machine = targetOrError(getOperation(), target, cores, /*blockBytes=*/0);
    if (failed(machine))
      return signalPassFailure();
    if (!whyIncomplete(*machine).empty())
      return;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      bool isOpen = !function.isExternal() && !function->hasAttr(kRequestedFormsAttr);
      if (isOpen && failed(search(function, *machine, *kind)))
        return signalPassFailure();
    }
  }
};
} // namespace
} // namespace tilewright

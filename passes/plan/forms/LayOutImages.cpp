// Chooses the layout of images around convolutions (PowerFusion): that of the model, or channels last. Both are
// normalised and planned as a whole, because what a layout costs lies at its edges: the transposes there, and which
// kernels no longer join. The trials have all forms by their rules, so a given plan does not change the choice that it
// was made with.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/cost/Confidence.h"
#include "passes/graph/FormChoice.h"
#include "passes/normalize/ImageLayout.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/fusion/PlannerStep.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_LAYOUTIMAGES
#include "passes/Passes.h.inc"

namespace {
struct LayOutImages : impl::LayOutImagesBase<LayOutImages> {
  using LayOutImagesBase::LayOutImagesBase;

  /// Passes of the trials mark ops with their forms.
  void getDependentDialects(DialectRegistry &registry) const override {
    LayOutImagesBase::getDependentDialects(registry);
    registry.insert<tile::TileDialect>();
  }

  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    std::optional<NumericsMode> mode = symbolizeNumericsMode(numerics);
    if (!mode) {
      getOperation().emitError("unknown numerics: ") << numerics;
      return signalPassFailure();
    }
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      // Another layout sums the elements of a window in another order.
      bool offers = *mode != NumericsMode::strict && function.getBody().hasOneBlock() &&
                    whyIncomplete(*machine).empty() && hasJoinedConvolutions(function);
      bool last = offers && prefersChannelsLast(function, *machine, *mode);
      OpPassManager manager = rewriting(last);
      if (failed(runPipeline(manager, function)))
        return signalPassFailure();
    }
  }

private:
  OpPassManager rewriting(bool channelsLast) const {
    OpPassManager manager(func::FuncOp::getOperationName());
    ConvolutionToMatmulOptions options;
    options.target = target;
    options.channelsLast = channelsLast;
    manager.addPass(createConvolutionToMatmul(options));
    return manager;
  }

  /// Returns the rewriting and what follows it until a function is planned.
  OpPassManager normalizing(bool channelsLast) const {
    OpPassManager manager = rewriting(channelsLast);
    LowerQuantizedMatmulOptions narrow;
    narrow.numerics = numerics;
    manager.addPass(createLowerQuantizedMatmul(narrow));
    manager.addPass(createNormalizeExprs());
    OnePassVarianceOptions shift;
    shift.target = target;
    manager.addPass(createOnePassVariance(shift));
    manager.addPass(createDeferNormalization());
    SplitReductionsOptions split;
    split.target = target;
    split.gridSync = gridSync;
    manager.addPass(createSplitReductions(split));
    MarkOnlineSoftmaxOptions run;
    run.target = target;
    manager.addPass(createMarkOnlineSoftmax(run));
    return manager;
  }

  OrDeclined<double> secondsWith(func::FuncOp function, bool channelsLast, const Target &machine, NumericsMode mode) {
    OpBuilder builder(function);
    auto trial = cast<func::FuncOp>(builder.clone(*function));
    trial.setName((function.getName() + "$trial").str());
    dropRequestedForms(trial);
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    OrDeclined<double> seconds = Declined{"its passes failed", "a fix for them"};
    OpPassManager manager = normalizing(channelsLast);
    if (succeeded(runPipeline(manager, trial))) {
      PlanOptions options;
      options.gridSync = gridSync;
      options.numerics = mode;
      seconds = plannedSeconds(TensorGraph::build(trial.front()), machine, options);
    }
    trial.erase();
    return seconds;
  }

  /// Channels last is taken unless the layout of the model is predicted to be clearly faster: copies of whole vectors
  /// overlap with arithmetic, which predictions of single elements do not show.
  bool prefersChannelsLast(func::FuncOp function, const Target &machine, NumericsMode mode) {
    OrDeclined<double> first = secondsWith(function, /*channelsLast=*/false, machine, mode);
    OrDeclined<double> last = secondsWith(function, /*channelsLast=*/true, machine, mode);
    bool takes = last && (!first || !isFaster(*first, *last, machine.costs.confidence.forms));
    auto shown = [](const OrDeclined<double> &seconds) {
      return seconds ? microseconds(*seconds) : std::string("no plan");
    };
    emitRemark(function, takes, shown(first), shown(last));
    ++(takes ? numLast : numOfModel);
    return takes;
  }

  static void emitRemark(func::FuncOp function, bool takes, const std::string &first, const std::string &last) {
    remark::RemarkOpts options = remark::RemarkOpts::name("image-layout").category("tile");
    remark::analysis(function.getLoc(), options)
        << (takes ? "images have channels last: " : "images keep the layout of the model: ") << last
        << " with channels last, " << first << " otherwise";
  }
};
} // namespace
} // namespace tilewright

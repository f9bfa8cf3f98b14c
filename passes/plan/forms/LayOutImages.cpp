// Chooses the layout of images around convolutions (PowerFusion): that of the model, or channels last, for each region.
// Functions are normalised and planned as a whole, because what a layout costs lies at its edges: the transposes there,
// and which kernels no longer join. The trials have all forms by their rules, so a given plan does not change the
// choice that it was made with. Convolutions with channels last may become fewer products of sums (Winograd.h).
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/backend/Backend.h"
#include "passes/backend/KernelOptions.h"
#include "passes/graph/Form.h"
#include "passes/graph/FormPass.h"
#include "passes/normalize/Winograd.h"
#include "passes/plan/forms/DecideImageLayouts.h"
#include "passes/plan/forms/DecideWinograd.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_LAYOUTIMAGES
#include "passes/Passes.h.inc"

namespace {
/// Gives the regions that have a choice their layouts; other convolutions have none.
void markRegions(const ImageRegions &images, const ImageTrials &trials, const std::vector<bool> &channelsLast) {
  for (auto [region, last] : llvm::zip_equal(images.regions, channelsLast))
    for (linalg::LinalgOp convolution : region.joined)
      trials.mark(convolution, convolution, last);
}

class LayOutImages : public FormPass<impl::LayOutImagesBase<LayOutImages>> {
public:
  using FormPass::FormPass;

private:
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
      if (*mode != NumericsMode::strict && function.getBody().hasOneBlock() && whyIncomplete(*machine).empty() &&
          failed(mark(function, *machine, *mode)))
        return;
      OpPassManager manager = rewriting();
      if (failed(runPipeline(manager, function)))
        return signalPassFailure();
    }
  }

  /// Marks the convolutions of a function with the layout of their results, and those that become products of sums.
  LogicalResult mark(func::FuncOp function, const Target &machine, NumericsMode mode) {
    ImageRegions images = findImageRegions(function.front());
    auto predict = [&](func::FuncOp trial) { return plannedSecondsOf(trial, machine, mode); };
    ImageTrials trials(function, images, predict);
    // The form that a convolution has with channels last decides what that layout costs.
    std::vector<WinogradOffer> offers;
    if (!machine.traits.readsTransposed)
      offers = winogradOffers(images, trials, machine.costs.confidence.forms);
    bool hasRegions = llvm::any_of(images.reads, [](const ImageRead &read) { return read.from.has_value(); });
    if (hasRegions && failed(layOut(function, images, trials, machine, mode)))
      return failure();
    return settleWinograd(function, offers);
  }

  LogicalResult layOut(func::FuncOp function, const ImageRegions &images, ImageTrials &trials, const Target &machine,
                       NumericsMode mode) {
    auto seconds = [&](const std::vector<bool> &channelsLast) {
      markRegions(images, trials, channelsLast);
      return secondsOfClone(function, machine, mode);
    };
    ImageDecision decision = decideImageLayouts(images, trials, seconds, !machine.traits.readsTransposed,
                                                machine.costs.confidence.forms);
    for (auto [number, region] : llvm::enumerate(images.regions)) {
      if (region.joined.empty())
        continue;
      SmallVector<Operation *> ops(region.joined.begin(), region.joined.end());
      FailureOr<FormChoice> choice = settle(function, choiceOf(decision, number), ops, takesNoParameters);
      if (failed(choice))
        return failure();
      decision.taken[number] = choice->taken;
    }
    markRegions(images, trials, decision.taken);
    return success();
  }

  /// A convolution that may become products of sums, and whether it does where its result has channels last.
  struct WinogradOffer {
    linalg::LinalgOp convolution;
    SmallVector<int64_t> lines; ///< those that are possible
    FormChoice byRule;
  };

  static std::vector<WinogradOffer> winogradOffers(const ImageRegions &images, ImageTrials &trials, double error) {
    std::vector<WinogradOffer> offers;
    for (const ImageRead &read : images.reads) {
      if (!isWinogradOffered(read.reader))
        continue;
      SmallVector<int64_t> lines = winogradLines(read.reader);
      FormChoice byRule = decideWinograd(
          lines, [&](int64_t each) { return trials.secondsOfWinograd(read, each); },
          trials.secondsOf(read, /*imageLast=*/true, /*resultLast=*/true), error);
      offers.push_back({read.reader, lines, byRule});
    }
    for (const WinogradOffer &offer : offers)
      if (offer.byRule.taken)
        trials.takeWinograd(offer.convolution, offer.byRule.values("lines").front());
    return offers;
  }

  LogicalResult settleWinograd(func::FuncOp function, ArrayRef<WinogradOffer> offers) {
    for (const WinogradOffer &each : offers) {
      Operation *convolution = each.convolution;
      FormChoice offer = each.byRule;
      if (markedForm(convolution) == tile::Form::asIs) {
        offer.taken = false;
        offer.reason = "its result lies as the model says";
        offer.wouldChange = "channels last";
      }
      auto whyNot = [&](const FormChoice &choice) { return whyNotWinograd(each.lines, choice); };
      FailureOr<FormChoice> choice = settle(function, offer, {convolution}, whyNot);
      if (failed(choice))
        return failure();
      if (choice->taken)
        requestWinograd(convolution, choice->values("lines").front());
      else if (markedForm(convolution) == tile::Form::winograd)
        declineWinograd(convolution);
    }
    return success();
  }

  static FormChoice choiceOf(const ImageDecision &decision, unsigned region) {
    FormChoice choice;
    choice.form = tile::Form::channelsLast;
    choice.taken = decision.taken[region];
    choice.numerics.reassociates = true;
    auto [ofModel, last] = decision.secondsOf(region);
    choice.seconds = last;
    choice.otherwiseSeconds = ofModel;
    choice.reason = decision.reason();
    choice.wouldChange = "another layout that is predicted to be clearly faster";
    return choice;
  }

  OpPassManager rewriting() const {
    OpPassManager manager(func::FuncOp::getOperationName());
    ConvolutionToMatmulOptions options;
    options.target = target;
    manager.addPass(createConvolutionToMatmul(options));
    return manager;
  }

  OrDeclined<double> secondsOfClone(func::FuncOp function, const Target &machine, NumericsMode mode) {
    OpBuilder builder(function);
    auto trial = cast<func::FuncOp>(builder.clone(*function));
    trial.setName((function.getName() + "$trial").str());
    dropRequestedForms(trial);
    OrDeclined<double> seconds = plannedSecondsOf(trial, machine, mode);
    trial.erase();
    return seconds;
  }

  /// Rewrites a function until it can be planned, and returns the seconds of its plan.
  OrDeclined<double> plannedSecondsOf(func::FuncOp trial, const Target &machine, NumericsMode mode) {
    KernelOptions kernels;
    kernels.target = target.getValue();
    kernels.numerics = numerics.getValue();
    kernels.gridSync = gridSync.getValue();
    OpPassManager manager = rewriting();
    backendOf(machine).populateForms(manager, kernels);
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &) { return success(); });
    if (failed(runPipeline(manager, trial)))
      return Declined{"its passes failed", "a fix for them"};
    PlanOptions options;
    options.gridSync = gridSync;
    options.numerics = mode;
    return plannedSeconds(TensorGraph::build(trial.front()), machine, options);
  }
};
} // namespace
} // namespace tilewright

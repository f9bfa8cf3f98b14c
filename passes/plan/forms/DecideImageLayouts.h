// Decides the layout of each region of images (PowerFusion): channels last, or that of the model.
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEIMAGELAYOUTS_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEIMAGELAYOUTS_H

#include "passes/plan/forms/ImageTrials.h"
#include "passes/support/CheapestLabels.h"

namespace tilewright {

/// Layouts of all regions of a function, with the predicted seconds of its plan.
struct ImageLayouts {
  std::vector<bool> channelsLast; ///< by region; false: as the model says
  OrDeclined<double> seconds = Declined{"it was not predicted", "a plan with these layouts"};
};

/// Returns what each region costs by itself, in seconds. A region without a choice pays too much for the layout that it
/// does not have. Declines if a region has no plan.
OrDeclined<LabelCosts> regionCosts(const ImageRegions &images, ImageTrials &trials, bool fixedLast);

/// Adds what convolutions cost that read an image in one layout and write another. Declines if one has no plan.
OrDeclined<LabelCosts> withBorders(LabelCosts costs, const ImageRegions &images, ImageTrials &trials);

/// The layouts that were compared, and the one that is taken.
struct ImageDecision {
  ImageLayouts ofModel, last; ///< all regions that have a choice are alike
  ImageLayouts mixed;         ///< the cheapest by region; empty: equal to one of the others, hardly cheaper, or unknown
  std::vector<bool> taken;    ///< true: channels last
  LabelCosts costs;           ///< empty if unknown

  /// Returns the seconds that a region and its borders cost with channels last and without, the others being as taken.
  std::array<double, 2> secondsOf(unsigned region) const;
  /// Returns the predictions that decided.
  std::string reason() const;
};

/// Compares the plans of the whole function: in the layout of the model, with channels last, and with the layouts that
/// are cheapest by region. Channels last are taken unless the layout of the model is predicted to be clearly faster;
/// mixed layouts only if they are predicted to be clearly faster than that; of many regions, they are only tried if
/// regions gain clearly without their borders. `seconds` predicts the function with given layouts. Without predictions,
/// `lastByDefault` holds.
ImageDecision decideImageLayouts(const ImageRegions &images, ImageTrials &trials,
                                 llvm::function_ref<OrDeclined<double>(const std::vector<bool> &)> seconds,
                                 bool lastByDefault, double error);

} // namespace tilewright

#endif

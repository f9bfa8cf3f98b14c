#include "passes/plan/forms/DecideImageLayouts.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/fusion/PlannerStep.h"

using namespace mlir;
using namespace tilewright;

/// Seconds that no region costs.
static constexpr double kForbidden = 1e3;

OrDeclined<LabelCosts> tilewright::regionCosts(const ImageRegions &images, ImageTrials &trials, bool fixedLast) {
  LabelCosts costs;
  for (auto [number, region] : llvm::enumerate(images.regions)) {
    std::array<double, 2> &own = costs.nodes.emplace_back();
    if (region.joined.empty()) {
      own[fixedLast ? 0 : 1] = kForbidden;
      continue;
    }
    for (bool last : {false, true}) {
      OrDeclined<double> seconds = trials.secondsOf(number, last);
      if (!seconds)
        return seconds.why();
      own[last] = *seconds;
    }
  }
  return costs;
}

OrDeclined<LabelCosts> tilewright::withBorders(LabelCosts costs, const ImageRegions &images, ImageTrials &trials) {
  for (const ImageRead &read : images.reads) {
    if (!read.from || *read.from == read.into)
      continue;
    double seconds[2][2]; // by layout of the image and of the result
    for (bool imageLast : {false, true})
      for (bool resultLast : {false, true}) {
        OrDeclined<double> one = trials.secondsOf(read, imageLast, resultLast);
        if (!one)
          return one.why();
        seconds[imageLast][resultLast] = *one;
      }
    costs.edges.push_back({*read.from, read.into, seconds[1][0] - seconds[0][0], seconds[0][1] - seconds[1][1]});
  }
  return costs;
}

/// Regions whose borders are always predicted. Those of ResNet-50 (37 regions) for an H200 take 25 s on two cores of a
/// Zen 3, more than the rest of its compilation (2026-11-28).
static constexpr size_t kFewRegions = 16;

/// Returns true if borders are worth predicting: there are few, or regions in their own cheapest layouts are clearly
/// faster than in one.
static bool mayDiffer(const LabelCosts &costs, const ImageRegions &images, double error) {
  if (costs.nodes.size() <= kFewRegions)
    return true;
  double least = 0, ofModel = 0, last = 0;
  for (auto [region, cost] : llvm::zip_equal(images.regions, costs.nodes)) {
    if (region.joined.empty())
      continue;
    least += std::min(cost[0], cost[1]);
    ofModel += cost[0];
    last += cost[1];
  }
  return isFaster(least, std::min(ofModel, last), error);
}

std::array<double, 2> ImageDecision::secondsOf(unsigned region) const {
  if (costs.nodes.empty())
    return {0, 0};
  std::array<double, 2> seconds = costs.nodes[region];
  for (const LabelCosts::Edge &edge : costs.edges) {
    if (edge.from == region)
      seconds[!taken[edge.to]] += taken[edge.to] ? edge.onlyTo : edge.onlyFrom;
    if (edge.to == region)
      seconds[!taken[edge.from]] += taken[edge.from] ? edge.onlyFrom : edge.onlyTo;
  }
  return seconds;
}

std::string ImageDecision::reason() const {
  auto shown = [](const ImageLayouts &layouts) {
    return layouts.seconds ? microseconds(*layouts.seconds) : "no plan (" + layouts.seconds.why().reason + ")";
  };
  std::string text = "the function takes " + shown(last) + " with channels last, " + shown(ofModel) +
                     " in the layout of the model";
  if (!mixed.channelsLast.empty())
    text += ", " + shown(mixed) + " with the cheapest layout of each image";
  return text;
}

ImageDecision tilewright::decideImageLayouts(const ImageRegions &images, ImageTrials &trials,
                                             llvm::function_ref<OrDeclined<double>(const std::vector<bool> &)> seconds,
                                             bool lastByDefault, double error) {
  ImageDecision decision;
  auto predicted = [&](std::vector<bool> labels) {
    OrDeclined<double> time = seconds(labels);
    return ImageLayouts{std::move(labels), std::move(time)};
  };
  std::vector<bool> all;
  for (const ImageRegion &region : images.regions)
    all.push_back(!region.joined.empty());
  decision.ofModel = predicted(std::vector<bool>(all.size()));
  decision.last = predicted(all);
  const OrDeclined<double> &first = decision.ofModel.seconds, &last = decision.last.seconds;
  bool takesLast = last ? !first || !isFaster(*first, *last, error) : lastByDefault;
  decision.taken = takesLast ? decision.last.channelsLast : decision.ofModel.channelsLast;
  OrDeclined<LabelCosts> costs = regionCosts(images, trials, lastByDefault);
  if (costs)
    decision.costs = *costs;
  if (!costs || !mayDiffer(*costs, images, error))
    return decision;
  costs = withBorders(*costs, images, trials);
  if (!costs)
    return decision;
  decision.costs = *costs;
  std::vector<bool> cheapest = cheapestLabels(*costs);
  for (auto [number, region] : llvm::enumerate(images.regions))
    cheapest[number] = cheapest[number] && !region.joined.empty();
  if (cheapest == decision.last.channelsLast || cheapest == decision.ofModel.channelsLast)
    return decision;
  decision.mixed = predicted(std::move(cheapest));
  const OrDeclined<double> &uniform = takesLast ? last : first;
  if (decision.mixed.seconds && (!uniform || isFaster(*decision.mixed.seconds, *uniform, error)))
    decision.taken = decision.mixed.channelsLast;
  return decision;
}

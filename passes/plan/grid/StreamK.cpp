#include "passes/plan/grid/StreamK.h"

#include "passes/backend/Backend.h"
#include "passes/cost/Confidence.h"
#include "passes/plan/grid/PlannedKernel.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"

using namespace mlir;
using namespace tilewright;

/// Adds the traffic of partials, which one workgroup writes and another reads once.
static GroupWork withPartials(const GridContext &context, const PlannedGroup &planned) {
  const IterationSpace &space = planned.space;
  int64_t units = space.numTiles() * space.steps, left = 0;
  for (int64_t workgroup = 0; workgroup < space.workgroups; ++workgroup)
    left += workgroup * units / space.workgroups % space.steps != 0;
  int64_t rowBytes = sharedTiles(context.graph, context.target, space, space.threads).rowBytes;
  double bytes = static_cast<double>(left * rowBytes);
  GroupWork work = planned.work;
  work.inputBytes += bytes;
  work.outputBytes += bytes;
  return work;
}

std::optional<PlannedGroup> tilewright::inSharedTiles(const GridContext &context, unsigned part) {
  std::optional<std::vector<GridStage>> stages = stagesOf(context, part);
  std::optional<GridKernel> grid = stages ? joinStages(context, *stages) : std::nullopt;
  if (!grid || !grid->phases.front().front().sharesTiles)
    return std::nullopt;
  PlannedKernel kernel = finish(context, {{part}, {context.part(part)}, std::move(*stages), std::move(*grid)});
  PlannedGroup &shared = kernel.groups.front();
  double seconds = estimate(withPartials(context, shared), context.target).seconds;
  bool pays = isFaster(seconds, context.part(part).predicted.seconds, context.target.costs.confidence.tilings);
  return pays ? std::optional(std::move(shared)) : std::nullopt;
}

void tilewright::countPartials(const GridContext &context, Decisions &decisions) {
  for (std::optional<PlannedGroup> &planned : decisions.parts)
    if (planned && planned->space.steps > 0)
      planned->work = withPartials(context, *planned);
}

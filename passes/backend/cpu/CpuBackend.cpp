#include "passes/backend/cpu/CpuBackend.h"

#include "passes/plan/tiling/CpuTiles.h"
#include "passes/plan/tiling/TileSizes.h"
#include "passes/plan/tiling/cpu/PlannedBlockings.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr size_t kMostTilings = 512; ///< most tilings that are predicted for one choice of scopes

/// Returns the planner's tile size for the dim and those of even pieces. Along M and N of a contraction and along the
/// vector dim, sizes are multiples of the register block's.
std::vector<int64_t> sizesOf(const IterationSpace &space, const Target &target, int64_t dim) {
  bool contracts = space.block.rows > 1;
  int64_t lanes = contracts ? space.block.vectors * target.lanes() : target.costs.cpu.tileUnit;
  int64_t unit = dim == space.vector ? lanes : contracts ? space.block.rows : 1, extent = space.extents[dim];
  std::vector<int64_t> sizes = {space.tiles[dim], extent};
  for (int64_t pieces = 2; pieces <= extent; pieces = pieces < 4 ? pieces + 1 : 2 * pieces) {
    int64_t even = llvm::divideCeil(extent, pieces);
    sizes.push_back(std::min<int64_t>(extent, llvm::alignTo(even, unit)));
    if (dim != space.vector && extent % pieces == 0)
      sizes.push_back(even);
  }
  llvm::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// Combines the sizes of all grid dims, innermost first, as long as there are not too many combinations.
std::vector<std::vector<int64_t>> combinedSizes(const IterationSpace &own, const Target &target) {
  std::vector<std::vector<int64_t>> found = {own.tiles};
  for (int64_t dim : llvm::reverse(own.grid)) {
    std::vector<std::vector<int64_t>> wider;
    for (const std::vector<int64_t> &tiles : found)
      for (int64_t size : sizesOf(own, target, dim)) {
        wider.push_back(tiles);
        wider.back()[dim] = size;
      }
    if (wider.size() > kMostTilings)
      break;
    found = std::move(wider);
  }
  return found;
}
} // namespace

std::string CpuBackend::chooseTiles(const TilingProblem &problem, IterationSpace &space) const {
  CpuTiles tiles(problem.graph, problem.group, problem.target, space, problem.footprint);
  tiles.choose();
  space.workgroups = std::min(tiles.wantedWorkgroups(), space.numTiles());
  return "";
}

void CpuBackend::chooseWorkgroups(const TilingProblem &problem, IterationSpace &space) const {
  CpuTiles tiles(problem.graph, problem.group, problem.target, space, problem.footprint);
  space.workgroups = std::min(tiles.wantedWorkgroups(), space.numTiles());
}

/// Each tiling is listed with the workgroups that the planner would take, and with one per core.
std::vector<IterationSpace> CpuBackend::tilings(const TensorGraph &graph, const GroupChoice &group,
                                                const Target &target, const IterationSpace &own) const {
  std::vector<IterationSpace> spaces;
  for (const std::vector<int64_t> &tiles : combinedSizes(own, target)) {
    IterationSpace tiled = own;
    if (!takeTiles(graph, group, target, tiled, tiles).empty())
      continue;
    spaces.push_back(tiled);
    if (tiled.workgroups <= target.cores)
      continue;
    tiled.workgroups = target.cores;
    spaces.push_back(std::move(tiled));
  }
  return spaces;
}

void CpuBackend::finishPlan(Plan &plan, const TensorGraph &graph, const Target &target,
                            llvm::function_ref<const PlannedGroup &(unsigned op)>) const {
  chooseBlockings(plan, graph, target);
  leaveUnblocked(plan, graph, target);
}

std::string CpuBackend::settlePlan(Plan &plan, const TensorGraph &graph, const Target &target,
                                   std::vector<PlanRemark> &) const {
  chooseBlockings(plan, graph, target);
  return whyNotBlocked(plan, graph, target);
}

double CpuBackend::startSeconds(const IterationSpace &space, const Target &target) const {
  return target.costs.cpu.tileSeconds * space.numTiles() / target.cores;
}

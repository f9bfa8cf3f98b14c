// Replans fusion groups for other blocks. A kernel has blocks of one size, and the shared memory of its largest block
// limits how many blocks of every group are resident.
#ifndef TILEWRIGHT_PLAN_GRID_RESIZEDGROUPS_H
#define TILEWRIGHT_PLAN_GRID_RESIZEDGROUPS_H

#include "passes/plan/grid/GridContext.h"
#include "passes/plan/tiling/gpu/BlockShapes.h"
#include <map>
#include <tuple>

namespace tilewright {

/// Returns the group in these blocks, or nothing if they cannot compute it.
std::optional<PlannedGroup> inBlocks(const GridContext &context, unsigned part, const BlockCandidate &block);

/// A cache of the fastest blocks of groups, by size. Every kernel that a group might join asks for the same sizes, so
/// results are kept until the group changes.
class ResizedGroups {
public:
  /// Returns the group in its fastest blocks of `threads` threads, `resident` of which fit on an SM (0: as many as
  /// possible), or nothing. For contractions, `most` limits the number of blocks (0: one per tile).
  const std::optional<PlannedGroup> &find(const GridContext &context, unsigned part, int64_t threads, int64_t resident,
                                          int64_t most = 0);

  /// Drops the results for a group whose ops have changed.
  void forget(unsigned part);

private:
  /// Results by group, threads per block, blocks per SM, and number of blocks.
  std::map<std::tuple<unsigned, int64_t, int64_t, int64_t>, std::optional<PlannedGroup>> known;
};

} // namespace tilewright

#endif

// Parts in other blocks than those that they were planned for: a kernel has blocks of one size, and what its largest
// block leaves of an SM bounds how many of the others are resident.
#ifndef TILEWRIGHT_PLAN_GRID_RESIZEDGROUPS_H
#define TILEWRIGHT_PLAN_GRID_RESIZEDGROUPS_H

#include "passes/plan/grid/GridContext.h"
#include "passes/plan/tiling/gpu/BlockShapes.h"
#include <map>
#include <tuple>

namespace tilewright {

/// The part in these blocks; nothing if they cannot compute it.
std::optional<PlannedGroup> inBlocks(const GridContext &context, unsigned part, const BlockCandidate &block);

/// The quickest blocks of parts, by size. The same are asked for with every kernel that a part might join, so what was
/// found is remembered until the part is another one.
class ResizedGroups {
public:
  /// In blocks of so many threads of which so many are resident on an SM (0: as many as fit); nothing if there are
  /// none. Contractions may be asked about that have no more than `most` blocks (0: as many as they have tiles).
  const std::optional<PlannedGroup> &find(const GridContext &context, unsigned part, int64_t threads, int64_t resident,
                                          int64_t most = 0);

  /// The part has other ops now.
  void forget(unsigned part);

private:
  /// By part, threads of a block, blocks on an SM, and blocks in all.
  std::map<std::tuple<unsigned, int64_t, int64_t, int64_t>, std::optional<PlannedGroup>> known;
};

} // namespace tilewright

#endif

// Whether blocks keep tiles in shared memory across barriers of the grid: phases of a kernel that read the same tensor,
// by tiles that can agree (ResidentTiles.h), read it once, if that is predicted to take less time than any blocks that
// read it again.
#ifndef TILEWRIGHT_PLAN_GRID_RESIDENTATGRID_H
#define TILEWRIGHT_PLAN_GRID_RESIDENTATGRID_H

#include "passes/plan/grid/PlannedKernel.h"

namespace tilewright {

/// The quickest kernel of these parts, in the order of its phases, in which blocks of one part keep tiles for another;
/// nothing if none is clearly quicker than the kernel as it stands.
std::optional<PlannedKernel> keepTiles(const GridContext &context, llvm::ArrayRef<unsigned> parts);

} // namespace tilewright

#endif

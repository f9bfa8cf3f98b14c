// Finds the iteration space of a fusion group with its tiles. Of all possible spaces, it takes the one that is
// predicted to be fastest.
#ifndef TILEWRIGHT_PLAN_TILING_FINDITERATIONSPACE_H
#define TILEWRIGHT_PLAN_TILING_FINDITERATIONSPACE_H

#include "passes/plan/space/IterationSpace.h"
#include "passes/support/Declined.h"

namespace tilewright {

/// The change that would make a group possible.
inline constexpr llvm::StringLiteral kRoomierTarget = "a target with more memory for a workgroup or more bindings";

/// Declines if the expressions share no space or no tiles fit the target.
OrDeclined<IterationSpace> findIterationSpace(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                              NumericsMode numerics, RowPlacement rows = RowPlacement::whole);

} // namespace tilewright

#endif

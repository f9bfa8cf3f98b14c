// Limits of a kernel that do not follow from the machine.
#ifndef TILEWRIGHT_PLAN_SEARCH_KERNELLIMITS_H
#define TILEWRIGHT_PLAN_SEARCH_KERNELLIMITS_H

#include "passes/graph/TensorGraph.h"
#include "passes/support/Declined.h"

namespace tilewright {

/// The reason why an expression that a restriction keeps apart shares no kernel.
inline constexpr llvm::StringLiteral kUnfused = "kept apart, because a pass failed on a kernel that held it";

/// Returns why one kernel of these expressions would take too long to compile, or nothing.
std::optional<Declined> whyTooLarge(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif

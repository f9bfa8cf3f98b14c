// Windows of a reduction that overlap, such as those of a depthwise convolution or a pool. Code generation reduces several
// of a tile at once (NestWindows.cpp).
#ifndef TILEWRIGHT_PLAN_SPACE_OVERLAPPINGWINDOWS_H
#define TILEWRIGHT_PLAN_SPACE_OVERLAPPINGWINDOWS_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns the last dim of the space, besides that of the lanes, along which windows of a root overlap that may be
/// reduced several at once; else -1. They are if no dim of a window has so many points that it stays a loop.
int64_t windowDim(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root, const Target &target);

/// Returns true if a tile has several of these windows, and every tile the same number.
bool joinsWindows(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root, const Target &target);

} // namespace tilewright

#endif

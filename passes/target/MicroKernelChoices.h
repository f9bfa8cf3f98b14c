#ifndef TILEWRIGHT_TARGET_MICROKERNELCHOICES_H
#define TILEWRIGHT_TARGET_MICROKERNELCHOICES_H

#include "passes/target/MicroKernel.h"

namespace tilewright {

/// All micro kernels among which chooseMicroKernel() chooses, the most preferred first, and those of warpgroups: what a
/// plan may name.
std::vector<MicroKernel> allMicroKernels(const Target &target, const ProductTypes &types, RhsLayout layout,
                                         bool strict);

} // namespace tilewright

#endif

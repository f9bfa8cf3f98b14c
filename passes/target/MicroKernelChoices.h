#ifndef TILEWRIGHT_TARGET_MICROKERNELCHOICES_H
#define TILEWRIGHT_TARGET_MICROKERNELCHOICES_H

#include "passes/target/MicroKernel.h"

namespace tilewright {

/// All micro kernels among which chooseMicroKernel() chooses, the most preferred first, and those of warpgroups: what a
/// plan may name.
std::vector<MicroKernel> allMicroKernels(const Target &target, const ProductTypes &types, RhsLayout layout,
                                         NumericsMode numerics);

/// Returns how often micro kernels were registered in this process. What was chosen before may change when it does.
size_t numMicroKernelRegistrations();

} // namespace tilewright

#endif

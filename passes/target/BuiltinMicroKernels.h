// The built-in micro kernels, the most preferred last.
#ifndef TILEWRIGHT_TARGET_BUILTINMICROKERNELS_H
#define TILEWRIGHT_TARGET_BUILTINMICROKERNELS_H

#include "passes/target/MicroKernel.h"

namespace tilewright {

std::vector<MicroKernel> builtinMicroKernels();

} // namespace tilewright

#endif

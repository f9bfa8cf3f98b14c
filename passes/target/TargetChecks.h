// Checks of targets for the kinds of machines that the table has. Private to the target library.
#ifndef TILEWRIGHT_TARGET_TARGETCHECKS_H
#define TILEWRIGHT_TARGET_TARGETCHECKS_H

#include "passes/target/Target.h"

namespace tilewright {

/// Returns why no code can be generated for the CPU, or an empty string.
std::string whyNoCpuCode(const Target &target);
/// Returns why no kernels can be generated for the GPU, or an empty string.
std::string whyNoCudaCode(const Target &target);

} // namespace tilewright

#endif

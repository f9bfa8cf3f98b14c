// The table of known targets, private to the target library.
#ifndef TILEWRIGHT_TARGET_KNOWNTARGETS_H
#define TILEWRIGHT_TARGET_KNOWNTARGETS_H

#include "passes/target/Target.h"

namespace tilewright {
std::vector<Target> cpuTable();
std::vector<Target> cudaTable();
} // namespace tilewright

#endif

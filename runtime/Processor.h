// Features of this processor, by the names that Linux gives them.
#ifndef TILEWRIGHT_RUNTIME_PROCESSOR_H
#define TILEWRIGHT_RUNTIME_PROCESSOR_H

#include <set>
#include <string>

namespace tilewright::runtime {

/// Returns the features of this processor, as /proc/cpuinfo lists them, without punctuation: "avx2", "sse42". It is
/// empty if they cannot be read.
std::set<std::string> processorFeatures();

/// Asks Linux for the tile registers of AMX, without which its instructions trap.
void requestTileRegisters();

} // namespace tilewright::runtime

#endif

// Copies that contractions read along their lanes, laid out as their micro kernels read them.
#ifndef TILEWRIGHT_PROGRAM_CPU_INTERLEAVEK_H
#define TILEWRIGHT_PROGRAM_CPU_INTERLEAVEK_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Gives buffers that are turned for micro kernels of several terms a step these terms side by side: their copies then
/// move groups of terms, which lie so where they are read, and no contraction puts panels of its own together for each
/// of its tiles. Returns how many.
unsigned interleaveK(tile::ParallelOp part, const Target &target);

} // namespace tilewright

#endif

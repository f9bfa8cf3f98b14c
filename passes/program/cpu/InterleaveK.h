// Lays out buffers that contractions read along N as their micro kernels read them.
#ifndef TILEWRIGHT_PROGRAM_CPU_INTERLEAVEK_H
#define TILEWRIGHT_PROGRAM_CPU_INTERLEAVEK_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Interleaves K in buffers that are transposed for micro kernels with several elements of K per step: neighbouring
/// elements of K are stored side by side. Copies then move whole groups of K, and no contraction packs panels of its
/// own for each of its tiles. Returns the number of buffers changed.
unsigned interleaveK(tile::ParallelOp part, const Target &target);

} // namespace tilewright

#endif

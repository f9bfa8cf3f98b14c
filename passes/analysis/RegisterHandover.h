// Buffers of a tile program that need no memory: what a contraction on a GPU sums up is read by one elementwise nest
// after it, point by point, so each thread hands its sums on in registers. Pure: read off the program.
#ifndef TILEWRIGHT_ANALYSIS_REGISTERHANDOVER_H
#define TILEWRIGHT_ANALYSIS_REGISTERHANDOVER_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// The nest that takes over the sums of a contraction, which is computed right before it.
struct RegisterHandover {
  tile::ComputeOp reader;
  llvm::SmallVector<int64_t> dims; ///< for each dim of the reader, the contraction's; -1: the reader's has one point
};

/// Nothing where the sums of the contraction go through memory.
std::optional<RegisterHandover> registerHandover(tile::ComputeOp contraction);

/// Whether all that is in the buffer is handed over in registers.
bool staysInRegisters(tile::AllocOp buffer);
/// The contraction whose sums the nest takes over in registers, or null.
tile::ComputeOp contractionHandedTo(tile::ComputeOp reader);

} // namespace tilewright

#endif

// Buffers of a tile program that need no memory: what a contraction on a GPU sums up is read point by point by nests
// after it, elementwise ones and reductions along its rows (a softmax, a norm), so each thread hands its sums on in
// registers. Pure: read off the program.
#ifndef TILEWRIGHT_ANALYSIS_REGISTERHANDOVER_H
#define TILEWRIGHT_ANALYSIS_REGISTERHANDOVER_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// A nest that reads the sums of a contraction.
struct SumReader {
  tile::ComputeOp nest;
  llvm::SmallVector<int64_t> dims; ///< for each dim of the nest, the contraction's; -1: the nest's has one point
};

/// The nests that take over the sums of a contraction, in order. It is computed right before the first.
struct RegisterHandover {
  llvm::SmallVector<SumReader, 1> readers;

  /// Whether threads keep all their sums until the last nest has read them: several nests do, or one reduces rows.
  bool keepsSums() const {
    tile::ComputeOp first = readers.front().nest;
    return readers.size() > 1 || !first.getAccs().empty();
  }
  bool isReader(tile::ComputeOp nest) const {
    return llvm::any_of(readers, [&](const SumReader &reader) { return reader.nest == nest; });
  }
};

/// Nothing where the sums of the contraction go through memory.
std::optional<RegisterHandover> registerHandover(tile::ComputeOp contraction);

/// Whether all that is in the buffer is handed over in registers.
bool staysInRegisters(tile::AllocOp buffer);
/// The contraction whose sums the nest takes over in registers, or null.
tile::ComputeOp contractionHandedTo(tile::ComputeOp reader);
/// The same, of the first nest that does.
tile::ComputeOp contractionComputedWith(tile::ComputeOp reader);

} // namespace tilewright

#endif

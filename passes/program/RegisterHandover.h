// Buffers of a tile program that need no memory: what a contraction on a GPU sums up is read point by point by nests
// after it, elementwise ones and reductions along its rows (a softmax, a norm), so each thread hands its sums on in
// registers. Pure: read off the program.
#ifndef TILEWRIGHT_PROGRAM_REGISTERHANDOVER_H
#define TILEWRIGHT_PROGRAM_REGISTERHANDOVER_H

#include "dialects/tile/TileDialect.h"

namespace mlir::scf {
class ForOp;
}

namespace tilewright {

/// A nest that reads the sums of a contraction.
struct EpilogueNest {
  tile::ComputeOp nest;
  llvm::SmallVector<int64_t> dims; ///< for each dim of the nest, the contraction's; -1: the nest's has one point
};

/// The nests that take over the sums of a contraction, in order. It is computed right before the first.
struct RegisterHandover {
  llvm::SmallVector<EpilogueNest, 1> readers;
  bool grows = false; ///< they are added to what threads keep in registers, too (GrowingAccumulators)

  /// Whether threads keep all their sums until the last nest has read them: several nests do, or one reduces rows or
  /// adds them to others.
  bool keepsAccumulators() const {
    tile::ComputeOp first = readers.front().nest;
    return readers.size() > 1 || !first.getAccs().empty() || grows;
  }
  bool isReader(tile::ComputeOp nest) const {
    return llvm::any_of(readers, [&](const EpilogueNest &reader) { return reader.nest == nest; });
  }
};

/// Nothing where the sums of the contraction go through memory.
std::optional<RegisterHandover> registerHandover(tile::ComputeOp contraction);

/// Sums that grow in registers from block to block of a walked dim (the output of an attention): a contraction's of
/// each block are added to them. The buffer that the program has for them, the slice, takes no memory.
struct GrowingAccumulators {
  mlir::Value slice;
  mlir::TypedAttr start; ///< all of them, before the loop
  tile::ComputeOp starting, contraction, joining;
  llvm::SmallVector<EpilogueNest, 1> readers; ///< behind the loop
};

std::optional<GrowingAccumulators> growingAccumulators(tile::AllocOp buffer);
/// Those that the loop carries.
llvm::SmallVector<GrowingAccumulators> grownIn(mlir::scf::ForOp loop);
/// Those that the nest starts, or reads behind the loop.
std::optional<GrowingAccumulators> grownBeside(tile::ComputeOp nest);

/// Whether all that is in the buffer is handed over in registers.
bool staysInRegisters(tile::AllocOp buffer);
/// The contraction whose sums the nest takes over in registers, or null.
tile::ComputeOp contractionHandedTo(tile::ComputeOp reader);
/// The same, of the first nest that does.
tile::ComputeOp contractionComputedWith(tile::ComputeOp reader);

} // namespace tilewright

#endif

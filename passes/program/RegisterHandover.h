// Finds buffers of a tile program that need no memory. On a GPU, nests behind a contraction read its accumulators point
// by point: elementwise nests and reductions along its rows (softmax, norms). Each thread then hands its accumulators
// on in registers. Pure: it reads the program and changes nothing.
#ifndef TILEWRIGHT_PROGRAM_REGISTERHANDOVER_H
#define TILEWRIGHT_PROGRAM_REGISTERHANDOVER_H

#include "dialects/tile/TileDialect.h"

namespace mlir::scf {
class ForOp;
}

namespace tilewright {

/// A nest that reads the accumulators of a contraction.
struct EpilogueNest {
  tile::ComputeOp nest;
  llvm::SmallVector<int64_t> dims; ///< for each dim of the nest: the contraction's dim, or -1 if the nest's dim has one
                                   ///< point
};

/// The nests that read the accumulators of a contraction, in order. The contraction is computed right before the first.
struct RegisterHandover {
  llvm::SmallVector<EpilogueNest, 1> readers;
  bool grows = false; ///< true if they are also added to accumulators that threads keep in registers
                      ///< (GrowingAccumulators)

  /// Returns true if threads keep all their accumulators until the last nest has read them: several nests read them, or
  /// one nest reduces rows or adds them to others.
  bool keepsAccumulators() const {
    tile::ComputeOp first = readers.front().nest;
    return readers.size() > 1 || !first.getAccs().empty() || grows;
  }
  bool isReader(tile::ComputeOp nest) const {
    return llvm::any_of(readers, [&](const EpilogueNest &reader) { return reader.nest == nest; });
  }
};

/// Returns none if the accumulators of the contraction go through memory.
std::optional<RegisterHandover> registerHandover(tile::ComputeOp contraction);

/// Accumulators that stay in registers across the blocks of a walked dim (the output of an attention); the result of
/// each block's contraction is added to them. Their buffer in the program, `slice`, takes no memory.
struct GrowingAccumulators {
  mlir::Value slice;
  mlir::TypedAttr start; ///< initial value of all of them, before the loop
  tile::ComputeOp starting, contraction, joining;
  llvm::SmallVector<EpilogueNest, 1> readers; ///< nests behind the loop
};

std::optional<GrowingAccumulators> growingAccumulators(tile::AllocOp buffer);
/// Returns the growing accumulators that the loop carries.
llvm::SmallVector<GrowingAccumulators> grownIn(mlir::scf::ForOp loop);
/// Returns the growing accumulators that the nest initialises, or reads behind the loop.
std::optional<GrowingAccumulators> grownBeside(tile::ComputeOp nest);

/// Returns true if everything in the buffer is handed over in registers.
bool staysInRegisters(tile::AllocOp buffer);
/// Returns the contraction whose accumulators the nest reads from registers, or null.
tile::ComputeOp contractionHandedTo(tile::ComputeOp reader);
/// Returns the contraction for which `reader` is the first nest that reads its accumulators from registers, or null.
tile::ComputeOp contractionComputedWith(tile::ComputeOp reader);

} // namespace tilewright

#endif

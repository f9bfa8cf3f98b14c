// Emits one tile.compute as loops over vectors. Each value is computed in the outermost loop that has all dims it
// depends on, so that loops do not recompute invariant values. The vector dim advances by whole vectors, with a masked
// tail.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTEMITTER_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTEMITTER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// Returns the neutral element of a combining kind.
mlir::TypedAttr neutralElement(mlir::vector::CombiningKind kind, mlir::Type type);

/// The properties of the machine that the emitter needs. Those with a default of one are used by single threads alone.
struct VectorShape {
  int64_t bytes = 64;               ///< bytes of one vector register
  int64_t registers = 32;           ///< number of vector registers
  int64_t cacheBytes = 32 * 1024;   ///< bytes of the innermost cache
  int64_t outerBytes = 1024 * 1024; ///< bytes of the outermost cache that a core has for itself
  bool fusesProducts = false;       ///< one instruction multiplies and adds
  int64_t windowsTogether = 1;      ///< overlapping windows that are reduced at once
  int64_t nestRegisters = 1;        ///< most registers of a vector of a nest
  int64_t unrolledPoints = 1;       ///< most points of a reduced dim that are emitted without a loop
  int64_t stridedLanes = 1;         ///< greatest stride between lanes, in elements, that is not gathered
};

/// The mapping of a loop nest to the threads of a block. A dim has a power of two of threads; with n threads, each
/// takes every n-th vector along the dim.
class NestThreads {
public:
  virtual ~NestThreads() = default;
  /// Returns the number of elements along the vector dim that a thread takes at once.
  virtual int64_t lanes() const = 0;
  virtual int64_t threadsAlong(int64_t dim) const = 0;
  /// Returns this thread's index among the threads along the dim.
  virtual mlir::Value indexAlong(mlir::OpBuilder &builder, int64_t dim) = 0;
  /// Returns true if threads wait for each other to combine their accumulators. All threads must then execute the same
  /// number of iterations.
  virtual bool combines() const = 0;
  /// Combines accumulator `i` of all threads that share a point. Each of these threads gets the result.
  virtual mlir::Value combine(mlir::OpBuilder &builder, unsigned i, mlir::vector::CombiningKind kind,
                              mlir::Value value) = 0;
  /// Returns an i1 that is true if this thread stores the values that several threads share, or null if no values are
  /// shared.
  virtual mlir::Value leads(mlir::OpBuilder &builder, bool accumulator) = 0;
};

/// Emits `compute` at the builder's insertion point. `values` maps its offsets to index values and its slices to
/// memrefs. If `threads` is null, one thread runs the whole nest.
void emitNest(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values, VectorShape shape,
              NestThreads *threads = nullptr);

/// Returns true if the loops of `compute` can also run the ops of `beside`: it has the same points, order of loops and
/// vectors, and no accumulators.
bool canShareLoops(tile::ComputeOp compute, tile::ComputeOp beside, VectorShape shape);

/// Emits `compute` and, in the same loops, `beside` at the same points of another tile. Neither nest may read what the
/// other writes.
void emitNestsTogether(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values,
                       tile::ComputeOp beside, const mlir::IRMapping &besideValues, VectorShape shape);

} // namespace tilewright

#endif

// Emits one tile.compute as loops over vectors. Values are emitted at the outermost loop whose dims they depend on, so
// what does not change along a loop is computed once; the vector dim advances by whole vectors, its tail under a mask.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTEMITTER_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTEMITTER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// On an exp whose argument is at most 89, or NaN.
inline constexpr llvm::StringLiteral kSmallArgumentAttr = "tile.small_argument";

/// What changes nothing when it is combined with an element.
mlir::TypedAttr neutralElement(mlir::vector::CombiningKind kind, mlir::Type type);

/// What the emitter needs to know of the machine.
struct VectorShape {
  int64_t bytes = 64; ///< of one vector register
  int64_t registers = 32;
  int64_t cacheBytes = 32 * 1024; ///< of the innermost cache
};

/// How the threads of a block share a loop nest. A dim has a power of two of threads, each of which takes every so many
/// vectors along it.
class NestThreads {
public:
  virtual ~NestThreads() = default;
  /// Elements along the vector dim that a thread takes at once.
  virtual int64_t lanes() const = 0;
  virtual int64_t threadsAlong(int64_t dim) const = 0;
  /// Which of them this thread is.
  virtual mlir::Value indexAlong(mlir::OpBuilder &builder, int64_t dim) = 0;
  /// Whether threads wait for each other to combine what they accumulated, so that all must come by.
  virtual bool combines() const = 0;
  /// Combines accumulator `i` of all threads that share a point; each of them has the result.
  virtual mlir::Value combine(mlir::OpBuilder &builder, unsigned i, mlir::vector::CombiningKind kind,
                              mlir::Value value) = 0;
  /// Whether this thread stores what it shares with others, an i1; null where it shares nothing.
  virtual mlir::Value leads(mlir::OpBuilder &builder, bool accumulator) = 0;
};

/// Emits `compute` at the builder's insertion point. `values` maps its offsets to index values and its slices to
/// memrefs. Without `threads` one thread runs it all.
void emitNest(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values, VectorShape shape,
              NestThreads *threads = nullptr);

/// Whether the loops of `compute` visit the points of `beside`, which accumulates nothing, in the order and by the
/// vectors that are right for it, too.
bool canShareLoops(tile::ComputeOp compute, tile::ComputeOp beside, VectorShape shape);

/// Emits `compute` and, in the same loops, `beside` at the same points of another tile. Neither reads what the other
/// writes.
void emitNestsTogether(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values,
                       tile::ComputeOp beside, const mlir::IRMapping &besideValues, VectorShape shape);

} // namespace tilewright

#endif

// PowerFusion's three rewrites of tile programs (section 5.1) as patterns, and what they look at. Each pattern makes
// programs smaller in a measure of its own, so that the greedy driver ends: see docs/passes.md.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_MOVEMENTRULES_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_MOVEMENTRULES_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Rounds until nothing merged, and how often each pattern applied.
struct MovementCounts {
  int64_t rounds = 0, joined = 0, dropped = 0, raised = 0, swapped = 0, readAfterWrite = 0, readAfterRead = 0;

  int64_t rewrites() const { return joined + dropped + raised + swapped + readAfterWrite + readAfterRead; }
};

/// What is known of the programs of a module while they are rewritten.
struct MovementState {
  llvm::DenseSet<mlir::Value> handovers; ///< outputs that no program after this one reads
  const Target *target = nullptr;        ///< whose blocks have room for buffers
  MovementCounts counts;
};

/// `sync`: parts whose threads meet inside a block become one; barriers between what is independent go.
void populateSyncRules(mlir::RewritePatternSet &patterns, MovementState &state);
/// What the phases of one part hand over becomes a buffer of the block. The last step: what merges needs no memory.
void populateRaiseRules(mlir::RewritePatternSet &patterns, MovementState &state);
/// `swap`: elementwise compute goes behind the movement that follows it.
void populateSwapRules(mlir::RewritePatternSet &patterns, MovementState &state);
/// `merge`: read after write, read after read, and what is dead then.
void populateMergeRules(mlir::RewritePatternSet &patterns, MovementState &state);

/// Why a load of a hand-over cannot take what was moved there from where it came; empty if it can.
std::string whyNotMerged(tile::LoadOp load);

} // namespace tilewright

#endif

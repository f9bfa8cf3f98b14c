// PowerFusion's three rewrites of tile programs (section 5.1) as patterns, and their shared state. Each pattern
// decreases a measure of its own, so that the greedy driver terminates: see docs/design/movement.md.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_MOVEMENTRULES_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_MOVEMENTRULES_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Number of rounds until nothing merged, and how often each pattern applied.
struct MovementCounts {
  int64_t rounds = 0, joined = 0, dropped = 0, raised = 0, swapped = 0, readAfterWrite = 0, readAfterRead = 0;

  int64_t rewrites() const { return joined + dropped + raised + swapped + readAfterWrite + readAfterRead; }
};

/// Facts about the programs of a module that hold while they are rewritten.
struct MovementState {
  llvm::DenseSet<mlir::Value> handovers; ///< outputs that no later program reads
  const Target *target = nullptr;        ///< target whose blocks must have room for the buffers
  MovementCounts counts;
};

/// `sync`: joins parts whose threads synchronise inside a block, and drops barriers between independent phases.
void populateSyncRules(mlir::RewritePatternSet &patterns, MovementState &state);
/// Turns the tensors that the phases of one part hand over into buffers of the block. This is the last step, because
/// merged hand-overs need no memory.
void populateRaiseRules(mlir::RewritePatternSet &patterns, MovementState &state);
/// `swap`: moves elementwise compute behind the movement that follows it.
void populateSwapRules(mlir::RewritePatternSet &patterns, MovementState &state);
/// `merge`: merges read after write and read after read, and erases dead code.
void populateMergeRules(mlir::RewritePatternSet &patterns, MovementState &state);

/// Returns why a load of a hand-over cannot read the source of the copy instead; empty if it can.
std::string whyNotMerged(tile::LoadOp load);

} // namespace tilewright

#endif

// The phases of a tile program. Parts between two grid barriers are one phase and run side by side; phases run one
// after another.
#ifndef TILEWRIGHT_TILE_PHASES_H
#define TILEWRIGHT_TILE_PHASES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright::tile {

/// Returns the parts of each phase in program order. A program without a grid barrier has one phase.
llvm::SmallVector<llvm::SmallVector<ParallelOp>> phasesOf(ProgramOp program);

/// Returns the sum of the workgroups of a phase's parts.
int64_t workgroupsOf(llvm::ArrayRef<ParallelOp> phase);

/// Returns the grid barriers between the phases.
inline auto gridSyncsOf(ProgramOp program) { return program.getBody().getOps<SyncOp>(); }
inline bool hasGridSync(ProgramOp program) { return !gridSyncsOf(program).empty(); }
/// Returns the grid barriers within a tile of the part, at which workgroups exchange partial results.
llvm::SmallVector<SyncOp> gridSyncsIn(ParallelOp part);
/// Returns true if workgroups wait for each other, between phases or because they share tiles or rows.
bool syncsAtGrid(ProgramOp program);

} // namespace tilewright::tile

#endif

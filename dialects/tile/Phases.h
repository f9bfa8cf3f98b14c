// The phases of a tile program: the parts between two barriers of the grid run side by side, phases one after another.
#ifndef TILEWRIGHT_TILE_PHASES_H
#define TILEWRIGHT_TILE_PHASES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright::tile {

/// In program order; a program without a barrier has one phase.
llvm::SmallVector<llvm::SmallVector<ParallelOp>> phasesOf(ProgramOp program);

/// Workgroups of the parts of a phase together.
int64_t workgroupsOf(llvm::ArrayRef<ParallelOp> phase);

/// The barriers between the phases.
inline auto gridSyncsOf(ProgramOp program) { return program.getBody().getOps<SyncOp>(); }
inline bool hasGridSync(ProgramOp program) { return !gridSyncsOf(program).empty(); }
/// Whether its workgroups wait for each other, between phases or because they share tiles.
bool syncsAtGrid(ProgramOp program);

} // namespace tilewright::tile

#endif

// What a part of a tile program asks of a GPU, for the latency evaluator and for proofs that blocks are resident.
#ifndef TILEWRIGHT_PROGRAM_GPU_PARTWORK_H
#define TILEWRIGHT_PROGRAM_GPU_PARTWORK_H

#include "passes/program/gpu/ThreadMapping.h"
#include "passes/cost/BlockLatency.h"

namespace tilewright {

/// On a part, as ptxas says: registers of a thread.
inline constexpr llvm::StringLiteral kRegistersAttr = "tile.registers";

/// Parts of one program run in blocks of one size.
int64_t threadsOf(tile::ProgramOp program);

/// Shared memory of a block, which its parts use one after another.
int64_t sharedBytesOf(tile::ProgramOp program, const Target &target);
/// Of a part: its buffers, which have places, and from `scratchOffset` on the scratch behind them; 0 without scratch.
int64_t sharedBytesOf(tile::ParallelOp part, int64_t threads, const Target &target);
int64_t scratchOffset(tile::ParallelOp part);
/// Of the scratch and of what lies in it: where descriptors say what a matrix is, their widest swizzle.
int64_t scratchAlignment(tile::ParallelOp part);

/// Before buffers have places: of a part, no less than they will take together, with what is kept in other phases.
int64_t boundBufferBytes(tile::ParallelOp part);
/// Whether all blocks that wait for each other are sure to be resident at once with so much shared memory; without a
/// barrier of the grid none do.
bool staysResident(tile::ProgramOp program, int64_t sharedBytes, const Target &target);

/// Of a thread, estimated: what contractions keep in registers, and where there is none kUnknownRegisters.
int64_t registersOf(tile::ParallelOp part, int64_t threads, const Target &target);

/// For blocks that the part alone would have; its shared memory is the program's.
BlockWork blockWorkOf(tile::ParallelOp part, const Target &target);

} // namespace tilewright

#endif

// The resources that a part's blocks take, for proofs that blocks are co-resident.
#ifndef TILEWRIGHT_PROGRAM_GPU_PARTWORK_H
#define TILEWRIGHT_PROGRAM_GPU_PARTWORK_H

#include "passes/program/gpu/ThreadMapping.h"
#include "passes/target/Occupancy.h"

namespace tilewright {

/// Returns the threads per block, which is the same for all parts of a program.
int64_t threadsOf(tile::ProgramOp program);

/// Returns the shared memory of a block in bytes, which its parts use one after another.
int64_t sharedBytesOf(tile::ProgramOp program, const Target &target);
/// Returns the same for one part: its placed buffers, and the scratch, which starts at `scratchOffset`; 0 without
/// scratch.
int64_t sharedBytesOf(tile::ParallelOp part, int64_t threads, const Target &target);
int64_t scratchOffset(tile::ParallelOp part);
/// Returns the alignment of the scratch and its contents in bytes: the widest swizzle if wgmma descriptors refer to it.
int64_t scratchAlignment(tile::ParallelOp part);

/// Returns an upper bound on the bytes of the part's buffers before they have offsets, resident tiles of other phases
/// included.
int64_t boundBufferBytes(tile::ParallelOp part);
/// Returns true if all blocks that wait for each other are certain to be resident at once with this much shared memory.
/// Without a grid barrier, no blocks wait for each other.
bool staysResident(tile::ProgramOp program, int64_t sharedBytes, const Target &target);

/// Returns the estimated registers per thread: those that contractions hold, or kUnknownRegisters without contractions.
int64_t registersOf(tile::ParallelOp part, int64_t threads, const Target &target);

} // namespace tilewright

#endif

// Which results of a launch may take the memory of its inputs. Pure: reads programs and launches, changes nothing.
#ifndef TILEWRIGHT_PROGRAM_INPLACE_H
#define TILEWRIGHT_PROGRAM_INPLACE_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// For each output of a program the inputs whose memory it may take: every tile reads its own part of such an input
/// and no other's, and has read an element for the last time when it writes the output's element in its place.
llvm::SmallVector<llvm::SmallVector<unsigned>> inputsToOverwrite(tile::ProgramOp program);

/// For each result of `launch` the input whose memory it takes, or -1; `candidates` are those of its program.
llvm::SmallVector<int64_t> decideTied(tile::LaunchOp launch, llvm::ArrayRef<llvm::SmallVector<unsigned>> candidates);

/// What the entry of a kernel is called whose outputs take the memory of inputs as `tied` says.
std::string inPlaceName(llvm::StringRef kernel, llvm::ArrayRef<int64_t> tied);

} // namespace tilewright

#endif

// Decides which results of a launch may reuse the memory of its inputs. Pure: it reads programs and launches and
// changes nothing.
#ifndef TILEWRIGHT_PROGRAM_INPLACE_H
#define TILEWRIGHT_PROGRAM_INPLACE_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// Returns, for each output of a program, the inputs whose memory it may reuse: each tile reads only its own part of
/// such an input, and has read an element for the last time before it writes the element of the output at the same
/// offset.
llvm::SmallVector<llvm::SmallVector<unsigned>> inputsToOverwrite(tile::ProgramOp program);

/// Returns, for each result of `launch`, the input whose memory it reuses, or -1. `candidates` is the result of
/// inputsToOverwrite() for its program.
llvm::SmallVector<int64_t> decideTied(tile::LaunchOp launch, llvm::ArrayRef<llvm::SmallVector<unsigned>> candidates);

/// Returns the name of the kernel's entry point whose outputs reuse the memory of inputs as `tied` says.
std::string inPlaceName(llvm::StringRef kernel, llvm::ArrayRef<int64_t> tied);

} // namespace tilewright

#endif

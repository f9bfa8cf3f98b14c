// Adds outputs to tile programs that nothing reads: memory that the blocks of a kernel share.
#ifndef TILEWRIGHT_PROGRAM_GPU_ADDOUTPUT_H
#define TILEWRIGHT_PROGRAM_GPU_ADDOUTPUT_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// Returns the launches of the program in the module.
llvm::SmallVector<tile::LaunchOp> launchesOf(tile::ProgramOp program, mlir::ModuleOp module);

/// Adds an output to the program, and a result that nothing reads to each of its launches, which are replaced. Returns
/// the binding.
mlir::Value addOutput(tile::ProgramOp program, tile::SliceType type, llvm::ArrayRef<tile::LaunchOp> launches);

} // namespace tilewright

#endif

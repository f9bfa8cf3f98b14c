// Names of the functions that an executable exports for launches.
#ifndef TILEWRIGHT_IREE_EXPORTNAME_H
#define TILEWRIGHT_IREE_EXPORTNAME_H

#include "dialects/tile/TileDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tilewright {

/// Returns the name of the entry point that a launch calls. A kernel has another one for launches in which outputs take
/// the memory of inputs.
std::string entryName(mlir::LLVM::LLVMFuncOp kernel, tile::LaunchOp launch);

/// Returns the name by which the executable exports an entry point of a CPU kernel: that of the shim that calls it.
std::string shimName(llvm::StringRef entry);

} // namespace tilewright

#endif

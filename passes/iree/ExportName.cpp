#include "passes/iree/ExportName.h"

#include "passes/program/InPlace.h"

using namespace tilewright;

std::string tilewright::entryName(mlir::LLVM::LLVMFuncOp kernel, tile::LaunchOp launch) {
  return launch.getTied() ? inPlaceName(kernel.getName(), *launch.getTied()) : kernel.getName().str();
}

std::string tilewright::shimName(llvm::StringRef entry) { return (entry + "_dispatch").str(); }

// Joins PTX that was compiled kernel by kernel to the text of one module.
#ifndef TILEWRIGHT_CODEGEN_GPU_JOINPTX_H
#define TILEWRIGHT_CODEGEN_GPU_JOINPTX_H

#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace tilewright {

/// Returns the PTX of a module with the kernels of all texts, each of which LLVM has printed for a module with one
/// kernel. Directives and variables of the module occur once. Labels of basic blocks count kernels, as in a module that
/// was compiled as a whole.
std::string joinPtx(llvm::ArrayRef<std::string> texts);

} // namespace tilewright

#endif

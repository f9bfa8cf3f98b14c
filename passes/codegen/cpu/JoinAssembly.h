// Joins assembly that was emitted part by part to the text of one module.
#ifndef TILEWRIGHT_CODEGEN_CPU_JOINASSEMBLY_H
#define TILEWRIGHT_CODEGEN_CPU_JOINASSEMBLY_H

#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace tilewright {

/// Returns the assembly of all parts, each as LLVM has printed it for a module. What describes a file occurs once, and
/// local labels count the functions of all parts, as in a module that was compiled as a whole.
std::string joinAssembly(llvm::ArrayRef<std::string> parts);

} // namespace tilewright

#endif

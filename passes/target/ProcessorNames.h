// The names of processors and of their features that LLVM knows. It ignores those that it does not know.
#ifndef TILEWRIGHT_TARGET_PROCESSORNAMES_H
#define TILEWRIGHT_TARGET_PROCESSORNAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace tilewright {

/// Why there is no code for processor `cpu` of the triple with the features ("+a,-b"), or nothing.
std::string whyNoProcessor(llvm::StringRef triple, llvm::StringRef cpu, llvm::StringRef features);

/// Why no processor of the triple has the feature, or nothing.
std::string whyNoFeature(llvm::StringRef triple, llvm::StringRef feature);

} // namespace tilewright

#endif

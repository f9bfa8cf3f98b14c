// Names of processors and their features, checked against LLVM's tables, because LLVM ignores unknown ones.
#ifndef TILEWRIGHT_TARGET_PROCESSORNAMES_H
#define TILEWRIGHT_TARGET_PROCESSORNAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace tilewright {

/// Returns why no code can be generated for processor `cpu` of the triple with the features ("+a,-b"), or an empty
/// string.
std::string whyNoProcessor(llvm::StringRef triple, llvm::StringRef cpu, llvm::StringRef features);

/// Returns why no processor of the triple has the feature, or an empty string.
std::string whyNoFeature(llvm::StringRef triple, llvm::StringRef feature);

} // namespace tilewright

#endif

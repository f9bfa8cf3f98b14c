// Reading JSON that anybody may have written.
#ifndef TILEWRIGHT_SUPPORT_PARSEJSON_H
#define TILEWRIGHT_SUPPORT_PARSEJSON_H

#include "llvm/Support/JSON.h"

namespace tilewright {

/// llvm::json::parse, but an error where values nest so deeply that its recursion would end the process.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace tilewright

#endif

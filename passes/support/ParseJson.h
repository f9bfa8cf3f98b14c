// A JSON parser for untrusted input.
#ifndef TILEWRIGHT_SUPPORT_PARSEJSON_H
#define TILEWRIGHT_SUPPORT_PARSEJSON_H

#include "llvm/Support/JSON.h"

namespace tilewright {

/// Calls llvm::json::parse, but returns an error for values nested so deeply that its recursion would overflow the
/// stack.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace tilewright

#endif

#include "passes/iree/Variants.h"

#include "llvm/Support/Path.h"

using namespace tilewright;

std::string tilewright::variantPath(llvm::StringRef path, size_t number) {
  llvm::SmallString<128> variant(path);
  llvm::StringRef extension = llvm::sys::path::extension(path);
  llvm::sys::path::replace_extension(variant, std::to_string(number) + extension.str());
  return variant.str().str();
}

llvm::Expected<int64_t> tilewright::computeCapability(const Target &target) {
  llvm::StringRef digits = target.cpu;
  int64_t capability = 0;
  if (!digits.consume_front("sm_") || digits.consumeInteger(10, capability))
    return llvm::createStringError("target '" + target.name + "' has no compute capability");
  return capability;
}

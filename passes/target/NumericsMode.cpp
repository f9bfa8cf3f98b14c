#include "passes/target/NumericsMode.h"

using namespace tilewright;

llvm::StringRef tilewright::stringify(NumericsMode mode) {
  return mode == NumericsMode::strict ? "strict" : mode == NumericsMode::tf32 ? "tf32" : "default";
}

std::optional<NumericsMode> tilewright::symbolizeNumericsMode(llvm::StringRef name) {
  for (NumericsMode mode : {NumericsMode::standard, NumericsMode::strict, NumericsMode::tf32})
    if (name == stringify(mode))
      return mode;
  return std::nullopt;
}

// The freedom that a plan has with numbers. It is an argument of every choice that depends on it, never a property of a
// machine.
#ifndef TILEWRIGHT_TARGET_NUMERICSMODE_H
#define TILEWRIGHT_TARGET_NUMERICSMODE_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace tilewright {

/// `standard` may leave out roundings to bf16 and f16, accumulate these types in f32, and use algebra and divisions that
/// cost one unit in the last place. `strict` rounds, accumulates and divides as the graph says. `tf32` is `standard`,
/// and contractions of f32 may round their operands to tf32 (10 bits of mantissa).
enum class NumericsMode { standard, strict, tf32 };
llvm::StringRef stringify(NumericsMode mode); ///< "default", "strict", "tf32"
std::optional<NumericsMode> symbolizeNumericsMode(llvm::StringRef name);

} // namespace tilewright

#endif

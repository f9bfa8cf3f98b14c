// Products of f32 in tf32: only where numerics=tf32 allows them, which is a property of the machine to whoever chooses.
#ifndef TILEWRIGHT_TARGET_TF32_H
#define TILEWRIGHT_TARGET_TF32_H

#include "passes/target/Target.h"

namespace tilewright {

/// The micro kernel that rounds factors in f32 to tf32.
inline constexpr llvm::StringLiteral kTf32Kernel = "mma_tf32";

/// The same machine where contractions may use it.
inline Target allowingTf32(Target target) {
  target.features += target.features.empty() ? "+tf32" : ",+tf32";
  return target;
}

} // namespace tilewright

#endif

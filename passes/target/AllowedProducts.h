// Allowed numerics, expressed as features of the target, so that every choice of a micro kernel respects them: "tf32"
// adds a micro kernel, and "strict" removes those that do not round each product separately.
#ifndef TILEWRIGHT_TARGET_ALLOWEDPRODUCTS_H
#define TILEWRIGHT_TARGET_ALLOWEDPRODUCTS_H

#include "passes/target/Target.h"

namespace tilewright {

/// The warp and warpgroup micro kernels that round f32 operands to tf32, and the feature of a target that allows them.
inline constexpr llvm::StringLiteral kTf32Kernel = "mma_tf32", kTf32GroupKernel = "wgmma_tf32", kTf32Feature = "tf32";
inline bool roundsToTf32(llvm::StringRef label) {
  return label.starts_with(kTf32Kernel) || label.starts_with(kTf32GroupKernel);
}
/// The feature of a target whose plans may use only strict micro kernels (MicroKernel::strict).
inline constexpr llvm::StringLiteral kStrictFeature = "strict";

inline Target withFeature(Target target, llvm::StringRef feature) {
  target.features += (target.features.empty() ? "+" : ",+") + feature.str();
  return target;
}
inline Target allowingTf32(Target target) { return withFeature(std::move(target), kTf32Feature); }
inline Target demandingStrict(Target target) { return withFeature(std::move(target), kStrictFeature); }

/// Returns the target to look up a named micro kernel on. Whoever made the plan has already decided whether tf32 is
/// allowed.
inline Target allowingNamed(const Target &target, llvm::StringRef label) {
  return roundsToTf32(label) ? allowingTf32(target) : target;
}

} // namespace tilewright

#endif

// What numerics allow contractions to do with their products is a property of the machine to whoever chooses a micro
// kernel: tf32 adds one, strict takes those away that do not round each product by itself.
#ifndef TILEWRIGHT_TARGET_ALLOWEDPRODUCTS_H
#define TILEWRIGHT_TARGET_ALLOWEDPRODUCTS_H

#include "passes/target/Target.h"

namespace tilewright {

/// The micro kernels of warps and of warpgroups that round factors in f32 to tf32, and what a target has that allows
/// them.
inline constexpr llvm::StringLiteral kTf32Kernel = "mma_tf32", kTf32GroupKernel = "wgmma_tf32", kTf32Feature = "tf32";
inline bool roundsToTf32(llvm::StringRef label) {
  return label.starts_with(kTf32Kernel) || label.starts_with(kTf32GroupKernel);
}
/// What a target has whose plans take strict micro kernels alone (MicroKernel::strict).
inline constexpr llvm::StringLiteral kStrictFeature = "strict";

inline Target withFeature(Target target, llvm::StringRef feature) {
  target.features += (target.features.empty() ? "+" : ",+") + feature.str();
  return target;
}
inline Target allowingTf32(Target target) { return withFeature(std::move(target), kTf32Feature); }
inline Target demandingStrict(Target target) { return withFeature(std::move(target), kStrictFeature); }

/// The machine on which a named micro kernel is looked up: whether tf32 is allowed was the plan's to say.
inline Target allowingNamed(const Target &target, llvm::StringRef label) {
  return roundsToTf32(label) ? allowingTf32(target) : target;
}

} // namespace tilewright

#endif

// Paths and compute capabilities of the variants for several GPUs in one module.
#ifndef TILEWRIGHT_IREE_VARIANTS_H
#define TILEWRIGHT_IREE_VARIANTS_H

#include "passes/target/Target.h"

#include "llvm/Support/Error.h"

namespace tilewright {

/// Returns the path of a variant's PTX: the variants of "kernels.ptx" are "kernels.0.ptx", "kernels.1.ptx", and so on.
std::string variantPath(llvm::StringRef path, size_t number);

/// Returns the compute capability that a target's PTX needs as 10 * major + minor, or an error if the target is not an
/// NVIDIA GPU.
llvm::Expected<int64_t> computeCapability(const Target &target);

} // namespace tilewright

#endif

// What kernels for several GPUs in one module are told apart by.
#ifndef TILEWRIGHT_IREE_VARIANTS_H
#define TILEWRIGHT_IREE_VARIANTS_H

#include "passes/target/Target.h"

#include "llvm/Support/Error.h"

namespace tilewright {

/// Where the PTX of a variant is written: "kernels.ptx" has "kernels.0.ptx", "kernels.1.ptx", ... beside it.
std::string variantPath(llvm::StringRef path, size_t number);

/// 10 * major + minor of the compute capability that a target's PTX needs; an error for what is no GPU of NVIDIA's.
llvm::Expected<int64_t> computeCapability(const Target &target);

} // namespace tilewright

#endif

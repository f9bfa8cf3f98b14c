// Micro kernels as text: a func.func over the three vectors of a step, which is inlined.
#ifndef TILEWRIGHT_TARGET_MICROKERNELBODY_H
#define TILEWRIGHT_TARGET_MICROKERNELBODY_H

#include "passes/target/MicroKernel.h"
#include "llvm/Support/JSON.h"

namespace tilewright {

/// Why the body is no function of the kernel's types; empty if it is one.
std::string verifyMicroKernelBody(const MicroKernel &kernel);

/// The discardable attribute of inline assembly that says which micro kernel it is of: its name.
inline constexpr llvm::StringLiteral kMicroKernelAttr = "tile.micro_kernel";

/// The kernel's step at the builder's insertion point.
mlir::Value emitStep(const MicroKernel &kernel, mlir::ImplicitLocOpBuilder &builder, mlir::Value sums, mlir::Value row,
                     mlir::Value lanes);

llvm::json::Value toJson(const MicroKernel &kernel);
/// Returns what is wrong, named by its path; a kernel from JSON has a body.
llvm::Expected<MicroKernel> microKernelFromJson(const llvm::json::Value &value);

} // namespace tilewright

#endif

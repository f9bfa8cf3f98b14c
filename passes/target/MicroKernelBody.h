// Micro kernels given as text: a func.func of the three vectors of a step, which is inlined.
#ifndef TILEWRIGHT_TARGET_MICROKERNELBODY_H
#define TILEWRIGHT_TARGET_MICROKERNELBODY_H

#include "passes/target/MicroKernel.h"
#include "llvm/Support/JSON.h"

namespace tilewright {

/// Returns why the body is not a function of the kernel's types, or an empty string if it is one.
std::string verifyMicroKernelBody(const MicroKernel &kernel);

/// Emits the kernel's step at the builder's insertion point.
mlir::Value emitStep(const MicroKernel &kernel, mlir::ImplicitLocOpBuilder &builder, mlir::Value accumulators,
                     mlir::Value lhs, mlir::Value rhs);

llvm::json::Value toJson(const MicroKernel &kernel);
/// Reads a micro kernel, which needs a body. Errors name the field by its path.
llvm::Expected<MicroKernel> microKernelFromJson(const llvm::json::Value &value);

} // namespace tilewright

#endif

// Parts of the pipelines that several backends have in common.
#ifndef TILEWRIGHT_BACKEND_COMMON_STAGES_H
#define TILEWRIGHT_BACKEND_COMMON_STAGES_H

#include "passes/backend/KernelOptions.h"

#include "mlir/Pass/PassManager.h"

namespace tilewright {

/// Adds a pass that fails if a test requests a failure at this stage.
void maybeFail(mlir::OpPassManager &manager, const KernelOptions &options, llvm::StringRef stage);

/// Adds the rewrites that spell out ops of which the others know the parts only, down to integer contractions, and that
/// of convolutions to contractions, in the layout of images that is predicted to be faster.
void addExpansions(mlir::OpPassManager &manager, const KernelOptions &options);

/// Adds the rewrite of quantized contractions to contractions of integers.
void addQuantizedMatmuls(mlir::OpPassManager &functions, const KernelOptions &options);

/// Adds the rewrite of variances to one pass over their input, unless numerics are strict.
void addOnePassVariance(mlir::OpPassManager &functions, const KernelOptions &options);

/// Adds the marks of maxima that an online softmax may use.
void addOnlineSoftmax(mlir::OpPassManager &functions, const KernelOptions &options);

/// Adds what a runtime needs to run the kernels without IREE, if a file for that is named.
void addLaunchPlan(mlir::OpPassManager &manager, const KernelOptions &options);

/// Lowers kernels from functions over vectors and memrefs to the LLVM dialect. `expandsArith` is true if the target has
/// no instructions for some ops of arith, such as extrema of floats.
void lowerToLlvm(mlir::OpPassManager &kernels, const KernelOptions &options, bool expandsArith);

} // namespace tilewright

#endif

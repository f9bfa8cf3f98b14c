// Decides where the tensors of a kernel lie in each step of the loop that launches it, so that the loop can be part of
// the kernel.
#ifndef TILEWRIGHT_IREE_REPEATEDLAUNCH_H
#define TILEWRIGHT_IREE_REPEATEDLAUNCH_H

#include "dialects/tile/TileDialect.h"
#include "passes/codegen/gpu/RepeatKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <string>
#include <variant>

namespace tilewright {

/// The result of a loop: a binding of the repeated kernel, or the part of one that its last step has written.
struct LoopResult {
  unsigned output = 0;                   ///< number of the result of the repeated launch
  std::optional<int64_t> lastElement;    ///< first element of the part; none: all of it
};

/// One launch instead of a loop over launches.
struct RepeatedLaunch {
  mlir::scf::ForOp loop;
  tile::LaunchOp launch;
  int64_t steps = 0;
  llvm::SmallVector<mlir::Value> inputs;       ///< tensors from outside the loop
  llvm::SmallVector<mlir::Type> outputs;       ///< tensors that the kernel writes
  llvm::SmallVector<StepAddress> addresses;    ///< of the tensors of the launch; bindings are inputs, then outputs
  llvm::SmallVector<LoopResult> results;       ///< of the loop
};

/// Returns the launch that replaces the loop, or why there is none. Tensors that move with the step lie at multiples of
/// `alignment` bytes.
std::variant<RepeatedLaunch, std::string> decideRepeatedLaunch(mlir::scf::ForOp loop, int64_t alignment);

} // namespace tilewright

#endif

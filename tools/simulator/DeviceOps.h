// The ops that are the device's own, each defined once: what it counts as, and which call of the runtime (or which op
// that the host has, too) stands for it.
#ifndef TILEWRIGHT_SIMULATOR_DEVICEOPS_H
#define TILEWRIGHT_SIMULATOR_DEVICEOPS_H

#include "tools/simulator/DeviceProgram.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace tilewright::simulator {

/// Builds the host's code, and the tables beside it.
struct HostCode {
  mlir::OpBuilder builder;
  mlir::ModuleOp module;
  DeviceProgram &program;

  /// Calls a function of the runtime; a pure one has the same result whenever a thread calls it.
  mlir::Value call(mlir::Location loc, llvm::StringRef function, mlir::Type result, mlir::ValueRange operands,
                   bool pure = false);
  mlir::Value number(mlir::Location loc, uint32_t value);
  /// An id for the op, as an operand.
  mlir::Value site(mlir::Operation *op);
  /// Memory of the thread that an op of a function may use while it runs.
  mlir::Value scratch(mlir::Operation *op, int64_t bytes);
};

struct DeviceOp {
  llvm::StringLiteral name; ///< of the op, or of the intrinsic that `llvm.call_intrinsic` calls
  InstructionClass instructionClass;
  /// Builds what stands for the op at the builder's position and returns its result, null if it has none. Emits an
  /// error and returns failure for a form that is not simulated.
  mlir::FailureOr<mlir::Value> (*lower)(mlir::Operation *op, uint32_t variant, HostCode &code);
  uint32_t variant = 0;
};

/// Null if the op is not of the device, or not simulated.
const DeviceOp *findDeviceOp(mlir::Operation *op);

} // namespace tilewright::simulator

#endif

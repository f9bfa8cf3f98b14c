// Defines the ops that only the device has. Each definition gives the class as which the op counts, and the call of the
// runtime, or the op of the host, that replaces it.
#ifndef TILEWRIGHT_SIMULATOR_DEVICEOPS_H
#define TILEWRIGHT_SIMULATOR_DEVICEOPS_H

#include "tools/simulator/DeviceProgram.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace tilewright::simulator {

/// Builds the code for the host, and the tables of the DeviceProgram.
struct HostCode {
  mlir::OpBuilder builder;
  mlir::ModuleOp module;
  DeviceProgram &program;

  /// Calls a function of the runtime. A pure function always returns the same result to the same thread.
  mlir::Value call(mlir::Location loc, llvm::StringRef function, mlir::Type result, mlir::ValueRange operands,
                   bool pure = false);
  mlir::Value number(mlir::Location loc, uint32_t value);
  /// Adds a site for the op and returns its number as an operand.
  mlir::Value site(mlir::Operation *op);
  /// Returns scratch memory of the thread that the op may use while it runs.
  mlir::Value scratch(mlir::Operation *op, int64_t bytes);
};

struct DeviceOp {
  llvm::StringLiteral name; ///< name of the op, or of the intrinsic that `llvm.call_intrinsic` calls
  InstructionClass instructionClass;
  /// Builds the replacement of the op at the builder's position and returns its result, or null if it has none. Emits
  /// an error and returns failure for a form of the op that is not simulated.
  mlir::FailureOr<mlir::Value> (*lower)(mlir::Operation *op, uint32_t variant, HostCode &code);
  uint32_t variant = 0;
};

/// Returns the definition of an op, or null if the op is not one of the device or is not simulated.
const DeviceOp *findDeviceOp(mlir::Operation *op);

} // namespace tilewright::simulator

#endif

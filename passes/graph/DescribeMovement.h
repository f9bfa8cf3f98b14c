// The half of describe() that reads reshapes, slices, pads and concats, and the checks that both halves share.
#ifndef TILEWRIGHT_GRAPH_DESCRIBEMOVEMENT_H
#define TILEWRIGHT_GRAPH_DESCRIBEMOVEMENT_H

#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Fails, and stores the reason if the caller wants it.
llvm::LogicalResult refuse(std::string *reason, const llvm::Twine &why);

/// Returns true if expressions may have elements of the type. Not all of them have code generation.
bool isKnownElement(mlir::Type type);

/// Succeeds if Tilewright can compute with the tensor: it is static, not empty, and of a known type.
llvm::LogicalResult checkTensor(mlir::Type type, std::string *reason);

/// Describes an op that copies elements of its operands to the result's whole index space.
llvm::LogicalResult describeMovement(mlir::Operation *op, TensorExpr &expr, std::string *reason);

} // namespace tilewright

#endif

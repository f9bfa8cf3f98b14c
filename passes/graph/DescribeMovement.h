// The half of describe() that reads reshapes, slices, pads and concats, and the checks both halves share.
#ifndef TILEWRIGHT_GRAPH_DESCRIBEMOVEMENT_H
#define TILEWRIGHT_GRAPH_DESCRIBEMOVEMENT_H

#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Fails, with the reason for whoever wants it.
llvm::LogicalResult refuse(std::string *reason, const llvm::Twine &why);

bool isSupportedElement(mlir::Type type);

/// Whether a tensor is one we can compute with: static, not empty, of a type we know.
llvm::LogicalResult checkTensor(mlir::Type type, std::string *reason);

/// Ops that copy elements of their operands to a result over its whole index space.
llvm::LogicalResult describeMovement(mlir::Operation *op, TensorExpr &expr, std::string *reason);

} // namespace tilewright

#endif

// Ops of IREE, whose dialects are not registered here.
#ifndef TILEWRIGHT_IREE_FOREIGNOP_H
#define TILEWRIGHT_IREE_FOREIGNOP_H

#include "mlir/IR/Builders.h"

namespace tilewright {

/// Returns true if the op, which may be null, has this name.
inline bool isNamed(mlir::Operation *op, llvm::StringRef name) { return op && op->getName().getStringRef() == name; }

/// Returns a property of an unregistered op; null if it has none of this name.
mlir::Attribute propertyOf(mlir::Operation *op, llvm::StringRef name);

/// Creates an unregistered op with the given properties, and an empty block if it is to have one.
mlir::Operation *createForeign(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                               mlir::ValueRange operands, mlir::TypeRange results,
                               llvm::ArrayRef<mlir::NamedAttribute> properties = {}, bool hasBlock = false);

} // namespace tilewright

#endif

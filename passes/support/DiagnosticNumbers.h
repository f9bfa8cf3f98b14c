// Numbers of a diagnostic for programs: whoever acts on an error reads them instead of its text.
#ifndef TILEWRIGHT_SUPPORT_DIAGNOSTICNUMBERS_H
#define TILEWRIGHT_SUPPORT_DIAGNOSTICNUMBERS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

namespace tilewright {

/// Bytes by which a kernel exceeds the shared memory of its target. With that, the kernel can be planned again.
inline constexpr llvm::StringLiteral kExcessBlockBytes = "excess_block_bytes";

/// Attaches a number to a diagnostic, as metadata, which its text does not show.
inline void attachNumber(mlir::Diagnostic &diagnostic, llvm::StringRef name, int64_t value) {
  mlir::Builder builder(diagnostic.getLocation().getContext());
  mlir::NamedAttribute number = builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  diagnostic.getMetadata().push_back(mlir::DiagnosticArgument(builder.getDictionaryAttr(number)));
}

/// Calls `visit` with the name and value of each number of a diagnostic.
inline void forEachNumber(mlir::Diagnostic &diagnostic, llvm::function_ref<void(llvm::StringRef, int64_t)> visit) {
  for (const mlir::DiagnosticArgument &argument : diagnostic.getMetadata()) {
    if (argument.getKind() != mlir::DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      continue;
    if (auto numbers = mlir::dyn_cast<mlir::DictionaryAttr>(argument.getAsAttribute()))
      for (mlir::NamedAttribute number : numbers)
        if (auto value = mlir::dyn_cast<mlir::IntegerAttr>(number.getValue()))
          visit(number.getName(), value.getInt());
  }
}

} // namespace tilewright

#endif

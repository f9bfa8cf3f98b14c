// The text of a type in messages, plans and names of micro kernels.
#ifndef TILEWRIGHT_SUPPORT_SPELLTYPE_H
#define TILEWRIGHT_SUPPORT_SPELLTYPE_H

#include "mlir/IR/Types.h"
#include <string>

namespace tilewright {

/// Returns the type as IR has it: "f32", "i8", "tensor<4xf16>".
std::string spell(mlir::Type type);

} // namespace tilewright

#endif

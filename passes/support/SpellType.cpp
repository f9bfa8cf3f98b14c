// Each printer of MLIR asks all dialects of a context for aliases first, which takes far longer than to print a scalar
// type. Planning spells those of every contraction again and again, so their names are put together here.
#include "passes/support/SpellType.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

std::string tilewright::spell(Type type) {
  StringRef name = type.getAbstractType().getName();
  if (isa<FloatType>(type) && name.consume_front("builtin."))
    return name.str();
  if (auto integer = dyn_cast<IntegerType>(type); integer && integer.isSignless())
    return "i" + std::to_string(integer.getWidth());
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

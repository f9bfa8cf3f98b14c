// Generated code and verifiers of the dialect's attributes.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::tile;

#include "dialects/tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttrs.cpp.inc"

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tile/TileAttrs.cpp.inc"
      >();
}

LogicalResult TilingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Scope level,
                                 ArrayRef<int64_t> sizes, ArrayRef<int64_t> order) {
  if (llvm::any_of(sizes, [](int64_t size) { return size <= 0; }))
    return emitError() << "A1: tile sizes must be positive";
  llvm::SmallBitVector seen(sizes.size());
  for (int64_t dim : order) {
    if (dim < 0 || dim >= static_cast<int64_t>(sizes.size()) || seen.test(dim))
      return emitError() << "A2: order must be a permutation of the " << sizes.size() << " dims";
    seen.set(dim);
  }
  if (!seen.all())
    return emitError() << "A2: order must be a permutation of the " << sizes.size() << " dims";
  return success();
}

LogicalResult NumericsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Roundings, Math,
                                   ArrayRef<StringAttr> forms) {
  llvm::SmallDenseSet<StringAttr> seen;
  for (StringAttr form : forms)
    if (!symbolizeForm(form) || !seen.insert(form).second)
      return emitError() << "A3: each form must be a known one and stand once, not '" << form.getValue() << "'";
  return success();
}

LogicalResult GemmAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t m, int64_t n,
                               int64_t kSlices, int64_t step, int64_t stages, Residency, Operands,
                               int64_t lhsCopy, int64_t rhsCopy) {
  for (auto [name, value] : {std::pair("m", m), std::pair("n", n), std::pair("k_slices", kSlices),
                             std::pair("step", step)})
    if (value < 1 || !llvm::isPowerOf2_64(value))
      return emitError() << "A4: " << name << " must be a power of two, not " << value;
  if (step < kSlices)
    return emitError() << "A4: a step of " << step << " along K has no element for some of the " << kSlices
                       << " slices";
  if (stages < 2)
    return emitError() << "A5: a contraction needs at least two stages, not " << stages;
  for (auto [name, bytes] : {std::pair("lhs_copy", lhsCopy), std::pair("rhs_copy", rhsCopy)})
    if (bytes < 0 || bytes > 16 || (bytes > 0 && !llvm::isPowerOf2_64(bytes)))
      return emitError() << "A9: " << name << " must be 0 or a power of two of at most 16 bytes, not " << bytes;
  return success();
}

LogicalResult BlockingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t vectors,
                                   int64_t unroll, int64_t panelK, int64_t prefetch, bool, int64_t evenRows, bool) {
  for (auto [name, value] : {std::pair("vectors", vectors), std::pair("unroll", unroll)})
    if (value < 1 || value > kMost)
      return emitError() << "A10: " << name << " must be between 1 and " << kMost << ", not " << value;
  for (auto [name, value] : {std::pair("panel_k", panelK), std::pair("prefetch", prefetch),
                             std::pair("even_rows", evenRows)})
    if (value < 0)
      return emitError() << "A11: " << name << " must not be negative, but is " << value;
  return success();
}

LogicalResult FormAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef form, unsigned, bool,
                               ArrayAttr ops, DictionaryAttr parameters, StringRef, bool, int64_t, FloatAttr, FloatAttr,
                               StringRef, StringRef, ArrayAttr locations) {
  if (!symbolizeForm(form))
    return emitError() << "A6: unknown form '" << form << "'";
  for (NamedAttribute parameter : parameters ? parameters.getValue() : ArrayRef<NamedAttribute>())
    if (!isa<DenseI64ArrayAttr>(parameter.getValue()))
      return emitError() << "A7: parameter " << parameter.getName() << " must be an array of i64";
  for (auto [field, list] : {std::pair("ops", ops), std::pair("locations", locations)})
    if (list && !llvm::all_of(list, llvm::IsaPred<StringAttr>))
      return emitError() << "A8: " << field << " must be strings";
  return success();
}

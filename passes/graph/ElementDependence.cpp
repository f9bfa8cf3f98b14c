// The maps of an expression start from its domain; the relation starts from the output. Results are projected
// permutations, so substituting output dims for parallel dims and symbols for reduced ones is exact.
#include "passes/graph/ElementDependence.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
namespace {

/// Returns each dim of the domain as an output dim, a reduction symbol, or zero if its extent is 1.
SmallVector<AffineExpr> domainFromOutput(const TensorExpr &expr, AffineMap result) {
  MLIRContext *context = result.getContext();
  SmallVector<AffineExpr> dims(expr.domain.size(), getAffineConstantExpr(0, context));
  for (auto [position, written] : llvm::enumerate(result.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(written))
      dims[dim.getPosition()] = getAffineDimExpr(position, context);
  for (auto [position, dim] : llvm::enumerate(expr.reductions))
    dims[dim] = getAffineSymbolExpr(position, context);
  return dims;
}

/// Reads the coefficients of a sum of constant multiples of dims; returns false for anything else.
bool readLinear(AffineExpr expr, int64_t factor, SmallVector<int64_t> &row, int64_t &offset) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    offset += factor * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    row[dim.getPosition()] += factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return readLinear(binary.getLHS(), factor, row, offset) && readLinear(binary.getRHS(), factor, row, offset);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && constant &&
         readLinear(binary.getLHS(), factor * constant.getValue(), row, offset);
}

std::optional<AffineForm> affineForm(AffineMap map) {
  AffineForm form;
  for (AffineExpr expr : map.getResults()) {
    form.matrix.emplace_back(map.getNumDims(), 0);
    form.offset.push_back(0);
    if (!readLinear(expr, 1, form.matrix.back(), form.offset.back()))
      return std::nullopt;
  }
  return form;
}

void printMatrix(llvm::raw_ostream &os, const AffineForm &form) {
  os << "[";
  llvm::interleaveComma(form.matrix, os, [&](const SmallVector<int64_t> &row) {
    os << "[";
    llvm::interleaveComma(row, os);
    os << "]";
  });
  os << "] v + [";
  llvm::interleaveComma(form.offset, os);
  os << "]";
}
} // namespace

std::vector<ElementDependence> elementDependence(const TensorExpr &expr) {
  std::vector<ElementDependence> dependences;
  for (auto [result, written] : llvm::enumerate(expr.results))
    for (auto [input, access] : llvm::enumerate(expr.inputs)) {
      SmallVector<AffineExpr> dims = domainFromOutput(expr, written);
      auto type = cast<RankedTensorType>(expr.op->getResult(result).getType());
      ElementDependence dependence;
      dependence.result = result;
      dependence.input = input;
      dependence.output.assign(type.getShape().begin(), type.getShape().end());
      for (int64_t dim : expr.reductions)
        dependence.reduction.push_back(expr.domain[dim]);
      dependence.map = access.map.replaceDimsAndSymbols(dims, {}, type.getRank(), expr.reductions.size());
      IntegerSet guard = access.guard;
      if (guard)
        dependence.guard = guard.replaceDimsAndSymbols(dims, {}, type.getRank(), expr.reductions.size());
      if (dependence.oneReliesOnOne())
        dependence.affine = affineForm(dependence.map);
      dependences.push_back(std::move(dependence));
    }
  return dependences;
}

void ElementDependence::print(llvm::raw_ostream &os) const {
  os << (oneReliesOnOne() ? "one-relies-on-one" : "one-relies-on-many") << ": output " << result << " to input "
     << input << ": " << map;
  if (affine) {
    os << ", ";
    printMatrix(os, *affine);
  } else if (oneReliesOnOne()) {
    os << ", quasi-affine";
  }
  for (auto [dim, extent] : llvm::enumerate(output))
    os << ", 0 <= d" << dim << " < " << extent;
  for (auto [symbol, extent] : llvm::enumerate(reduction))
    os << ", 0 <= s" << symbol << " < " << extent;
  IntegerSet set = guard;
  if (set) {
    os << ", where ";
    set.print(os);
  }
}

} // namespace tilewright

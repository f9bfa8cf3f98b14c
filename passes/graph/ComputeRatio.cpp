// The ratio counts elements, not bytes, as the paper does: the class of an expression does not depend on its element
// type. A tensor read through several accesses counts each region, up to its size.
#include "passes/graph/ComputeRatio.h"

#include "passes/support/AffineAlgebra.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
namespace {
/// Returns an upper bound of the elements an access touches: the box of its index, and at most its number of points.
int64_t elementsTouched(const TensorAccess &access, ArrayRef<int64_t> domain) {
  SmallVector<Interval> ranges = guardedRanges(access.guard, domain);
  int64_t points = 1, box = 1;
  for (Interval range : ranges)
    points *= range.size();
  for (AffineExpr index : access.map.getResults())
    box *= boundExpr(index, ranges).size();
  return std::min(points, box);
}
} // namespace

double ComputeRatio::ratio() const {
  int64_t moved = elementsRead + elementsWritten;
  return moved == 0 ? 0 : static_cast<double>(arithmetic) / moved;
}

ComputeRatio computeRatio(const TensorExpr &expr, double threshold) {
  ComputeRatio ratio;
  ratio.threshold = threshold;
  ratio.arithmetic = expr.arithmetic();
  llvm::MapVector<Value, int64_t> read;
  for (const TensorAccess &access : expr.inputs) {
    int64_t size = cast<RankedTensorType>(access.tensor.getType()).getNumElements();
    int64_t &elements = read[access.tensor];
    elements = std::min(size, elements + elementsTouched(access, expr.domain));
  }
  for (auto &[tensor, elements] : read)
    ratio.elementsRead += elements;
  for (Type type : expr.op->getResultTypes())
    ratio.elementsWritten += cast<RankedTensorType>(type).getNumElements();
  return ratio;
}

void ComputeRatio::print(llvm::raw_ostream &os) const {
  os << (memoryIntensive() ? "memory-intensive" : "compute-intensive") << ": " << arithmetic << " operations, "
     << elementsRead << " elements read, " << elementsWritten << " written, ratio " << llvm::format("%.3f", ratio());
}

} // namespace tilewright

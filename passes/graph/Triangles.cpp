// Guesses the diagonal from the first row that holds two numbers, and then checks all elements.
#include "passes/graph/Triangles.h"

#include "dialects/tile/TileAttributeNames.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace tilewright;

static std::optional<Triangles> fromAttribute(ArrayAttr attribute) {
  auto diagonal = attribute.size() == 3 ? dyn_cast<IntegerAttr>(attribute[0]) : IntegerAttr();
  auto below = diagonal ? dyn_cast<FloatAttr>(attribute[1]) : FloatAttr();
  auto above = below ? dyn_cast<FloatAttr>(attribute[2]) : FloatAttr();
  if (!above)
    return std::nullopt;
  return Triangles{diagonal.getInt(), below.getValueAsDouble(), above.getValueAsDouble()};
}

static SmallVector<double> numbersOf(DenseElementsAttr values) {
  SmallVector<double> numbers;
  for (Attribute value : values.getValues<Attribute>())
    if (auto real = dyn_cast<FloatAttr>(value))
      numbers.push_back(real.getValueAsDouble());
    else if (auto integer = dyn_cast<IntegerAttr>(value); integer && integer.getType().isInteger(1))
      numbers.push_back(integer.getValue().isZero() ? 0 : 1);
    else
      return {};
  return numbers;
}

static std::optional<Triangles> fromValues(ArrayRef<double> values, int64_t rows, int64_t columns) {
  if (values.empty())
    return std::nullopt;
  // The first row with both numbers shows where the diagonal is.
  for (int64_t row = 0; row < rows; ++row) {
    ArrayRef<double> own = values.slice(row * columns, columns);
    int64_t first = llvm::find_if(own, [&](double value) { return value != own[0]; }) - own.begin();
    if (first == columns)
      continue;
    Triangles triangles{first - row, own[0], own[first]};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (values[i * columns + j] != (j - i >= triangles.diagonal ? triangles.above : triangles.below))
          return std::nullopt;
    return triangles;
  }
  return std::nullopt;
}

std::optional<Triangles> tilewright::trianglesOf(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!op || !type || !type.hasStaticShape() || type.getRank() < 2)
    return std::nullopt;
  ArrayRef<int64_t> shape = type.getShape();
  if (llvm::any_of(shape.drop_back(2), [](int64_t extent) { return extent != 1; }))
    return std::nullopt;
  if (auto attribute = op->getAttrOfType<ArrayAttr>(kTrianglesAttr))
    return fromAttribute(attribute);
  DenseElementsAttr values;
  if (!matchPattern(op, m_Constant(&values)) || values.isSplat())
    return std::nullopt;
  return fromValues(numbersOf(values), shape[type.getRank() - 2], shape.back());
}

// A step takes the elements of its parts and moves them, or multiplies them with a matrix.
#include "passes/graph/EvaluateRecipe.h"

#include "passes/graph/ParameterRecipe.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {
using Kind = ParameterRecipe::Kind;

constexpr unsigned kNoPart = ~0u;

/// The index of an element in the row-major order of a shape.
int64_t linear(ArrayRef<int64_t> at, ArrayRef<int64_t> shape) {
  int64_t index = 0;
  for (auto [coordinate, size] : llvm::zip_equal(at, shape))
    index = index * size + coordinate;
  return index;
}

SmallVector<int64_t> coordinates(int64_t index, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> at(shape.size());
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    at[dim] = index % shape[dim];
    index /= shape[dim];
  }
  return at;
}

/// Returns which element of which part is moved to an element of the step's result; no part: zero.
std::pair<unsigned, int64_t> sourceOf(const ParameterRecipe &step, int64_t element) {
  SmallVector<int64_t> at = coordinates(element, step.shape), from(at);
  unsigned part = 0;
  switch (step.kind) {
  case Kind::reshape:
    return {0, element};
  case Kind::transpose:
    for (auto [dim, source] : llvm::enumerate(step.order))
      from[source] = at[dim];
    break;
  case Kind::slice:
    for (auto [dim, low] : llvm::enumerate(step.low))
      from[dim] += low;
    break;
  case Kind::pad:
    for (auto [dim, low] : llvm::enumerate(step.low)) {
      from[dim] -= low;
      if (from[dim] < 0 || from[dim] >= step.parts[0].shape[dim])
        return {kNoPart, 0};
    }
    break;
  case Kind::concat:
    for (; from[step.axis] >= step.parts[part].shape[step.axis]; ++part)
      from[step.axis] -= step.parts[part].shape[step.axis];
    break;
  case Kind::parameter:
  case Kind::product:
  case Kind::swizzle:
    llvm_unreachable("does not move elements of parts, or is refused");
  }
  return {part, linear(from, step.parts[part].shape)};
}

using Elements = std::vector<char>;

Elements multiplied(const ParameterRecipe &step, const Elements &part) {
  int64_t rows = step.shape[0], depth = step.parts[0].shape[0];
  int64_t columns = llvm::product_of(ArrayRef(step.shape).drop_front());
  Elements result(rows * columns * sizeof(float));
  const auto *from = reinterpret_cast<const float *>(part.data());
  auto *into = reinterpret_cast<float *>(result.data());
  std::vector<double> sums(columns);
  for (int64_t row = 0; row < rows; ++row) {
    llvm::fill(sums, 0);
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t column = 0; column < columns; ++column)
        sums[column] += step.matrix[row * depth + k] * from[k * columns + column];
    llvm::copy(sums, into + row * columns);
  }
  return result;
}

/// Returns the elements of a step's result, of `bytes` each, in row-major order.
Elements evaluate(const ParameterRecipe &step, ArrayRef<DenseElementsAttr> constants, size_t bytes) {
  int64_t count = llvm::product_of(step.shape);
  if (step.kind == Kind::parameter) {
    const DenseElementsAttr &from = constants[std::stoul(step.name)];
    if (!from.isSplat())
      return Elements(from.getRawData().begin(), from.getRawData().end());
    Elements all;
    for (int64_t element = 0; element < count; ++element)
      all.insert(all.end(), from.getRawData().begin(), from.getRawData().end());
    return all;
  }
  std::vector<Elements> parts;
  for (const ParameterRecipe &part : step.parts)
    parts.push_back(evaluate(part, constants, bytes));
  if (step.kind == Kind::reshape)
    return std::move(parts[0]);
  if (step.kind == Kind::product)
    return multiplied(step, parts[0]);
  Elements result(count * bytes, 0);
  for (int64_t element = 0; element < count; ++element)
    if (auto [part, from] = sourceOf(step, element); part != kNoPart)
      std::copy_n(parts[part].begin() + from * bytes, bytes, result.begin() + element * bytes);
  return result;
}

bool isSwizzled(const ParameterRecipe &step) {
  return step.kind == Kind::swizzle || llvm::any_of(step.parts, isSwizzled);
}
} // namespace

DenseElementsAttr tilewright::constantOfRecipe(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !type.getElementType().isIntOrFloat() || type.getElementTypeBitWidth() % 8 != 0)
    return {};
  SmallVector<DenseElementsAttr> constants;
  std::optional<ParameterRecipe> recipe = recipeOf(tensor, [&](Value leaf) -> std::optional<ParameterRecipe> {
    DenseElementsAttr elements;
    if (!matchPattern(leaf, m_Constant(&elements)))
      return std::nullopt;
    ParameterRecipe constant;
    constant.kind = Kind::parameter;
    constant.shape = cast<RankedTensorType>(leaf.getType()).getShape().vec();
    constant.name = std::to_string(constants.size());
    constants.push_back(elements);
    return constant;
  });
  if (!recipe || isSwizzled(*recipe) || !recipe->verify().empty())
    return {};
  Elements packed = evaluate(*recipe, constants, type.getElementTypeBitWidth() / 8);
  return DenseElementsAttr::getFromRawBuffer(type, packed);
}

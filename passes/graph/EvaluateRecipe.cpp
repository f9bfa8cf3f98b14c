// Each step maps an element of its result to the element of a part, or to zero, so an element is found by following the
// steps down to a constant.
#include "passes/graph/EvaluateRecipe.h"

#include "passes/graph/ParameterRecipe.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {
using Kind = ParameterRecipe::Kind;

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

/// An element of a constant, or zero.
struct Source {
  const ParameterRecipe *constant = nullptr; ///< null: zero
  int64_t element = 0;
};

/// Returns the source of an element of a step's result.
Source sourceOf(const ParameterRecipe &step, int64_t element) {
  if (step.kind == Kind::parameter)
    return {&step, element};
  const ParameterRecipe *part = &step.parts.front();
  SmallVector<int64_t> at = coordinates(element, step.shape), from(at);
  switch (step.kind) {
  case Kind::reshape:
    return sourceOf(*part, element);
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
      if (from[dim] < 0 || from[dim] >= part->shape[dim])
        return {};
    }
    break;
  case Kind::concat:
    for (; from[step.axis] >= part->shape[step.axis]; ++part)
      from[step.axis] -= part->shape[step.axis];
    break;
  case Kind::parameter:
  case Kind::swizzle:
    llvm_unreachable("a source, and a step that is refused");
  }
  return sourceOf(*part, linear(from, part->shape));
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
  size_t bytes = type.getElementTypeBitWidth() / 8;
  std::vector<char> packed(type.getNumElements() * bytes, 0);
  for (int64_t element = 0; element < type.getNumElements(); ++element) {
    Source source = sourceOf(*recipe, element);
    if (!source.constant)
      continue;
    const DenseElementsAttr &from = constants[std::stoul(source.constant->name)];
    const char *first = from.getRawData().data() + (from.isSplat() ? 0 : source.element * bytes);
    std::copy_n(first, bytes, packed.begin() + element * bytes);
  }
  return DenseElementsAttr::getFromRawBuffer(type, packed);
}

// The first half checks, prints and serializes recipes. The second half reads them backwards from the op that makes the
// weight.
#include "passes/graph/ParameterRecipe.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/StartValue.h"
#include "passes/graph/SwizzledLayout.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Verification and printing
//===----------------------------------------------------------------------===//

static StringRef nameOf(ParameterRecipe::Kind kind) {
  switch (kind) {
  case ParameterRecipe::Kind::parameter:
    return "parameter";
  case ParameterRecipe::Kind::reshape:
    return "reshape";
  case ParameterRecipe::Kind::transpose:
    return "transpose";
  case ParameterRecipe::Kind::slice:
    return "slice";
  case ParameterRecipe::Kind::pad:
    return "pad";
  case ParameterRecipe::Kind::concat:
    return "concat";
  case ParameterRecipe::Kind::swizzle:
    return "swizzle";
  case ParameterRecipe::Kind::product:
    return "product";
  }
  llvm_unreachable("unknown kind");
}

/// Returns the number of elements, or nothing if it overflows.
static std::optional<int64_t> elements(ArrayRef<int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    if (size < 0 || llvm::MulOverflow(product, size, product))
      return std::nullopt;
  return product;
}

static std::string verifyStep(const ParameterRecipe &step) {
  using Kind = ParameterRecipe::Kind;
  if (!elements(step.shape))
    return "the number of elements overflows";
  if (step.kind == Kind::parameter)
    return step.parts.empty() && !step.name.empty() ? "" : "a parameter has a name and no parts";
  if (step.parts.empty() || (step.kind != Kind::concat && step.parts.size() != 1))
    return "a wrong number of parts";
  ArrayRef<int64_t> from = step.parts[0].shape, to = step.shape;
  if (step.kind == Kind::reshape)
    return elements(from) == elements(to) ? "" : "a reshape keeps the number of elements";
  if (from.size() != to.size())
    return "the rank changes";
  if (step.kind == Kind::transpose) {
    if (!isPermutationVector(step.order) || step.order.size() != to.size())
      return "the order is not a permutation";
    for (auto [dim, source] : llvm::enumerate(step.order))
      if (to[dim] != from[source])
        return "a transpose keeps sizes";
    return "";
  }
  if (step.kind == Kind::swizzle) {
    if (from != to || to.size() < 2)
      return "a swizzle keeps sizes and needs two dims";
    int64_t atoms = step.atom > 0 && to.back() % step.atom == 0 ? to.back() / step.atom : 0;
    return atoms > 0 && atoms <= kSwizzleLines && llvm::isPowerOf2_64(atoms) ? "" : "lines have 1, 2, 4 or 8 atoms";
  }
  if (step.kind == Kind::product) {
    bool fits = !to.empty() && from.drop_front() == to.drop_front() &&
                static_cast<int64_t>(step.matrix.size()) == from[0] * to[0];
    return fits ? "" : "a product replaces the first dim";
  }
  if (step.kind == Kind::slice) {
    if (step.low.size() != to.size())
      return "a slice names every dim";
    for (auto [low, source, size] : llvm::zip(step.low, from, to))
      if (low < 0 || size > source || low > source - size)
        return "a slice stays inside";
    return "";
  }
  if (step.kind == Kind::pad) {
    if (step.low.size() != to.size())
      return "a pad names every dim";
    for (auto [low, source, size] : llvm::zip(step.low, from, to))
      if (low < 0 || source > size || low > size - source)
        return "a pad only adds";
    return "";
  }
  SmallVector<int64_t> sum(from);
  if (step.axis < 0 || step.axis >= static_cast<int64_t>(to.size()))
    return "no such axis";
  for (const ParameterRecipe &part : llvm::drop_begin(step.parts)) {
    if (part.shape.size() != sum.size())
      return "the rank changes";
    sum[step.axis] += part.shape[step.axis];
  }
  return ArrayRef<int64_t>(sum) == to ? "" : "the parts do not add up";
}

std::string ParameterRecipe::verify() const {
  for (const ParameterRecipe &part : parts)
    if (std::string wrong = part.verify(); !wrong.empty())
      return wrong;
  std::string wrong = verifyStep(*this);
  return wrong.empty() ? wrong : nameOf(kind).str() + ": " + wrong;
}

static void printSizes(raw_ostream &os, ArrayRef<int64_t> sizes) { llvm::interleave(sizes, os, "x"); }

void ParameterRecipe::print(raw_ostream &os) const {
  if (kind == Kind::parameter) {
    os << scope << "::" << name;
  } else {
    os << nameOf(kind) << "(";
    llvm::interleaveComma(parts, os, [&](const ParameterRecipe &part) { part.print(os); });
    if (kind == Kind::transpose)
      printSizes(os << ", order ", order);
    if (kind == Kind::pad || kind == Kind::slice)
      printSizes(os << ", low ", low);
    if (kind == Kind::concat)
      os << ", axis " << axis;
    if (kind == Kind::swizzle)
      os << ", atom " << atom;
    if (kind == Kind::product)
      os << ", matrix of " << shape[0] << " rows";
    os << ")";
  }
  printSizes(os << " : ", shape);
}

std::string ParameterRecipe::toString() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

llvm::json::Value ParameterRecipe::toJson() const {
  llvm::json::Object json{{"step", nameOf(kind)}, {"shape", llvm::json::Array(shape)}};
  if (kind == Kind::parameter) {
    json["scope"] = scope;
    json["name"] = name;
    return json;
  }
  if (kind == Kind::transpose)
    json["order"] = llvm::json::Array(order);
  if (kind == Kind::pad || kind == Kind::slice)
    json["low"] = llvm::json::Array(low);
  if (kind == Kind::concat)
    json["axis"] = axis;
  if (kind == Kind::swizzle)
    json["atom"] = atom;
  if (kind == Kind::product)
    json["matrix"] = llvm::json::Array(matrix);
  llvm::json::Array of;
  for (const ParameterRecipe &part : parts)
    of.push_back(part.toJson());
  json["of"] = std::move(of);
  return json;
}

//===----------------------------------------------------------------------===//
// Reading recipes from tensor ops
//===----------------------------------------------------------------------===//

static ParameterRecipe step(ParameterRecipe::Kind kind, ArrayRef<int64_t> shape, ParameterRecipe of) {
  ParameterRecipe recipe;
  recipe.kind = kind;
  recipe.shape = shape.vec();
  recipe.parts.push_back(std::move(of));
  return recipe;
}

static ParameterRecipe transposed(ParameterRecipe of, ArrayRef<int64_t> order) {
  if (llvm::equal(order, llvm::seq<int64_t>(order.size())))
    return of;
  SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](int64_t dim) { return of.shape[dim]; });
  ParameterRecipe recipe = step(ParameterRecipe::Kind::transpose, shape, std::move(of));
  recipe.order = order.vec();
  return recipe;
}

/// Returns the loops that an index walks, outermost first: d0, or d0 * size(d1) + d1.
static std::optional<SmallVector<int64_t>> loopsOf(AffineExpr index, ArrayRef<int64_t> sizes) {
  if (auto dim = dyn_cast<AffineDimExpr>(index))
    return SmallVector<int64_t>{dim.getPosition()};
  auto sum = dyn_cast<AffineBinaryOpExpr>(index);
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return std::nullopt;
  auto inner = dyn_cast<AffineDimExpr>(sum.getRHS());
  auto scaled = dyn_cast<AffineBinaryOpExpr>(sum.getLHS());
  if (!inner || !scaled || scaled.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto outer = dyn_cast<AffineDimExpr>(scaled.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(scaled.getRHS());
  if (!outer || !factor || factor.getValue() != sizes[inner.getPosition()])
    return std::nullopt;
  return SmallVector<int64_t>{outer.getPosition(), inner.getPosition()};
}

/// Reads a linalg.generic that copies each element once: a reshape that splits dims, then a transpose.
static std::optional<ParameterRecipe> ofCopy(linalg::GenericOp op, ParameterLookup parameterOf) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() > 0)
    return std::nullopt;
  auto yield = cast<linalg::YieldOp>(op.getBody()->getTerminator());
  if (yield.getOperand(0) != op.getBody()->getArgument(0))
    return std::nullopt;
  AffineMap from = op.getIndexingMapsArray()[0], into = op.getIndexingMapsArray()[1];
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (!into.isPermutation() || llvm::is_contained(sizes, ShapedType::kDynamic))
    return std::nullopt;
  SmallVector<int64_t> loops, split;
  for (AffineExpr index : from.getResults()) {
    auto walked = loopsOf(index, sizes);
    if (!walked)
      return std::nullopt;
    llvm::append_range(loops, *walked);
  }
  if (loops.size() != sizes.size() || !isPermutationVector(loops))
    return std::nullopt;
  std::optional<ParameterRecipe> source = recipeOf(op.getInputs()[0], parameterOf);
  if (!source)
    return std::nullopt;
  for (int64_t loop : loops)
    split.push_back(sizes[loop]);
  if (ArrayRef<int64_t>(split) != ArrayRef<int64_t>(source->shape))
    source = step(ParameterRecipe::Kind::reshape, split, std::move(*source));
  SmallVector<int64_t> order;
  for (AffineExpr index : into.getResults())
    order.push_back(llvm::find(loops, cast<AffineDimExpr>(index).getPosition()) - loops.begin());
  return transposed(std::move(*source), order);
}

/// Most elements of the matrix of a product, which a recipe states one by one: a choice. Winograd's has 16 x 9.
static constexpr int64_t kMostOfMatrix = 1024;

/// Reads a linalg.generic that multiplies a constant matrix with a tensor in f32, along its first dim.
static std::optional<ParameterRecipe> ofProduct(linalg::GenericOp op, ParameterLookup parameterOf) {
  DenseElementsAttr matrix;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() != 1 || !type ||
      !matchPattern(op.getInputs()[0], m_Constant(&matrix)) || matrix.getNumElements() > kMostOfMatrix ||
      !llvm::all_of(op->getOperandTypes(), [](Type each) { return getElementTypeOrSelf(each).isF32(); }) ||
      !startsFromZero(op) || !addsPlainProducts(*op.getBody()))
    return std::nullopt;
  unsigned last = op.getNumLoops() - 1;
  AffineMap all = AffineMap::getMultiDimIdentityMap(last + 1, op.getContext());
  SmallVector<AffineExpr> ofPart{all.getResult(last)};
  llvm::append_range(ofPart, all.getResults().slice(1, last - 1));
  auto mapTo = [&](ArrayRef<AffineExpr> index) { return AffineMap::get(last + 1, 0, index, op.getContext()); };
  SmallVector<AffineMap> maps{mapTo({all.getResult(0), all.getResult(last)}), mapTo(ofPart), all.getMajorSubMap(last)};
  if (last < 1 || !llvm::equal(op.getIndexingMapsArray(), maps))
    return std::nullopt;
  std::optional<ParameterRecipe> source = recipeOf(op.getInputs()[1], parameterOf);
  if (!source)
    return std::nullopt;
  ParameterRecipe recipe = step(ParameterRecipe::Kind::product, type.getShape(), std::move(*source));
  for (float element : matrix.getValues<float>())
    recipe.matrix.push_back(element);
  return recipe;
}

/// Reads an op whose body gathers elements. Its attribute states the swizzle.
static std::optional<ParameterRecipe> ofSwizzle(linalg::GenericOp op, IntegerAttr atom, ParameterLookup parameterOf) {
  std::optional<ParameterRecipe> source = recipeOf(op.getInputs()[0], parameterOf);
  if (!source)
    return std::nullopt;
  std::vector<int64_t> shape = source->shape;
  ParameterRecipe recipe = step(ParameterRecipe::Kind::swizzle, shape, std::move(*source));
  recipe.atom = atom.getInt();
  return recipe;
}

static std::optional<ParameterRecipe> ofPad(tensor::PadOp op, ParameterLookup parameterOf) {
  Value filling = op.getConstantPaddingValue();
  Attribute zero = filling ? cast<TypedAttr>(Builder(op).getZeroAttr(filling.getType())) : Attribute();
  Attribute value;
  auto low = getConstantIntValues(op.getMixedLowPad());
  // Only +0.0 has no bits set in every type.
  if (!filling || !matchPattern(filling, m_Constant(&value)) || value != zero || !low)
    return std::nullopt;
  std::optional<ParameterRecipe> source = recipeOf(op.getSource(), parameterOf);
  if (!source)
    return std::nullopt;
  ParameterRecipe recipe = step(ParameterRecipe::Kind::pad, op.getResultType().getShape(), std::move(*source));
  recipe.low.assign(low->begin(), low->end());
  return recipe;
}

static std::optional<ParameterRecipe> ofSlice(tensor::ExtractSliceOp op, ParameterLookup parameterOf) {
  if (op->getNumOperands() != 1 || !op.hasUnitStride())
    return std::nullopt;
  std::optional<ParameterRecipe> source = recipeOf(op.getSource(), parameterOf);
  if (!source)
    return std::nullopt;
  ParameterRecipe recipe = step(ParameterRecipe::Kind::slice, op.getStaticSizes(), std::move(*source));
  recipe.low = op.getStaticOffsets().vec();
  ArrayRef<int64_t> shape = op.getResultType().getShape(); // possibly without dims of one element
  return shape == op.getStaticSizes() ? recipe : step(ParameterRecipe::Kind::reshape, shape, std::move(recipe));
}

static std::optional<ParameterRecipe> ofConcat(tensor::ConcatOp op, ParameterLookup parameterOf) {
  ParameterRecipe recipe;
  recipe.kind = ParameterRecipe::Kind::concat;
  recipe.shape = op.getResultType().getShape().vec();
  recipe.axis = op.getDim();
  for (Value input : op.getInputs()) {
    std::optional<ParameterRecipe> part = recipeOf(input, parameterOf);
    if (!part)
      return std::nullopt;
    recipe.parts.push_back(std::move(*part));
  }
  return recipe;
}

std::optional<ParameterRecipe> tilewright::recipeOf(Value tensor, ParameterLookup parameterOf) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  Operation *op = tensor.getDefiningOp();
  if (!op || !type || !type.hasStaticShape())
    return std::nullopt;
  if (auto copy = dyn_cast<linalg::GenericOp>(op)) {
    auto atom = op->getAttrOfType<IntegerAttr>(kSwizzleAttr);
    if (atom)
      return ofSwizzle(copy, atom, parameterOf);
    std::optional<ParameterRecipe> product = ofProduct(copy, parameterOf);
    return product ? product : ofCopy(copy, parameterOf);
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return ofPad(pad, parameterOf);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return ofSlice(slice, parameterOf);
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return ofConcat(concat, parameterOf);
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    auto source = recipeOf(transpose.getInput(), parameterOf);
    return source ? std::optional(transposed(std::move(*source), transpose.getPermutation())) : std::nullopt;
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    auto source = recipeOf(op->getOperand(0), parameterOf);
    return source ? std::optional(step(ParameterRecipe::Kind::reshape, type.getShape(), std::move(*source)))
                  : std::nullopt;
  }
  return parameterOf(tensor);
}

#include "passes/normalize/TwoPhaseReduction.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Form.h"
#include "passes/graph/Rounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Conditions for a split
//===----------------------------------------------------------------------===//

bool tilewright::isReduced(linalg::GenericOp op, unsigned dim) {
  return op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
}

/// Returns the op of the body that accumulates result `i`.
static Operation *combinerOf(linalg::GenericOp op, unsigned i) {
  return op.getBody()->getTerminator()->getOperand(i).getDefiningOp();
}

static BlockArgument accumulatorOf(linalg::GenericOp op, unsigned i) {
  return op.getBody()->getArgument(op.getNumDpsInputs() + i);
}

static bool sumsOrMultiplies(linalg::GenericOp op, unsigned i) {
  return isa<arith::AddFOp, arith::MulFOp>(combinerOf(op, i));
}

/// Returns the type of partial results: f32 for sums of narrow floats, which would lose precision in their own type.
static Type accumulatorType(linalg::GenericOp op, unsigned i) {
  Type element = getElementTypeOrSelf(op.getResult(i).getType());
  return sumsOrMultiplies(op, i) && isNarrowFloat(element) ? Float32Type::get(op.getContext()) : element;
}

bool tilewright::multiplies(linalg::GenericOp op) {
  FailureOr<TensorExpr> expr = describe(op);
  return succeeded(expr) && expr->kind == ExprKind::contraction;
}

std::string tilewright::whyNotSplittable(linalg::GenericOp op) {
  FailureOr<TensorExpr> expr = describe(op);
  if (failed(expr))
    return "it is not a tensor expression of static shape";
  if (expr->kind == ExprKind::contraction)
    if (std::string why = whyNoSumOfProducts(*expr); !why.empty())
      return why;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    std::optional<vector::CombiningKind> kind =
        combiningKind(accumulatorOf(op, i), op.getBody()->getTerminator()->getOperand(i));
    if (!kind || !arith::getNeutralElement(combinerOf(op, i)))
      return llvm::formatv("the combination of result {0} is not known to be associative", i);
    if (!constantElement(op.getDpsInits()[i]))
      return llvm::formatv("result {0} does not start from a constant", i);
  }
  return "";
}

bool tilewright::isCuttable(linalg::GenericOp op, unsigned dim) {
  AffineExpr own = getAffineDimExpr(dim, op.getContext());
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    for (AffineExpr index : map.getResults())
      if (index != own && index.isFunctionOfDim(dim))
        return false;
    if (llvm::count(map.getResults(), own) > 1)
      return false;
  }
  return true;
}

bool tilewright::canCut(linalg::GenericOp op, ArrayRef<SplitDim> split) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  return llvm::all_of(split, [&](const SplitDim &own) {
    return own.parts == extents[own.dim] || (extents[own.dim] % own.parts == 0 && isCuttable(op, own.dim));
  });
}

//===----------------------------------------------------------------------===//
// The rewrite
//===----------------------------------------------------------------------===//

namespace {
/// Builds the two phases of a split reduction.
class TwoPhaseBuilder {
public:
  TwoPhaseBuilder(OpBuilder &builder, linalg::GenericOp op, ArrayRef<SplitDim> split, SplitViews &views)
      : builder(builder), op(op), loc(op.getLoc()), views(views), extents(op.getStaticLoopRanges()) {
    parts.resize(extents.size(), 1);
    for (const SplitDim &dim : split)
      parts[dim.dim] = dim.parts;
    assignDims();
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      accumulators.push_back(accumulatorType(op, i));
  }

  TwoPhases build() {
    TwoPhases phases;
    phases.partial = buildPartial();
    phases.final = buildFinal(phases.partial.getResults());
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      phases.results.push_back(
          roundedTo(builder, phases.final.getResult(i), cast<RankedTensorType>(op.getResult(i).getType())));
    return phases;
  }

private:
  bool isCut(unsigned dim) const { return parts[dim] > 1 && parts[dim] < extents[dim]; }

  /// Assigns the dims of the first phase. A dim that is cut becomes two: the part, then the index within the part.
  void assignDims() {
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      bool whole = parts[dim] > 1 && !isCut(dim);
      if (isCut(dim)) {
        partDims.push_back(iterators.size());
        iterators.push_back(utils::IteratorType::parallel);
      }
      if (whole)
        partDims.push_back(iterators.size());
      innerDims.push_back(iterators.size());
      iterators.push_back(whole ? utils::IteratorType::parallel : op.getIteratorTypesArray()[dim]);
    }
  }

  AffineExpr newDim(unsigned position) const { return getAffineDimExpr(position, builder.getContext()); }

  /// Returns the view of an input that the first phase reads, and its map.
  std::pair<Value, AffineMap> viewOf(OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    Value tensor = input->get();
    SmallVector<AffineExpr> renamed, indices;
    for (unsigned position : innerDims)
      renamed.push_back(newDim(position));
    for (int64_t position = map.getNumResults() - 1; position >= 0; --position) {
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(position));
      indices.push_back(map.getResult(position).replaceDims(renamed));
      if (!dim || !isCut(dim.getPosition()))
        continue;
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(tensor);
      tensor = cutView(builder, loc, tensor, position, parts[dim.getPosition()], views);
      indices.push_back(newDim(innerDims[dim.getPosition()] - 1));
    }
    std::reverse(indices.begin(), indices.end());
    return {tensor, AffineMap::get(iterators.size(), 0, indices, builder.getContext())};
  }

  TypedAttr neutral(unsigned i) {
    TypedAttr attr = *arith::getNeutralElement(combinerOf(op, i));
    auto number = dyn_cast<FloatAttr>(attr);
    if (!number)
      return attr;
    // An extremum that ignores NaN has NaN as its neutral element. An infinity does as well, because the final phase
    // starts from a number.
    APFloat value = number.getValue();
    if (value.isNaN())
      value = APFloat::getInf(value.getSemantics(), /*Negative=*/isa<arith::MaxNumFOp>(combinerOf(op, i)));
    return convert(value, accumulators[i]);
  }

  static FloatAttr convert(APFloat value, Type type) {
    bool inexact;
    value.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
    return FloatAttr::get(type, value);
  }

  Value filled(ArrayRef<int64_t> shape, TypedAttr value) {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, value.getType());
    Value scalar = arith::ConstantOp::create(builder, loc, value);
    return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
  }

  ArrayRef<int64_t> resultShape(unsigned i) { return cast<RankedTensorType>(op.getResult(i).getType()).getShape(); }

  linalg::GenericOp buildPartial() {
    SmallVector<Value> inputs, inits;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto [tensor, map] = viewOf(input);
      inputs.push_back(tensor);
      maps.push_back(map);
    }
    SmallVector<AffineExpr> renamed, partIndices;
    SmallVector<int64_t> partShape;
    for (unsigned position : innerDims)
      renamed.push_back(newDim(position));
    for (unsigned position : partDims)
      partIndices.push_back(newDim(position));
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      if (parts[dim] > 1)
        partShape.push_back(parts[dim]);
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      SmallVector<int64_t> shape(partShape);
      llvm::append_range(shape, resultShape(i));
      inits.push_back(filled(shape, neutral(i)));
      SmallVector<AffineExpr> indices(partIndices);
      for (AffineExpr index : op.getMatchingIndexingMap(op.getDpsInitOperand(i)).getResults())
        indices.push_back(index.replaceDims(renamed));
      maps.push_back(AffineMap::get(iterators.size(), 0, indices, builder.getContext()));
    }
    auto partial =
        linalg::GenericOp::create(builder, loc, TypeRange(ValueRange(inits)), inputs, inits, maps, iterators,
                                  [&](OpBuilder &at, Location, ValueRange values) { cloneBody(at, values); });
    setForm(partial, tile::Form::twoPhaseReduction);
    if (Attribute before = op->getAttr(kFormAttr)) // says more
      partial->setAttr(kFormAttr, before);
    return partial;
  }

  void cloneBody(OpBuilder &at, ValueRange values) {
    IRMapping mapping;
    mapping.map(op.getBody()->getArguments(), values);
    for (Operation &inner : op.getBody()->without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
        mapping.map(index.getResult(), indexOf(at, index.getDim()));
        continue;
      }
      unsigned result = llvm::find(op.getBody()->getTerminator()->getOperands(), inner.getResult(0)).getIndex();
      if (result < accumulators.size())
        combine(at, inner, result, mapping);
      else
        at.clone(inner, mapping);
    }
    linalg::YieldOp::create(at, loc,
                            llvm::map_to_vector(op.getBody()->getTerminator()->getOperands(),
                                                [&](Value value) { return mapping.lookup(value); }));
  }

  Value indexOf(OpBuilder &at, unsigned dim) {
    Value inPart = linalg::IndexOp::create(at, loc, innerDims[dim]);
    if (!isCut(dim))
      return inPart;
    Value part = linalg::IndexOp::create(at, loc, innerDims[dim] - 1);
    Value size = arith::ConstantIndexOp::create(at, loc, extents[dim] / parts[dim]);
    return arith::AddIOp::create(at, loc, arith::MulIOp::create(at, loc, part, size), inPart);
  }

  /// Clones the accumulating op, and widens its operands if the accumulator is wider.
  void combine(OpBuilder &at, Operation &inner, unsigned i, IRMapping &mapping) {
    IRMapping own = mapping;
    for (Value operand : inner.getOperands()) {
      Value term = mapping.lookupOrDefault(operand);
      if (term.getType() != accumulators[i])
        own.map(operand, arith::ExtFOp::create(at, loc, accumulators[i], term));
    }
    Operation *copy = at.clone(inner, own);
    copy->getResult(0).setType(accumulators[i]);
    mapping.map(inner.getResult(0), copy->getResult(0));
  }

  /// Returns the start of the final phase, in the type of the partial results.
  Value finalInit(unsigned i) {
    Value init = op.getDpsInits()[i];
    if (accumulators[i] == getElementTypeOrSelf(init.getType()))
      return init;
    return filled(resultShape(i), convert(cast<FloatAttr>(constantElement(init)).getValue(), accumulators[i]));
  }

  linalg::GenericOp buildFinal(ValueRange partial) {
    unsigned numParts = partDims.size(), rank = numParts + resultShape(0).size();
    SmallVector<utils::IteratorType> kinds(numParts, utils::IteratorType::reduction);
    kinds.resize(rank, utils::IteratorType::parallel);
    AffineMap all = builder.getMultiDimIdentityMap(rank), result = all.dropResults(firstDims(numParts));
    SmallVector<AffineMap> maps(partial.size(), all);
    maps.append(partial.size(), result);
    SmallVector<Value> inits;
    for (unsigned i = 0; i < partial.size(); ++i)
      inits.push_back(finalInit(i));
    auto combined = linalg::GenericOp::create(builder, loc, TypeRange(ValueRange(inits)), partial, inits, maps, kinds,
                                              [&](OpBuilder &at, Location, ValueRange values) {
                                                SmallVector<Value> yields;
                                                for (unsigned i = 0; i < partial.size(); ++i) {
                                                  OperationState state(loc, combinerOf(op, i)->getName());
                                                  state.addOperands({values[i], values[partial.size() + i]});
                                                  state.addTypes(accumulators[i]);
                                                  yields.push_back(at.create(state)->getResult(0));
                                                }
                                                linalg::YieldOp::create(at, loc, yields);
                                              });
    setForm(combined, tile::Form::twoPhaseReduction);
    return combined;
  }

  static llvm::SmallBitVector firstDims(unsigned count) { return llvm::SmallBitVector(count, true); }

  OpBuilder &builder;
  linalg::GenericOp op;
  Location loc;
  SplitViews &views;
  SmallVector<int64_t> extents, parts; ///< by dim of the reduction: its extent and the number of its parts
  SmallVector<unsigned> innerDims;     ///< by dim of the reduction: its dim in the first phase, within a part
  SmallVector<unsigned> partDims;      ///< dims of the first phase that run over parts
  SmallVector<utils::IteratorType> iterators;
  SmallVector<Type> accumulators;
};
} // namespace

Value tilewright::cutView(OpBuilder &builder, Location loc, Value tensor, int64_t position, int64_t parts,
                          SplitViews &views) {
  Value &view = views[{tensor.getAsOpaquePointer(), position, parts}];
  if (view)
    return view;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[position] /= parts;
  shape.insert(shape.begin() + position, parts);
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0, next = 0; dim < type.getRank(); ++dim) {
    groups.push_back({next++});
    if (dim == position)
      groups.back().push_back(next++);
  }
  return view = tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), tensor, groups);
}

Value tilewright::roundedTo(OpBuilder &builder, Value tensor, RankedTensorType type) {
  if (tensor.getType() == type)
    return tensor;
  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, tensor.getLoc(), type.getShape(), type.getElementType());
  auto round = linalg::GenericOp::create(
      builder, tensor.getLoc(), type, tensor, empty, ArrayRef{map, map}, parallel,
      [&](OpBuilder &at, Location loc, ValueRange values) {
        linalg::YieldOp::create(at, loc,
                                arith::TruncFOp::create(at, loc, type.getElementType(), values[0]).getResult());
      });
  return round.getResult(0);
}

TwoPhases tilewright::buildTwoPhases(OpBuilder &builder, linalg::GenericOp reduction, ArrayRef<SplitDim> split,
                                     SplitViews &views) {
  return TwoPhaseBuilder(builder, reduction, split, views).build();
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

void tilewright::setSplit(FormChoice &choice, ArrayRef<SplitDim> split) {
  choice.parameters.clear();
  for (const SplitDim &own : split) {
    choice.parameters["dims"].push_back(own.dim);
    choice.parameters["parts"].push_back(own.parts);
  }
}

ReductionSplit tilewright::splitOf(const FormChoice &choice) {
  return llvm::map_to_vector(llvm::zip_equal(choice.values("dims"), choice.values("parts")), [](auto own) {
    return SplitDim{static_cast<unsigned>(std::get<0>(own)), std::get<1>(own)};
  });
}

std::string tilewright::whyNotSplit(linalg::GenericOp op, const FormChoice &choice) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  ArrayRef<int64_t> dims = choice.values("dims"), parts = choice.values("parts");
  if (choice.parameters.size() != 2 || dims.empty() || dims.size() != parts.size())
    return "its parameters must be dims and as many parts";
  if (llvm::adjacent_find(dims, std::greater_equal<>()) != dims.end())
    return "its dims must ascend";
  for (auto [dim, count] : llvm::zip_equal(dims, parts)) {
    if (dim < 0 || dim >= static_cast<int64_t>(extents.size()) || !isReduced(op, dim))
      return llvm::formatv("dim {0} is not reduced", dim);
    if (count < 2 || extents[dim] % count != 0)
      return llvm::formatv("{0} parts do not divide dim {1} of {2} elements", count, dim, extents[dim]);
  }
  if (!canCut(op, splitOf(choice)))
    return "an input has one of its dims in an index that no view can split";
  auto isLeft = [&](int64_t dim) {
    auto own = llvm::find(dims, dim);
    return isReduced(op, dim) && extents[dim] > (own == dims.end() ? 1 : parts[own - dims.begin()]);
  };
  if (llvm::none_of(llvm::seq<int64_t>(0, extents.size()), isLeft))
    return "no part would have several elements to reduce";
  return "";
}

Numerics tilewright::numericsOfTwoPhases(linalg::GenericOp op) {
  Numerics numerics;
  llvm::raw_string_ostream os(numerics.accumulation);
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    os << (i > 0 ? ", " : "") << accumulatorType(op, i);
    numerics.reassociates |= sumsOrMultiplies(op, i);
  }
  return numerics;
}

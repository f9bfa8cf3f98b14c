#include "passes/codegen/gpu/ContractionFrame.h"

#include "passes/codegen/cpu/Slices.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

ContractionFrame::ContractionFrame(OpBuilder &builder, ComputeOp compute, const IRMapping &values, Value thread,
                                   int64_t threads, Value scratch)
    : builder(builder), compute(compute), values(values), loc(compute.getLoc()), scratch(scratch), threads(threads) {
  this->thread = thread;
  if (!thread.getType().isIndex())
    this->thread = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), thread);
  offsets.assign(compute.getSizes().size(), constant(0));
  for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
    offsets[dim] = values.lookup(offset);
  indices = offsets;
  for (auto [dim, size] : llvm::enumerate(compute.getSizes())) {
    Value end = add(offsets[dim], size);
    if (compute.getExtents()[dim] % size != 0)
      end = builder.createOrFold<arith::MinUIOp>(loc, end, constant(compute.getExtents()[dim]));
    ends.push_back(end);
  }
}

Value ContractionFrame::constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
Value ContractionFrame::add(Value a, Value b) { return builder.createOrFold<arith::AddIOp>(loc, a, b); }
Value ContractionFrame::multiply(Value a, int64_t b) {
  return b == 1 ? a : builder.createOrFold<arith::MulIOp>(loc, a, constant(b));
}
Value ContractionFrame::divide(Value a, int64_t b) {
  return b == 1 ? a : builder.createOrFold<arith::DivUIOp>(loc, a, constant(b));
}
Value ContractionFrame::modulo(Value a, int64_t b) { return builder.createOrFold<arith::RemUIOp>(loc, a, constant(b)); }
Value ContractionFrame::isBelow(Value a, Value b) {
  return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, a, b);
}
Value ContractionFrame::both(Value a, Value b) {
  return !a ? b : !b ? a : builder.createOrFold<arith::AndIOp>(loc, a, b);
}

bool tilewright::isWhole(ComputeOp compute, int64_t dim, int64_t count) {
  int64_t size = compute.getSizes()[dim];
  return compute.getExtents()[dim] % size == 0 && size % count == 0;
}

/// Where indices cut the dim into pieces (the heads of an attention), its neighbours lie together within a piece: the
/// sizes of pieces, and the distances between them. Nothing if neighbours lie apart.
static std::optional<SmallVector<int64_t>> piecesAlong(AffineMap map, ArrayRef<int64_t> strides, int64_t dim) {
  SmallVector<int64_t> pieces;
  int64_t within = 0;
  for (auto [place, index] : llvm::enumerate(map.getResults())) {
    auto cut = dyn_cast<AffineBinaryOpExpr>(index);
    auto size = cut ? dyn_cast<AffineConstantExpr>(cut.getRHS()) : AffineConstantExpr();
    bool isPlace = index.getKind() == AffineExprKind::Mod, isPiece = index.getKind() == AffineExprKind::FloorDiv;
    if (size && (isPlace || isPiece) && cut.getLHS() == getAffineDimExpr(dim, map.getContext())) {
      pieces.append({size.getValue(), isPiece ? strides[place] : size.getValue()});
      within += isPlace ? strides[place] : 0;
    } else if (std::optional<int64_t> step = strideAlong(map.getSubMap(place), strides.slice(place, 1), dim)) {
      within += *step;
    } else {
      return std::nullopt;
    }
  }
  return within == 1 ? std::optional(pieces) : std::nullopt;
}

/// What the place of an element changes by along the dim is a multiple of this, also where indices divide it (heads
/// that share keys).
static int64_t stepAlong(AffineMap map, ArrayRef<int64_t> strides, int64_t dim) {
  if (std::optional<int64_t> stride = strideAlong(map, strides, dim))
    return *stride;
  int64_t step = 0;
  for (auto [index, stride] : llvm::zip(map.getResults(), strides))
    if (index.isFunctionOfDim(dim))
      step = std::gcd(step, stride);
  return std::max<int64_t>(step, 1);
}

/// At most `most`, a power of two, and a divisor of all.
static int64_t mostWhole(ArrayRef<int64_t> counts, int64_t most) {
  while (llvm::any_of(counts, [&](int64_t count) { return count % most != 0; }))
    most /= 2;
  return most;
}

int64_t tilewright::alignedPlaces(ComputeOp compute, SliceType type, AffineMap map, int64_t dim, int64_t most) {
  SmallVector<int64_t> strides = denseStrides(type.getShape()), origin(map.getNumInputs(), 0);
  std::optional<SmallVector<int64_t>> pieces = piecesAlong(map, strides, dim);
  if (!pieces)
    return 1;
  SmallVector<int64_t> wholes = *pieces;
  for (auto [index, stride] : llvm::zip(map.compose(origin), strides))
    wholes.push_back(index * stride);
  for (int64_t other = 0; other < static_cast<int64_t>(compute.getSizes().size()); ++other)
    if (other != dim && compute.getExtents()[other] > 1)
      wholes.push_back(stepAlong(map, strides, other));
  return mostWhole(wholes, most);
}

int64_t tilewright::alignedRun(ComputeOp compute, SliceType type, AffineMap map, int64_t dim, int64_t most) {
  return mostWhole({compute.getSizes()[dim], compute.getExtents()[dim]}, alignedPlaces(compute, type, map, dim, most));
}

SmallVector<Value> ContractionFrame::at(AffineMap map) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return affine::expandAffineExpr(builder, loc, expr, indices, offsets);
  });
}

Value ContractionFrame::linear(Value memref, ValueRange index) {
  Value place = constant(0);
  for (auto [position, stride] : llvm::zip(index, denseStrides(cast<MemRefType>(memref.getType()).getShape())))
    place = add(place, multiply(position, stride));
  return place;
}

Value ContractionFrame::pointer(Value memref, Value element) {
  auto type = cast<MemRefType>(memref.getType());
  LLVMTypeConverter converter(builder.getContext());
  Type descriptor = converter.convertType(type);
  Value lowered = UnrealizedConversionCastOp::create(builder, loc, descriptor, memref).getResult(0);
  constexpr int64_t kAlignedPointer = 1;
  Value base = LLVM::ExtractValueOp::create(builder, loc, lowered, kAlignedPointer);
  Value place = arith::IndexCastUIOp::create(builder, loc, builder.getI64Type(), element);
  return LLVM::GEPOp::create(builder, loc, base.getType(), type.getElementType(), base, ArrayRef<LLVM::GEPArg>{place});
}

// Arithmetic on indices folds constants as it goes, so that whole tiles get no bounds checks.
#include "passes/codegen/gpu/gemm/ContractionFrame.h"

#include "passes/program/Slices.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static bool usesSymbols(AffineExpr expr) {
  return expr.walk([](AffineExpr inner) {
           return isa<AffineSymbolExpr>(inner) ? WalkResult::interrupt() : WalkResult::advance();
         }).wasInterrupted();
}

ContractionFrame::ContractionFrame(OpBuilder &builder, ComputeOp compute, const IRMapping &values, Value thread,
                                   int64_t threads, Value scratch, const GpuCosts &costs)
    : builder(builder), compute(compute), values(values), loc(compute.getLoc()), scratch(scratch), threads(threads),
      costs(costs) {
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

SmallVector<Value> ContractionFrame::at(AffineMap map) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) { return expand(expr); });
}

Value ContractionFrame::expand(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return this->constant(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return indices[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return offsets[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (expr.getKind() == AffineExprKind::Add)
    return add(expand(binary.getLHS()), expand(binary.getRHS()));
  if (expr.getKind() == AffineExprKind::Mul)
    return builder.createOrFold<arith::MulIOp>(loc, expand(binary.getLHS()), expand(binary.getRHS()));
  return cut(binary);
}

/// Divisions of 32 bits without a sign take a third of the instructions of others.
Value ContractionFrame::cut(AffineBinaryOpExpr expr) {
  Value index = expand(expr.getLHS());
  auto size = dyn_cast<AffineConstantExpr>(expr.getRHS());
  AffineExpr d0 = getAffineDimExpr(0, expr.getContext());
  Interval values{std::numeric_limits<int64_t>::min(), 0};
  if (!usesSymbols(expr.getLHS()))
    values = boundExpr(expr.getLHS(), domainRanges(compute.getExtents()));
  if (!size || values.low < 0 || values.high > std::numeric_limits<int32_t>::max())
    return affine::expandAffineExpr(builder, loc, getAffineBinaryOpExpr(expr.getKind(), d0, expr.getRHS()), index, {});
  Type word = builder.getI32Type();
  Value narrow = builder.createOrFold<arith::IndexCastUIOp>(loc, word, index);
  Value by = arith::ConstantIntOp::create(builder, loc, size.getValue(), 32);
  Value result = expr.getKind() == AffineExprKind::Mod ? builder.createOrFold<arith::RemUIOp>(loc, narrow, by)
                                                       : builder.createOrFold<arith::DivUIOp>(loc, narrow, by);
  return builder.createOrFold<arith::IndexCastUIOp>(loc, builder.getIndexType(), result);
}

Value ContractionFrame::isWithin(IntegerSet set) {
  if (!set)
    return Value();
  Value within, zero = constant(0);
  for (auto [index, constraint] : llvm::enumerate(set.getConstraints())) {
    Value value = expand(constraint);
    auto relation = set.isEq(index) ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
    within = both(within, builder.createOrFold<arith::CmpIOp>(loc, relation, value, zero));
  }
  return within;
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

// Arithmetic on indices folds constants as it goes, so that whole tiles get no bounds checks.
#include "passes/codegen/gpu/gemm/ContractionFrame.h"

#include "passes/program/Slices.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

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

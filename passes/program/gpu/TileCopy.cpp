// A tile copy is a nest with one load and one store of equal shape, marked by the alignment of its buffer.
#include "passes/program/gpu/TileCopy.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static bool isBlock(Value slice) { return cast<SliceType>(slice.getType()).getSpace() == Space::block; }

bool tilewright::isOneRun(ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes) {
  bool whole = true; // true while all inner dims are whole
  for (auto [extent, size] : llvm::reverse(llvm::zip_equal(shape, sizes))) {
    if (!whole && size != 1)
      return false;
    whole &= size == extent;
  }
  return true;
}

bool tilewright::isSectorRuns(ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes, int64_t elementBytes) {
  int64_t stride = 1;
  bool whole = true; // true while all inner dims are whole
  for (auto [extent, size] : llvm::reverse(llvm::zip_equal(shape, sizes))) {
    // A run must end at the end of a sector, and so must the tensor's own run.
    if (whole && size != extent && size * stride * elementBytes % kSectorBytes != 0)
      return false;
    whole &= size == extent;
    stride *= extent;
    if (!whole && stride * elementBytes % kSectorBytes != 0)
      return false;
  }
  return true;
}

ComputeOp tilewright::createTileCopy(OpBuilder &builder, Location loc, Value source, Value target, ValueRange offsets,
                                     ArrayRef<int64_t> offsetDims) {
  auto type = cast<SliceType>((isBlock(source) ? target : source).getType());
  auto buffer = cast<SliceType>((isBlock(source) ? source : target).getType());
  int64_t rank = type.getRank();
  SmallVector<AffineExpr> inTensor, inBuffer;
  for (int64_t dim = 0; dim < rank; ++dim) {
    inTensor.push_back(builder.getAffineDimExpr(dim));
    bool moves = llvm::is_contained(offsetDims, dim);
    inBuffer.push_back(moves ? inTensor.back() - builder.getAffineSymbolExpr(dim) : inTensor.back());
  }
  auto mapOf = [&](Value slice) {
    return AffineMap::get(rank, rank, isBlock(slice) ? inBuffer : inTensor, builder.getContext());
  };
  auto compute = ComputeOp::create(builder, loc, offsets, ValueRange(), type.getShape(), buffer.getShape(), offsetDims,
                                   ArrayRef<int64_t>(), rank - 1, builder.getAffineMapArrayAttr({}),
                                   builder.getArrayAttr({}), builder.getStrArrayAttr({}), StringAttr(), GemmAttr(),
                                   RunningAttr());
  auto *body = new Block();
  compute.getBody().push_back(body);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(body);
  Value value = LoadOp::create(builder, loc, type.getElementType(), source, mapOf(source), IntegerSetAttr());
  StoreOp::create(builder, loc, value, target, mapOf(target));
  YieldOp::create(builder, loc, ValueRange());
  return compute;
}

bool tilewright::isTileCopy(ComputeOp compute) {
  Block &body = compute.getBodyBlock();
  if (body.getOperations().size() != 3 || !compute.getAccs().empty())
    return false;
  auto load = dyn_cast<LoadOp>(body.front());
  auto store = load ? dyn_cast<StoreOp>(*std::next(body.begin())) : StoreOp();
  if (!store || load.getGuard() || store.getValue() != load.getValue() ||
      isBlock(load.getSlice()) == isBlock(store.getSlice()))
    return false;
  auto [tensor, map] = isBlock(load.getSlice()) ? std::pair(store.getSlice(), store.getMap())
                                                : std::pair(load.getSlice(), load.getMap());
  auto alloc = (isBlock(load.getSlice()) ? load.getSlice() : store.getSlice()).getDefiningOp<AllocOp>();
  int64_t rank = compute.getSizes().size();
  return alloc && alloc->hasAttr(kAlignedAsAttr) && alloc.getType().getShape() == compute.getSizes() &&
         tensor.getType().getShape() == compute.getExtents() &&
         map == AffineMap::getMultiDimIdentityMap(rank, compute.getContext()).replaceDimsAndSymbols({}, {}, rank, rank);
}

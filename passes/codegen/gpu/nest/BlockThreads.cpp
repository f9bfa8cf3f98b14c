// A reduction across threads takes one butterfly shuffle per bit of the lane, then one exchange through shared memory
// for all bits of the warp. Values that are not 32 bits wide are shuffled as words.
#include "passes/codegen/gpu/nest/BlockThreads.h"

#include "passes/target/AccessBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
Value constant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value index(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value toStored(OpBuilder &builder, Location loc, Value value) {
  Type element = getElementTypeOrSelf(value.getType()), stored = storedAs(element);
  if (stored == element)
    return value;
  Type type = stored;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(stored);
  return element.isIndex() ? arith::IndexCastOp::create(builder, loc, type, value).getResult()
                           : arith::ExtUIOp::create(builder, loc, type, value).getResult();
}

Value fromStored(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return getElementTypeOrSelf(type).isIndex() ? arith::IndexCastOp::create(builder, loc, type, value).getResult()
                                              : arith::TruncIOp::create(builder, loc, type, value).getResult();
}

Value shuffleWord(OpBuilder &builder, Location loc, Value word, unsigned bit) {
  constexpr int64_t kAllThreads = -1, kWholeWarp = 31;
  return NVVM::ShflOp::create(builder, loc, word.getType(), constant(builder, loc, kAllThreads), word,
                              constant(builder, loc, 1 << bit), constant(builder, loc, kWholeWarp),
                              NVVM::ShflKind::bfly, UnitAttr());
}

} // namespace

Value tilewright::shuffleXor(OpBuilder &builder, Location loc, Value value, unsigned bit) {
  Type type = value.getType();
  if (type.isF32() || type.isInteger(32))
    return shuffleWord(builder, loc, value, bit);
  if (type.isF64() || type.isInteger(64)) {
    Type wide = builder.getI64Type(), word = builder.getI32Type();
    Value bits = type.isF64() ? arith::BitcastOp::create(builder, loc, wide, value).getResult() : value;
    Value half = arith::ConstantIntOp::create(builder, loc, 32, 64);
    Value low = arith::TruncIOp::create(builder, loc, word, bits);
    Value high = arith::TruncIOp::create(builder, loc, word, arith::ShRUIOp::create(builder, loc, bits, half));
    low = arith::ExtUIOp::create(builder, loc, wide, shuffleWord(builder, loc, low, bit));
    high = arith::ExtUIOp::create(builder, loc, wide, shuffleWord(builder, loc, high, bit));
    Value whole = arith::OrIOp::create(builder, loc, low, arith::ShLIOp::create(builder, loc, high, half));
    return type.isF64() ? arith::BitcastOp::create(builder, loc, type, whole).getResult() : whole;
  }
  if (isa<FloatType>(type)) { // f32 represents f16 and bf16 exactly
    Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
    return arith::TruncFOp::create(builder, loc, type, shuffleWord(builder, loc, wide, bit));
  }
  Value wide = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), value);
  return arith::TruncIOp::create(builder, loc, type, shuffleWord(builder, loc, wide, bit));
}

Value BlockThreads::indexAlong(OpBuilder &builder, int64_t dim) {
  Location loc = compute.getLoc();
  const BitRange &range = mapping.bits[dim];
  Value own = thread;
  if (range.first > 0)
    own = arith::ShRUIOp::create(builder, loc, own, constant(builder, loc, range.first));
  if (int64_t(1) << (range.first + range.count) < mapping.threads)
    own = arith::AndIOp::create(builder, loc, own, constant(builder, loc, (int64_t(1) << range.count) - 1));
  if (range.turned > 0) {
    Value high = arith::ShLIOp::create(builder, loc, own, constant(builder, loc, range.turned));
    Value low = arith::ShRUIOp::create(builder, loc, own, constant(builder, loc, range.count - range.turned));
    own = arith::AndIOp::create(builder, loc, arith::OrIOp::create(builder, loc, high, low),
                                constant(builder, loc, (int64_t(1) << range.count) - 1));
  }
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), own);
}

Value BlockThreads::leads(OpBuilder &builder, bool accumulator) {
  unsigned mask = accumulator ? mapping.reduced : mapping.idle;
  if (mask == 0)
    return {};
  Location loc = compute.getLoc();
  Value bits = arith::AndIOp::create(builder, loc, thread, constant(builder, loc, mask));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bits, constant(builder, loc, 0));
}

Value BlockThreads::shuffleElements(OpBuilder &builder, Value value, unsigned bit) {
  Location loc = compute.getLoc();
  Type type = value.getType();
  Value stored = toStored(builder, loc, value);
  if (auto vectorType = dyn_cast<VectorType>(stored.getType())) {
    Value result = stored;
    for (int64_t lane = 0; lane < vectorType.getNumElements(); ++lane) {
      Value element = vector::ExtractOp::create(builder, loc, stored, lane);
      result = vector::InsertOp::create(builder, loc, shuffleXor(builder, loc, element, bit), result, lane);
    }
    return fromStored(builder, loc, result, type);
  }
  return fromStored(builder, loc, shuffleXor(builder, loc, stored, bit), type);
}

Value BlockThreads::combine(OpBuilder &builder, unsigned, vector::CombiningKind kind, Value value) {
  Location loc = compute.getLoc();
  for (unsigned bit = 0; bit < kWarpBits; ++bit)
    if (mapping.reduced >> bit & 1)
      value = vector::makeArithReduction(builder, loc, kind, value, shuffleElements(builder, value, bit));
  return mapping.crossesWarps() ? combineWarps(builder, kind, value) : value;
}

namespace {
/// Stores one value per thread in shared memory. The value is split into pieces of one access, and the pieces of
/// neighbouring threads are adjacent, so that they are in different banks.
class ThreadValues {
public:
  ThreadValues(OpBuilder &builder, Location loc, Value scratch, int64_t threads, Type type) : loc(loc), type(type) {
    element = storedAs(getElementTypeOrSelf(type));
    auto vectorType = dyn_cast<VectorType>(type);
    lanes = vectorType ? vectorType.getNumElements() : 1;
    piece = std::gcd(lanes, kAccessBytes / elementBytes(element));
    auto space = cast<MemRefType>(scratch.getType()).getMemorySpace();
    auto all = MemRefType::get({lanes / piece, threads, piece}, element, MemRefLayoutAttrInterface(), space);
    memory = memref::ViewOp::create(builder, loc, all, scratch, index(builder, loc, 0), ValueRange());
  }

  void store(OpBuilder &builder, Value value, Value thread) const {
    Value stored = toStored(builder, loc, value);
    if (!isa<VectorType>(type)) {
      memref::StoreOp::create(builder, loc, stored, memory, place(builder, thread, 0));
      return;
    }
    for (int64_t first = 0; first < lanes; first += piece) {
      Value own = vector::ExtractStridedSliceOp::create(builder, loc, stored, {first}, {piece}, {1});
      vector::StoreOp::create(builder, loc, own, memory, place(builder, thread, first)).setAlignment(alignment());
    }
  }

  Value load(OpBuilder &builder, Value thread) const {
    if (!isa<VectorType>(type))
      return fromStored(builder, loc, memref::LoadOp::create(builder, loc, memory, place(builder, thread, 0)), type);
    auto whole = VectorType::get({lanes}, element);
    Value all = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(whole));
    for (int64_t first = 0; first < lanes; first += piece) {
      auto own = vector::LoadOp::create(builder, loc, VectorType::get({piece}, element), memory,
                                        place(builder, thread, first));
      own.setAlignment(alignment());
      all = vector::InsertStridedSliceOp::create(builder, loc, own, all, {first}, {1});
    }
    return fromStored(builder, loc, all, type);
  }

private:
  int64_t alignment() const { return piece * elementBytes(element); }
  SmallVector<Value> place(OpBuilder &builder, Value thread, int64_t lane) const {
    Value own = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), thread);
    return {index(builder, loc, lane / piece), own, index(builder, loc, 0)};
  }

  Location loc;
  Type type, element;
  int64_t lanes, piece;
  Value memory;
};
} // namespace

/// Combines a value across warps: each thread stores its value to the scratch and reads those of all warps that share
/// its point.
Value BlockThreads::combineWarps(OpBuilder &builder, vector::CombiningKind kind, Value value) {
  Location loc = compute.getLoc();
  ThreadValues values(builder, loc, scratch, mapping.threads, value.getType());
  values.store(builder, value, thread);
  NVVM::Barrier0Op::create(builder, loc);
  unsigned across = mapping.reduced >> kWarpBits << kWarpBits;
  Value own = arith::AndIOp::create(builder, loc, thread, constant(builder, loc, ~across & (mapping.threads - 1)));
  auto peerAt = [&](Value other) { return values.load(builder, arith::OrIOp::create(builder, loc, own, other)); };
  // Visit every subset of the bits, a few at a time: all of them together could take more registers than a thread has.
  auto vectorType = dyn_cast<VectorType>(value.getType());
  int64_t lanes = vectorType ? vectorType.getNumElements() : 1;
  int64_t peers = int64_t(1) << llvm::popcount(across), together = peers;
  while (together > 1 && together * lanes > costs.combinedElements)
    together /= 2;
  Value all;
  unsigned other = 0;
  for (int64_t i = 0; i < together; ++i, other = (other - across) & across) {
    Value theirs = peerAt(constant(builder, loc, other));
    all = all ? vector::makeArithReduction(builder, loc, kind, all, theirs) : theirs;
  }
  if (together < peers) {
    Value rest = index(builder, loc, peers / together), one = index(builder, loc, 1);
    auto loop = scf::ForOp::create(builder, loc, one, rest, one, ValueRange{all, constant(builder, loc, other)});
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value sum = loop.getRegionIterArg(0), next = loop.getRegionIterArg(1), bits = constant(builder, loc, across);
    for (int64_t i = 0; i < together; ++i) {
      sum = vector::makeArithReduction(builder, loc, kind, sum, peerAt(next));
      next = arith::AndIOp::create(builder, loc, arith::SubIOp::create(builder, loc, next, bits), bits);
    }
    scf::YieldOp::create(builder, loc, ValueRange{sum, next});
    all = loop.getResult(0);
  }
  NVVM::Barrier0Op::create(builder, loc); // the scratch may be reused from here on
  return all;
}

#include "passes/codegen/cpu/TileRegisters.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLanes = kTileRowBytes / 4; ///< accumulators per row of a tile; an accumulator has 4 bytes
/// Size of the operand of LDTILECFG, and the offsets of its fields "bytes per row" and "rows".
constexpr int64_t kConfigBytes = 64, kColumnBytesAt = 16, kRowsAt = 48;

// Registers 0 to 3 hold the accumulators, row by row. Registers 4 and 5 hold lhs, 6 and 7 hold rhs.
int64_t accumulatorTile(int64_t i, int64_t j) { return 2 * i + j; }
int64_t lhsTile(int64_t i) { return 4 + i; }
int64_t rhsTile(int64_t j) { return 6 + j; }

int64_t tilesOf(int64_t size, int64_t each) { return llvm::divideCeil(size, each); }

/// Returns the rows of one tile of a block with an M of `m`.
int64_t rowsOf(int64_t tile, int64_t m) { return std::clamp<int64_t>(m - tile * kTileRows, 0, kTileRows); }

StringRef productName(const ProductTypes &types) {
  if (types.lhs == "bf16")
    return "llvm.x86.tdpbf16ps";
  bool lhs = types.lhs == "si8", rhs = types.rhs == "si8";
  return lhs ? rhs ? "llvm.x86.tdpbssd" : "llvm.x86.tdpbsud" : rhs ? "llvm.x86.tdpbusd" : "llvm.x86.tdpbuud";
}
} // namespace

void TileRegisters::configure(Value memory, int64_t m) {
  SmallVector<int8_t> bytes(kConfigBytes, 0);
  bytes[0] = 1; // palette 1 has eight tiles
  auto shape = [&](int64_t tile, int64_t tileRows) {
    bytes[kColumnBytesAt + 2 * tile] = tileRows > 0 ? kTileRowBytes : 0;
    bytes[kRowsAt + tile] = static_cast<int8_t>(tileRows);
  };
  for (int64_t part : {0, 1}) {
    for (int64_t j : {0, 1})
      shape(accumulatorTile(part, j), rowsOf(part, m));
    shape(lhsTile(part), rowsOf(part, m));
    shape(rhsTile(part), kTileRows);
  }
  auto type = VectorType::get({kConfigBytes}, builder.getI8Type());
  Value config = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  vector::StoreOp::create(builder, loc, config, memory, ValueRange{zero});
  call("llvm.x86.ldtilecfg", pointerTo(addressOf({memory, {zero}, kConfigBytes})));
}

void TileRegisters::release() { call("llvm.x86.tilerelease", {}); }

void TileRegisters::clearAccumulators(int64_t m, int64_t n) {
  forAccumulators(m, n, [&](int64_t i, int64_t j) { call("llvm.x86.tilezero", byte(accumulatorTile(i, j))); });
}

void TileRegisters::loadAccumulators(const TileLocation &location, int64_t m, int64_t n) {
  Value address = addressOf(location);
  forAccumulators(m, n, [&](int64_t i, int64_t j) {
    move("llvm.x86.tileloadd64", accumulatorTile(i, j), address, i * kTileRows * location.rowBytes + j * kTileRowBytes,
         location.rowBytes);
  });
}

void TileRegisters::storeAccumulators(const TileLocation &location, int64_t m, int64_t n) {
  Value address = addressOf(location);
  forAccumulators(m, n, [&](int64_t i, int64_t j) {
    move("llvm.x86.tilestored64", accumulatorTile(i, j), address, i * kTileRows * location.rowBytes + j * kTileRowBytes,
         location.rowBytes);
  });
}

void TileRegisters::multiplyAdd(const TileLocation &lhs, const TileLocation &rhs, int64_t m, int64_t n) {
  Value lhsAddress = addressOf(lhs), rhsAddress = addressOf(rhs);
  int64_t mTiles = tilesOf(m, kTileRows);
  for (int64_t j = 0; j < tilesOf(n, kLanes); ++j) {
    move("llvm.x86.tileloadd64", rhsTile(j), rhsAddress, j * kTileRowBytes, rhs.rowBytes);
    for (int64_t i = 0; i < mTiles; ++i) {
      if (j == 0)
        move("llvm.x86.tileloadd64", lhsTile(i), lhsAddress, i * kTileRows * lhs.rowBytes, lhs.rowBytes);
      call(productName(kernel.types), {byte(accumulatorTile(i, j)), byte(lhsTile(i)), byte(rhsTile(j))});
    }
  }
}

void TileRegisters::forAccumulators(int64_t m, int64_t n, llvm::function_ref<void(int64_t, int64_t)> body) {
  for (int64_t i = 0; i < tilesOf(m, kTileRows); ++i)
    for (int64_t j = 0; j < tilesOf(n, kLanes); ++j)
      body(i, j);
}

Value TileRegisters::byte(int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(static_cast<int8_t>(value)));
}

/// Returns the address as an integer. The memrefs here are dense.
Value TileRegisters::addressOf(const TileLocation &location) {
  auto type = cast<MemRefType>(location.memory.getType());
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, location.memory);
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (auto [index, size] : llvm::reverse(llvm::zip_equal(location.index, type.getShape()))) {
    Value stride = arith::ConstantIndexOp::create(builder, loc, bytes);
    address = arith::AddIOp::create(builder, loc, address, arith::MulIOp::create(builder, loc, index, stride));
    bytes *= size;
  }
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
}

Value TileRegisters::pointerTo(Value address) {
  return LLVM::IntToPtrOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), address);
}

Value TileRegisters::offset(Value address, int64_t bytes) {
  if (bytes == 0)
    return address;
  Value by = arith::ConstantIntOp::create(builder, loc, bytes, 64);
  return arith::AddIOp::create(builder, loc, address, by);
}

void TileRegisters::move(StringRef name, int64_t tile, Value address, int64_t bytes, int64_t rowBytes) {
  Value pointer = pointerTo(offset(address, bytes));
  Value stride = arith::ConstantIntOp::create(builder, loc, rowBytes, 64);
  call(name, {byte(tile), pointer, stride});
}

void TileRegisters::call(StringRef name, ValueRange arguments) {
  LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr(name), arguments);
}

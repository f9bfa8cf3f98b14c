// Each thread writes the vector that it has read to the block of each rank in turn, including its own (mapa,
// st.shared::cluster). A multicast bulk copy would do this with one instruction, but needs an mbarrier in each block
// and sizes that are multiples of 16 bytes.
#include "passes/codegen/gpu/copy/ClusterCopy.h"

#include "dialects/tile/BufferOffsets.h"
#include "passes/codegen/common/EmitLoops.h"
#include "passes/program/gpu/TileCopy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr unsigned kShared = 3, kSharedCluster = 7;

class ClusterCopyEmitter {
public:
  ClusterCopyEmitter(OpBuilder &builder, ComputeOp copy, const IRMapping &values, Value thread, int64_t threads)
      : builder(builder), loc(copy.getLoc()), threads(threads), blocks(clusterOf(copy)) {
    auto load = *copy.getBodyBlock().getOps<LoadOp>().begin();
    auto store = *copy.getBodyBlock().getOps<StoreOp>().begin();
    elements = load.getSlice().getType().getNumElements();
    lanes = kCopyBytes / load.getSlice().getType().getElementBytes();
    source = flat(values.lookup(load.getSlice()));
    own = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), thread);
    rank = NVVM::ClusterId::create(builder, loc, builder.getI32Type());
    findPlaces(values.lookup(store.getSlice()));
  }

  void emit() {
    // Each block copies whole sectors.
    int64_t vectors = elements / lanes, perSector = kSectorBytes / kCopyBytes;
    int64_t share = llvm::alignTo(llvm::divideCeil(vectors, blocks), perSector);
    Value first = mul(arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), rank), share);
    Value end = arith::MinUIOp::create(builder, loc, add(first, share), constant(vectors));
    for (int64_t turn = 0; turn * threads < share; ++turn) {
      Value vector = arith::AddIOp::create(builder, loc, first, add(own, turn * threads));
      ifLess(vector, end, [&] {
        Value element = mul(vector, lanes);
        auto loaded = vector::LoadOp::create(builder, loc, VectorType::get({lanes}, elementType()), source, element);
        loaded.setAlignment(kCopyBytes);
        Value words = vector::BitCastOp::create(builder, loc, VectorType::get({4}, builder.getI32Type()), loaded);
        storeToAll(words, element, kCopyBytes);
      });
    }
    int64_t rest = elements % lanes;
    if (rest == 0)
      return;
    // The last block, whose share is the shortest, copies the elements that fill no vector.
    Value last = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rank,
                                       arith::ConstantIntOp::create(builder, loc, blocks - 1, 32));
    Value most = arith::SelectOp::create(builder, loc, last, constant(rest), constant(0));
    ifLess(own, most, [&] {
      Value element = add(own, elements - rest);
      storeToAll(memref::LoadOp::create(builder, loc, source, element), element, kCopyBytes / lanes);
    });
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, int64_t b) { return b == 0 ? a : arith::AddIOp::create(builder, loc, a, constant(b)).getResult(); }
  Value mul(Value a, int64_t b) { return arith::MulIOp::create(builder, loc, a, constant(b)); }
  Type elementType() { return cast<MemRefType>(source.getType()).getElementType(); }

  Value flat(Value memory) {
    auto type = cast<MemRefType>(memory.getType());
    auto run = MemRefType::get({elements}, type.getElementType(), MemRefLayoutAttrInterface(), type.getMemorySpace());
    return memref::ReinterpretCastOp::create(builder, loc, run, memory, /*offset=*/0, ArrayRef<int64_t>{elements},
                                             ArrayRef<int64_t>{1});
  }

  /// Computes the address of the buffer in each block, starting with this block's own, so that neighbouring blocks
  /// write to different blocks at a time.
  void findPlaces(Value buffer) {
    MLIRContext *context = builder.getContext();
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
    address = arith::IndexCastUIOp::create(builder, loc, builder.getI64Type(), address);
    Value pointer = LLVM::IntToPtrOp::create(builder, loc, LLVM::LLVMPointerType::get(context, kShared), address);
    for (int64_t other = 0; other < blocks; ++other) {
      Value peer = arith::XOrIOp::create(builder, loc, rank, arith::ConstantIntOp::create(builder, loc, other, 32));
      places.push_back(
          NVVM::MapaOp::create(builder, loc, LLVM::LLVMPointerType::get(context, kSharedCluster), pointer, peer));
    }
  }

  void ifLess(Value a, Value b, llvm::function_ref<void()> then) {
    Value less = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b);
    emitIf(builder, loc, less, then);
  }

  void storeToAll(Value value, Value element, int64_t bytes) {
    Value offset = arith::IndexCastUIOp::create(builder, loc, builder.getI64Type(), mul(element, kCopyBytes / lanes));
    for (Value place : places) {
      Value address = LLVM::GEPOp::create(builder, loc, place.getType(), builder.getI8Type(), place,
                                          ArrayRef<LLVM::GEPArg>{offset});
      LLVM::StoreOp::create(builder, loc, value, address, bytes);
    }
  }

  OpBuilder &builder;
  Location loc;
  int64_t threads, blocks, elements, lanes;
  Value source, own, rank;
  SmallVector<Value> places;
};
} // namespace

void tilewright::emitClusterCopy(OpBuilder &builder, ComputeOp copy, const IRMapping &values, Value thread,
                                 int64_t threads) {
  ClusterCopyEmitter(builder, copy, values, thread, threads).emit();
}

// Makes memory accesses report themselves to the runtime. A call in front of the access reports it. A call that also
// does the access replaces it.
#include "tools/simulator/KernelRewriter.h"

#include "tools/simulator/Collectives.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

LogicalResult KernelRewriter::reportAccess(Operation *op) {
  if (std::optional<MemoryAccess> access = memoryAccess(op))
    return report(op, *access);
  if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
    return report(copy);
  if (auto load = dyn_cast<NVVM::LdMatrixOp>(op))
    return report(load);
  if (auto copy = dyn_cast<NVVM::CpAsyncBulkGlobalToSharedClusterOp>(op))
    return report(copy);
  if (isWarpgroupProduct(op))
    return reportProduct(op);
  if (isa<NVVM::MBarrierInitOp, NVVM::MBarrierInvalOp, NVVM::MBarrierArriveExpectTxOp, NVVM::MBarrierTryWaitParityOp>(
          op))
    return reportBarrier(op);
  return success();
}

FailureOr<Value> KernelRewriter::siteOf(Operation *op, const MemoryAccess &access) {
  Value base = addressBase(access.pointer);
  unsigned space = cast<LLVM::LLVMPointerType>(base.getType()).getAddressSpace();
  if (base.getDefiningOp<LLVM::AllocaOp>() ||
      (space != genericSpace && space != globalSpace && space != sharedSpace && space != clusterSpace))
    return Value(); // the memory is private to the thread, or constant
  code.builder.setInsertionPoint(op);
  Value id = code.site(op);
  Site &site = program.sites.back();
  site.isAccess = true;
  site.isInMainLoop = inMainLoops.contains(op);
  site.kind = access.kind;
  site.bytes = layout.getTypeSize(access.type);
  site.alignment = access.alignment ? access.alignment : layout.getTypeABIAlignment(access.type);
  if (site.bytes == 0)
    return op->emitOpError("accesses ") << access.type << ", which has no size";
  if (auto address = base.getDefiningOp<LLVM::AddressOfOp>()) {
    auto variable = sharedVariables.find(address.getGlobalName());
    if (variable != sharedVariables.end())
      site.base = variable->second;
  } else if (auto argument = dyn_cast<BlockArgument>(base)) {
    if (argument.getOwner() == &kernel.getBody().front()) {
      site.base = argument.getArgNumber();
      space = globalSpace;
    }
  }
  site.space = space == globalSpace    ? Space::global
               : space == sharedSpace  ? Space::shared
               : space == clusterSpace ? Space::cluster
                                       : Space::generic;
  return id;
}

Value KernelRewriter::plainPointer(Operation *op, Value pointer) {
  auto plain = LLVM::LLVMPointerType::get(op->getContext());
  if (pointer.getType() == plain)
    return pointer;
  return LLVM::AddrSpaceCastOp::create(code.builder, op->getLoc(), plain, pointer);
}

LogicalResult KernelRewriter::report(Operation *op, const MemoryAccess &access) {
  FailureOr<Value> id = siteOf(op, access);
  if (failed(id))
    return failure();
  if (*id)
    code.call(op->getLoc(), runtime::access, {}, {*id, plainPointer(op, access.pointer)});
  return success();
}

LogicalResult KernelRewriter::report(NVVM::CpAsyncOp copy) {
  OpBuilder &builder = code.builder;
  Type bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), copy.getSize());
  FailureOr<Value> reads = siteOf(copy, {copy.getSrc(), bytes, copy.getSize(), {true, false, false}});
  FailureOr<Value> writes = siteOf(copy, {copy.getDst(), bytes, copy.getSize(), {false, true, false}});
  if (failed(reads) || failed(writes))
    return failure();
  Value size = code.number(copy.getLoc(), copy.getSize());
  code.call(copy.getLoc(), runtime::startCopy, {},
            {*reads, *writes, plainPointer(copy, copy.getDst()), plainPointer(copy, copy.getSrc()), size,
             copy.getCpSize() ? copy.getCpSize() : size});
  return success();
}

LogicalResult KernelRewriter::report(NVVM::CpAsyncBulkGlobalToSharedClusterOp copy) {
  constexpr uint64_t alignment = 16;
  llvm::APInt size;
  if (!matchPattern(copy.getSize(), m_ConstantInt(&size)) || size.urem(alignment) != 0 || size.isZero())
    return copy.emitOpError("is simulated only for a constant number of bytes that is a multiple of 16");
  if (copy.getMulticastMask() || copy.getL2CacheHint())
    return copy.emitOpError("to several blocks, or with a cache policy, is not simulated");
  Type bytes = LLVM::LLVMArrayType::get(code.builder.getI8Type(), size.getZExtValue());
  FailureOr<Value> reads = siteOf(copy, {copy.getSrcMem(), bytes, alignment, {true, false, false}});
  FailureOr<Value> writes = siteOf(copy, {copy.getDstMem(), bytes, alignment, {false, true, false}});
  if (failed(reads) || failed(writes))
    return failure();
  code.call(copy.getLoc(), runtime::startBulkCopy, {},
            {*reads, *writes, plainPointer(copy, copy.getDstMem()), plainPointer(copy, copy.getSrcMem()),
             code.number(copy.getLoc(), size.getZExtValue()), plainPointer(copy, copy.getMbar())});
  return success();
}

LogicalResult KernelRewriter::reportBarrier(Operation *op) {
  bool initialises = isa<NVVM::MBarrierInitOp>(op);
  if (op->getNumResults() > 0 || op->getNumOperands() > (isa<NVVM::MBarrierTryWaitParityOp>(op) ? 3 : 2))
    return op->emitOpError("with a state or a predicate is not simulated");
  AccessKind kind = initialises ? AccessKind{false, true, false} : AccessKind{true, true, true};
  FailureOr<Value> id = siteOf(op, {op->getOperand(0), code.builder.getI64Type(), /*alignment=*/8, kind});
  if (failed(id))
    return failure();
  Value address = plainPointer(op, op->getOperand(0));
  if (isa<NVVM::MBarrierInvalOp>(op)) {
    code.call(op->getLoc(), runtime::invalidateBarrier, {}, {*id, address});
    return success();
  }
  const char *function = initialises                               ? runtime::initBarrier
                         : isa<NVVM::MBarrierArriveExpectTxOp>(op) ? runtime::arriveExpecting
                                                                   : runtime::waitForPhase;
  code.call(op->getLoc(), function, {}, {*id, address, op->getOperand(1)});
  return success();
}

LogicalResult KernelRewriter::report(NVVM::LdMatrixOp load) {
  constexpr uint64_t rowBytes = 16;
  OpBuilder &builder = code.builder;
  Location loc = load.getLoc();
  if (load.getEltType() != NVVM::LdStMatrixEltType::B16)
    return load.emitOpError("of elements other than 16 bits is not simulated");
  Type row = LLVM::LLVMArrayType::get(builder.getI8Type(), rowBytes), word = builder.getI32Type();
  FailureOr<Value> id = siteOf(load, {load.getPtr(), row, rowBytes, {true, false, false}});
  if (failed(id))
    return failure();
  auto plain = LLVM::LLVMPointerType::get(builder.getContext());
  bool transposed = load.getLayout() == NVVM::MMALayout::col;
  Value registers = code.call(
      loc, runtime::loadMatrices, plain,
      {*id, code.number(loc, load.getNum()), code.number(loc, transposed), plainPointer(load, load.getPtr())});
  auto read = [&](int32_t index) -> Value {
    Value slot = LLVM::GEPOp::create(builder, loc, plain, word, registers, ArrayRef<LLVM::GEPArg>{index});
    return LLVM::LoadOp::create(builder, loc, word, slot);
  };
  if (load.getNum() == 1) {
    load.getRes().replaceAllUsesWith(read(0));
    return success();
  }
  Value result = LLVM::UndefOp::create(builder, loc, load.getRes().getType());
  for (uint32_t index = 0; index < load.getNum(); ++index)
    result = LLVM::InsertValueOp::create(builder, loc, result, read(index), ArrayRef<int64_t>{index});
  load.getRes().replaceAllUsesWith(result);
  return success();
}

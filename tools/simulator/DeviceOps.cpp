// The table of device ops at the end of this file gives each op its class and its lowering. The lowerings above it
// build calls of the runtime, or the host op with the same meaning.
#include "tools/simulator/DeviceOps.h"
#include "tools/simulator/Collectives.h"
#include "tools/simulator/KernelOps.h"
#include "tools/simulator/Matrices.h"

#include "passes/support/Locations.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

//===----------------------------------------------------------------------===//
// Host code
//===----------------------------------------------------------------------===//

Value HostCode::call(Location loc, StringRef function, Type result, ValueRange operands, bool pure) {
  auto declared = module.lookupSymbol<LLVM::LLVMFuncOp>(function);
  if (!declared) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(result ? result : LLVM::LLVMVoidType::get(builder.getContext()),
                                            llvm::to_vector(operands.getTypes()));
    declared = LLVM::LLVMFuncOp::create(builder, builder.getUnknownLoc(), function, type);
    if (pure) {
      SmallVector<LLVM::ModRefInfo> none(6, LLVM::ModRefInfo::NoModRef);
      declared.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(builder.getContext(), none));
      declared.setNoUnwind(true);
      declared.setWillReturn(true);
    }
  }
  auto call = LLVM::CallOp::create(builder, loc, declared, operands);
  return result ? call.getResult() : Value();
}

Value HostCode::number(Location loc, uint32_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value HostCode::site(Operation *op) {
  Site site;
  site.operation = op->getName().getStringRef().str();
  site.location = describe(op->getLoc());
  program.sites.push_back(std::move(site));
  return number(op->getLoc(), program.sites.size() - 1);
}

/// One allocation at the start of the function serves all ops, because no op uses it after the next one begins.
Value HostCode::scratch(Operation *op, int64_t bytes) {
  constexpr llvm::StringLiteral mark = "tilewright.scratch";
  Block &entry = op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front();
  for (auto memory : entry.getOps<LLVM::AllocaOp>())
    if (memory->hasAttr(mark)) {
      auto size = memory.getArraySize().getDefiningOp<LLVM::ConstantOp>();
      if (cast<IntegerAttr>(size.getValue()).getInt() < bytes)
        size.setValueAttr(builder.getI64IntegerAttr(bytes));
      return memory;
    }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&entry);
  Location loc = op->getLoc();
  Value size = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(bytes));
  auto memory = LLVM::AllocaOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
                                       builder.getI8Type(), size, /*alignment=*/16);
  memory->setAttr(mark, builder.getUnitAttr());
  return memory;
}

//===----------------------------------------------------------------------===//
// How each op is simulated
//===----------------------------------------------------------------------===//

namespace {
FailureOr<Value> lowerRegister(Operation *op, uint32_t number, HostCode &code) {
  Value which = code.number(op->getLoc(), number);
  return code.call(op->getLoc(), runtime::readRegister, code.builder.getI32Type(), which, /*pure=*/true);
}

FailureOr<Value> lowerBlockBarrier(Operation *op, uint32_t, HostCode &code) {
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(op))
    if (barrier.getNumberOfThreads() || barrier.getReductionOp())
      return op->emitOpError("for some threads of the block only, or with a reduction, is not simulated");
  code.call(op->getLoc(), runtime::blockBarrier, {}, code.site(op));
  return Value();
}

FailureOr<Value> lowerClusterBarrier(Operation *op, uint32_t waits, HostCode &code) {
  code.call(op->getLoc(), waits ? runtime::clusterWait : runtime::clusterArrive, {}, code.site(op));
  return Value();
}

FailureOr<Value> lowerMapToRank(Operation *op, uint32_t, HostCode &code) {
  auto plain = LLVM::LLVMPointerType::get(op->getContext());
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  if (type == plain)
    return op->emitOpError("on generic pointers is not simulated");
  Value own = LLVM::AddrSpaceCastOp::create(code.builder, loc, plain, op->getOperand(0));
  Value mapped = code.call(loc, runtime::mapToRank, plain, {code.site(op), own, op->getOperand(1)});
  return LLVM::AddrSpaceCastOp::create(code.builder, loc, type, mapped).getResult();
}

FailureOr<Value> lowerWarpBarrier(Operation *op, uint32_t, HostCode &code) {
  code.call(op->getLoc(), runtime::warpBarrier, {}, {code.site(op), op->getOperand(0)});
  return Value();
}

FailureOr<Value> lowerNothing(Operation *, uint32_t, HostCode &) { return Value(); }

/// Bitcasts 32 bits of any type to an integer, or back.
Value reinterpret(Location loc, Value value, Type type, OpBuilder &builder) {
  return value.getType() == type ? value : LLVM::BitcastOp::create(builder, loc, type, value).getResult();
}

FailureOr<Value> lowerShuffle(Operation *op, uint32_t, HostCode &code) {
  auto shuffle = cast<NVVM::ShflOp>(op);
  OpBuilder &builder = code.builder;
  Location loc = op->getLoc();
  Type i32 = builder.getI32Type(), type = shuffle.getVal().getType();
  Value both =
      code.call(loc, runtime::shuffle, builder.getI64Type(),
                {code.site(op), code.number(loc, static_cast<uint32_t>(shuffle.getKind())), shuffle.getThreadMask(),
                 reinterpret(loc, shuffle.getVal(), i32, builder), shuffle.getOffset(), shuffle.getMaskAndClamp()});
  Value bits = LLVM::TruncOp::create(builder, loc, i32, both);
  Value value = reinterpret(loc, bits, type, builder);
  if (!shuffle.getReturnValueAndIsValid())
    return value;
  Value shift = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
  Value valid = LLVM::TruncOp::create(builder, loc, builder.getI1Type(),
                                      LLVM::LShrOp::create(builder, loc, both, shift).getResult());
  Value result = LLVM::UndefOp::create(builder, loc, shuffle.getType());
  result = LLVM::InsertValueOp::create(builder, loc, result, value, ArrayRef<int64_t>{0});
  return LLVM::InsertValueOp::create(builder, loc, result, valid, ArrayRef<int64_t>{1}).getResult();
}

FailureOr<Value> lowerVote(Operation *op, uint32_t, HostCode &code) {
  auto vote = cast<NVVM::VoteSyncOp>(op);
  OpBuilder &builder = code.builder;
  Location loc = op->getLoc();
  Value predicate = LLVM::ZExtOp::create(builder, loc, builder.getI32Type(), vote.getPred());
  Value result =
      code.call(loc, runtime::vote, builder.getI32Type(),
                {code.site(op), code.number(loc, static_cast<uint32_t>(vote.getKind())), vote.getMask(), predicate});
  if (vote.getType().isInteger(1))
    result = LLVM::TruncOp::create(builder, loc, builder.getI1Type(), result);
  return result;
}

FailureOr<Value> lowerReduce(Operation *op, uint32_t, HostCode &code) {
  auto redux = cast<NVVM::ReduxOp>(op);
  auto kind = [&]() -> std::optional<ReduceKind> {
    switch (redux.getKind()) {
    case NVVM::ReduxKind::ADD:
      return ReduceKind::add;
    case NVVM::ReduxKind::AND:
      return ReduceKind::bitAnd;
    case NVVM::ReduxKind::OR:
      return ReduceKind::bitOr;
    case NVVM::ReduxKind::XOR:
      return ReduceKind::bitXor;
    case NVVM::ReduxKind::UMIN:
      return ReduceKind::unsignedMin;
    case NVVM::ReduxKind::UMAX:
      return ReduceKind::unsignedMax;
    case NVVM::ReduxKind::MIN:
      return ReduceKind::signedMin;
    case NVVM::ReduxKind::MAX:
      return ReduceKind::signedMax;
    default:
      return std::nullopt;
    }
  }();
  if (!kind)
    return op->emitOpError("of floats is not simulated");
  return code.call(op->getLoc(), runtime::reduce, code.builder.getI32Type(),
                   {code.site(op), code.number(op->getLoc(), static_cast<uint32_t>(*kind)), redux.getMaskAndClamp(),
                    redux.getVal()});
}

FailureOr<Value> lowerCommit(Operation *op, uint32_t, HostCode &code) {
  code.call(op->getLoc(), runtime::commitCopies, {}, {});
  return Value();
}

/// Lowers a fence, which orders the writes of threads before later asynchronous copies and products.
FailureOr<Value> lowerFence(Operation *op, uint32_t, HostCode &code) {
  auto proxy = dyn_cast<NVVM::FenceProxyOp>(op);
  if (proxy && proxy.getKind() != NVVM::ProxyKind::async_shared && proxy.getKind() != NVVM::ProxyKind::async)
    return op->emitOpError("of another proxy than the asynchronous one is not simulated");
  code.call(op->getLoc(), runtime::fenceBarriers, {}, {});
  if (proxy)
    code.call(op->getLoc(), runtime::fenceProxies, {}, {});
  return Value();
}

FailureOr<Value> lowerProductFence(Operation *op, uint32_t, HostCode &code) {
  code.call(op->getLoc(), runtime::fenceRegisters, {}, {});
  return Value();
}

FailureOr<Value> lowerProductCommit(Operation *op, uint32_t, HostCode &code) {
  code.call(op->getLoc(), runtime::commitProducts, {}, {});
  return Value();
}

FailureOr<Value> lowerProductWait(Operation *op, uint32_t, HostCode &code) {
  code.call(op->getLoc(), runtime::waitForProducts, {},
            code.number(op->getLoc(), cast<NVVM::WgmmaWaitGroupSyncOp>(op).getGroup()));
  return Value();
}

/// Lowers inline assembly without instructions, which passes its operands on. Kernels use it to keep uses of the
/// operands from moving above it.
FailureOr<Value> lowerAssembly(Operation *op, uint32_t, HostCode &code) {
  if (isWarpgroupProduct(op))
    return Value(); // ProductReports.cpp handles it
  bool isEmpty = cast<LLVM::InlineAsmOp>(op).getAsmString().empty() && op->getNumResults() == 1;
  if (isEmpty && llvm::equal(op->getResultTypes(), op->getOperandTypes()))
    return op->getOperand(0);
  auto type = isEmpty ? dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType()) : LLVM::LLVMStructType();
  if (!type || type.getBody() != ArrayRef(llvm::to_vector(op->getOperandTypes())))
    return op->emitOpError("is not simulated");
  Value result = LLVM::UndefOp::create(code.builder, op->getLoc(), type);
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    result = LLVM::InsertValueOp::create(code.builder, op->getLoc(), result, operand, index);
  return result;
}

FailureOr<Value> lowerWait(Operation *op, uint32_t, HostCode &code) {
  code.call(op->getLoc(), runtime::waitForCopies, {},
            code.number(op->getLoc(), cast<NVVM::CpAsyncWaitGroupOp>(op).getN()));
  return Value();
}

Value wordIn(Location loc, Value memory, uint32_t index, OpBuilder &builder) {
  return LLVM::GEPOp::create(builder, loc, memory.getType(), builder.getI32Type(), memory,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
}

/// Returns the element types of a product whose fragments are those of `MatrixRegisters`, or nothing.
std::optional<MatrixType> matrixTypeOf(NVVM::MmaOp op) {
  NVVM::MMAShapeAttr shape = op.getShape();
  std::optional<NVVM::MMATypes> a = op.getMultiplicandAPtxType(), b = op.getMultiplicandBPtxType();
  bool fits = shape.getM() == 16 && shape.getN() == 8 && op.getLayoutA() == NVVM::MMALayout::row &&
              op.getLayoutB() == NVVM::MMALayout::col && op.getOperandA().size() == 4 && op.getOperandB().size() == 2 &&
              op.getOperandC().size() == 4 && a && b;
  if (!fits)
    return std::nullopt;
  auto isByte = [](NVVM::MMATypes type) { return type == NVVM::MMATypes::s8 || type == NVVM::MMATypes::u8; };
  if (shape.getK() == 32 && isByte(*a) && isByte(*b) && op.getOperandC()[0].getType().isInteger(32) &&
      op.getIntOverflowBehavior() != NVVM::MMAIntOverflow::satfinite)
    return static_cast<MatrixType>(static_cast<uint32_t>(MatrixType::u8u8) + 2 * (*a == NVVM::MMATypes::s8) +
                                   (*b == NVVM::MMATypes::s8));
  if (a != b || !op.getOperandC()[0].getType().isF32())
    return std::nullopt;
  if (shape.getK() == 16 && *a == NVVM::MMATypes::f16)
    return MatrixType::f16;
  if (shape.getK() == 16 && *a == NVVM::MMATypes::bf16)
    return MatrixType::bf16;
  return shape.getK() == 8 && *a == NVVM::MMATypes::tf32 ? std::optional(MatrixType::tf32) : std::nullopt;
}

FailureOr<Value> lowerMultiply(Operation *op, uint32_t, HostCode &code) {
  auto multiply = cast<NVVM::MmaOp>(op);
  std::optional<MatrixType> type = matrixTypeOf(multiply);
  if (!type)
    return op->emitOpError("of this shape and these types is not simulated; m16n8k16 of f16 and bf16 and m16n8k8 of "
                           "tf32 with f32 accumulators are, and m16n8k32 of bytes with i32 accumulators");
  OpBuilder &builder = code.builder;
  Location loc = op->getLoc();
  Type word = builder.getI32Type(), sum = multiply.getOperandC()[0].getType();
  Value memory = code.scratch(op, sizeof(MatrixRegisters));
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    LLVM::StoreOp::create(builder, loc, reinterpret(loc, operand, word, builder), wordIn(loc, memory, index, builder));
  code.call(loc, runtime::multiplyMatrices, {},
            {code.site(op), code.number(loc, static_cast<uint32_t>(*type)), memory});
  Value result = LLVM::UndefOp::create(builder, loc, multiply.getType());
  for (uint32_t index = 0; index < 4; ++index) {
    Value element = LLVM::LoadOp::create(builder, loc, sum, wordIn(loc, memory, 6 + index, builder));
    result = LLVM::InsertValueOp::create(builder, loc, result, element, ArrayRef<int64_t>{index});
  }
  return result;
}

/// Rounds to 10 fraction bits, with ties away from zero. Infinities and NaNs stay the same.
FailureOr<Value> lowerToTf32(Operation *op, uint32_t, HostCode &code) {
  auto convert = cast<NVVM::ConvertFloatToTF32Op>(op);
  if (convert.getRnd() != NVVM::FPRoundingMode::RNA || convert.getRelu())
    return op->emitOpError("other than rounding to nearest, ties away from zero, is not simulated");
  OpBuilder &builder = code.builder;
  Location loc = op->getLoc();
  Type word = builder.getI32Type();
  auto constant = [&](int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value))).getResult();
  };
  Value bits = LLVM::BitcastOp::create(builder, loc, word, op->getOperand(0)), exponent = constant(0x7f800000);
  Value rounded = LLVM::AndOp::create(builder, loc, LLVM::AddOp::create(builder, loc, bits, constant(0x1000)),
                                      constant(0xffffe000));
  Value special = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                       LLVM::AndOp::create(builder, loc, bits, exponent), exponent);
  return LLVM::SelectOp::create(builder, loc, special, bits, rounded).getResult();
}

template <typename HostOp> FailureOr<Value> lowerUnary(Operation *op, uint32_t, HostCode &code) {
  return HostOp::create(code.builder, op->getLoc(), op->getResult(0).getType(), op->getOperand(0)).getResult();
}

template <typename HostOp> FailureOr<Value> lowerBinary(Operation *op, uint32_t, HostCode &code) {
  return HostOp::create(code.builder, op->getLoc(), op->getOperand(0), op->getOperand(1)).getResult();
}

Value one(Operation *op, OpBuilder &builder) {
  Type type = op->getResult(0).getType();
  return LLVM::ConstantOp::create(builder, op->getLoc(), type, builder.getFloatAttr(type, 1.0));
}

FailureOr<Value> lowerReciprocal(Operation *op, uint32_t, HostCode &code) {
  return LLVM::FDivOp::create(code.builder, op->getLoc(), one(op, code.builder), op->getOperand(0)).getResult();
}

FailureOr<Value> lowerReciprocalRoot(Operation *op, uint32_t, HostCode &code) {
  Value root = LLVM::SqrtOp::create(code.builder, op->getLoc(), op->getOperand(0));
  return LLVM::FDivOp::create(code.builder, op->getLoc(), one(op, code.builder), root).getResult();
}

FailureOr<Value> lowerFma(Operation *op, uint32_t, HostCode &code) {
  return LLVM::FMAOp::create(code.builder, op->getLoc(), op->getOperand(0), op->getOperand(1), op->getOperand(2))
      .getResult();
}

constexpr DeviceOp registerOp(llvm::StringLiteral name, Register number) {
  return {name, InstructionClass::integer, lowerRegister, static_cast<uint32_t>(number)};
}

// The host computes approximate functions more exactly than the device. The difference is within their stated error.
const DeviceOp table[] = {
    registerOp("nvvm.read.ptx.sreg.tid.x", Register::tidX),
    registerOp("nvvm.read.ptx.sreg.tid.y", Register::tidY),
    registerOp("nvvm.read.ptx.sreg.tid.z", Register::tidZ),
    registerOp("nvvm.read.ptx.sreg.ntid.x", Register::ntidX),
    registerOp("nvvm.read.ptx.sreg.ntid.y", Register::ntidY),
    registerOp("nvvm.read.ptx.sreg.ntid.z", Register::ntidZ),
    registerOp("nvvm.read.ptx.sreg.ctaid.x", Register::ctaidX),
    registerOp("nvvm.read.ptx.sreg.ctaid.y", Register::ctaidY),
    registerOp("nvvm.read.ptx.sreg.ctaid.z", Register::ctaidZ),
    registerOp("nvvm.read.ptx.sreg.nctaid.x", Register::nctaidX),
    registerOp("nvvm.read.ptx.sreg.nctaid.y", Register::nctaidY),
    registerOp("nvvm.read.ptx.sreg.nctaid.z", Register::nctaidZ),
    registerOp("nvvm.read.ptx.sreg.laneid", Register::laneid),
    registerOp("nvvm.read.ptx.sreg.warpsize", Register::warpsize),
    registerOp("nvvm.read.ptx.sreg.warpid", Register::warpid),
    registerOp("nvvm.read.ptx.sreg.nwarpid", Register::nwarpid),
    registerOp("nvvm.read.ptx.sreg.lanemask.eq", Register::lanemaskEq),
    registerOp("nvvm.read.ptx.sreg.lanemask.lt", Register::lanemaskLt),
    registerOp("nvvm.read.ptx.sreg.lanemask.le", Register::lanemaskLe),
    registerOp("nvvm.read.ptx.sreg.lanemask.ge", Register::lanemaskGe),
    registerOp("nvvm.read.ptx.sreg.lanemask.gt", Register::lanemaskGt),
    registerOp("nvvm.read.ptx.sreg.cluster.ctarank", Register::clusterRank),
    registerOp("nvvm.read.ptx.sreg.cluster.nctarank", Register::clusterBlocks),
    {"nvvm.cluster.arrive", InstructionClass::barrier, lowerClusterBarrier, 0},
    {"nvvm.cluster.arrive.relaxed", InstructionClass::barrier, lowerClusterBarrier, 0},
    {"nvvm.cluster.wait", InstructionClass::barrier, lowerClusterBarrier, 1},
    {"nvvm.mapa", InstructionClass::integer, lowerMapToRank},
    {"nvvm.barrier0", InstructionClass::barrier, lowerBlockBarrier},
    {"nvvm.barrier", InstructionClass::barrier, lowerBlockBarrier},
    {"nvvm.bar.warp.sync", InstructionClass::barrier, lowerWarpBarrier},
    {"nvvm.memory.barrier", InstructionClass::barrier, lowerNothing}, // the host runs a kernel's accesses in order
    {"nvvm.shfl.sync", InstructionClass::shuffle, lowerShuffle},
    {"nvvm.vote.sync", InstructionClass::shuffle, lowerVote},
    {"nvvm.redux.sync", InstructionClass::shuffle, lowerReduce},
    {"nvvm.cp.async.commit.group", InstructionClass::barrier, lowerCommit},
    {"nvvm.cp.async.wait.group", InstructionClass::barrier, lowerWait},
    {"nvvm.cp.async.shared.global", InstructionClass::global, lowerNothing}, // AccessReports.cpp handles it
    {"nvvm.cp.async.bulk.shared.cluster.global", InstructionClass::global, lowerNothing},
    {"nvvm.mbarrier.init", InstructionClass::barrier, lowerNothing},
    {"nvvm.mbarrier.inval", InstructionClass::barrier, lowerNothing},
    {"nvvm.mbarrier.arrive.expect_tx", InstructionClass::barrier, lowerNothing},
    {"nvvm.mbarrier.try_wait.parity", InstructionClass::barrier, lowerNothing},
    {"nvvm.fence.mbarrier.init", InstructionClass::barrier, lowerFence},
    {"nvvm.fence.proxy", InstructionClass::barrier, lowerFence},
    {"nvvm.ldmatrix", InstructionClass::shared, lowerNothing}, // AccessReports.cpp handles it
    {"nvvm.mma.sync", InstructionClass::tensor, lowerMultiply},
    {"nvvm.wgmma.fence.aligned", InstructionClass::barrier, lowerProductFence},
    {"nvvm.wgmma.commit.group.sync.aligned", InstructionClass::barrier, lowerProductCommit},
    {"nvvm.wgmma.wait.group.sync.aligned", InstructionClass::barrier, lowerProductWait},
    {"nvvm.wgmma.mma_async", InstructionClass::tensor, lowerNothing}, // ProductReports.cpp handles it
    {"llvm.inline_asm", InstructionClass::control, lowerAssembly},
    {"nvvm.convert.float.to.tf32", InstructionClass::floating, lowerToTf32},
    {"nvvm.rcp.approx.ftz.f", InstructionClass::special, lowerReciprocal},
    {"llvm.nvvm.ex2.approx.f", InstructionClass::special, lowerUnary<LLVM::Exp2Op>},
    {"llvm.nvvm.ex2.approx.ftz.f", InstructionClass::special, lowerUnary<LLVM::Exp2Op>},
    {"llvm.nvvm.ex2.approx", InstructionClass::special, lowerUnary<LLVM::Exp2Op>},
    {"llvm.nvvm.ex2.approx.ftz", InstructionClass::special, lowerUnary<LLVM::Exp2Op>},
    {"llvm.nvvm.lg2.approx.f", InstructionClass::special, lowerUnary<LLVM::Log2Op>},
    {"llvm.nvvm.lg2.approx.ftz.f", InstructionClass::special, lowerUnary<LLVM::Log2Op>},
    {"llvm.nvvm.sin.approx.f", InstructionClass::special, lowerUnary<LLVM::SinOp>},
    {"llvm.nvvm.cos.approx.f", InstructionClass::special, lowerUnary<LLVM::CosOp>},
    {"llvm.nvvm.tanh.approx.f", InstructionClass::special, lowerUnary<LLVM::TanhOp>},
    {"llvm.nvvm.sqrt.approx.f", InstructionClass::special, lowerUnary<LLVM::SqrtOp>},
    {"llvm.nvvm.sqrt.rn.f", InstructionClass::special, lowerUnary<LLVM::SqrtOp>},
    {"llvm.nvvm.rcp.approx.ftz.f", InstructionClass::special, lowerReciprocal},
    {"llvm.nvvm.rcp.rn.f", InstructionClass::special, lowerReciprocal},
    {"llvm.nvvm.rsqrt.approx.f", InstructionClass::special, lowerReciprocalRoot},
    {"llvm.nvvm.rsqrt.approx.ftz.f", InstructionClass::special, lowerReciprocalRoot},
    {"llvm.nvvm.div.rn.f", InstructionClass::special, lowerBinary<LLVM::FDivOp>},
    {"llvm.nvvm.div.approx.f", InstructionClass::special, lowerBinary<LLVM::FDivOp>},
    {"llvm.nvvm.fma.rn.f", InstructionClass::floating, lowerFma},
};
} // namespace

const DeviceOp *tilewright::simulator::findDeviceOp(Operation *op) {
  static const llvm::StringMap<const DeviceOp *> byName = [] {
    llvm::StringMap<const DeviceOp *> result;
    for (const DeviceOp &entry : table)
      result[entry.name] = &entry;
    return result;
  }();
  auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
  StringRef name = intrinsic ? intrinsic.getIntrin() : op->getName().getStringRef();
  return byName.lookup(name);
}

// Rewrites a kernel in this order: uses of product accumulators, then memory accesses, then all other ops. The first
// two look at ops that the last step replaces.
#include "tools/simulator/KernelRewriter.h"
#include "tools/simulator/Collectives.h"
#include "tools/simulator/Fiber.h"
#include "tools/simulator/MainLoops.h"
#include "tools/simulator/Rewrite.h"

#include "passes/support/Locations.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

LogicalResult KernelRewriter::run() {
  if (failed(readKernel()))
    return failure();
  placeVariables();
  SmallVector<LLVM::LLVMFuncOp> functions(module.getOps<LLVM::LLVMFuncOp>());
  for (LLVM::LLVMFuncOp function : functions)
    if (failed(rewrite(function)))
      return failure();
  if (localBytes > stackBytes - runtimeStackBytes)
    return kernel.emitError("a thread has ")
           << localBytes << " bytes of variables; the simulated device has room for " << stackBytes - runtimeStackBytes;
  if (program.sites.size() > UINT16_MAX)
    return kernel.emitError("has ") << program.sites.size() << " accesses; the simulated device supports 65535";
  for (auto global : llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>()))
    if (global.getAddrSpace() == sharedSpace)
      global.erase();
  buildEntry();
  return success();
}

LogicalResult KernelRewriter::readKernel() {
  program.kernel = kernel.getName().str();
  if (auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getMaxntidAttrName()))
    for (auto [index, size] : llvm::enumerate(threads.asArrayRef()))
      program.maxThreads[index] = size;
  for (uint32_t &size : program.maxThreads)
    size = std::max(size, program.maxThreads[0] ? 1u : 0u);
  if (auto blocks = kernel->getAttrOfType<IntegerAttr>(NVVM::NVVMDialect::getMinctasmAttrName()))
    program.minBlocksPerMultiprocessor = blocks.getInt();
  if (auto cluster = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getClusterDimAttrName())) {
    if (llvm::any_of(cluster.asArrayRef().drop_front(), [](int32_t size) { return size != 1; }) || cluster[0] < 1 ||
        cluster[0] > 16)
      return kernel.emitError("only clusters of at most 16 blocks, along x, are simulated");
    program.cluster = cluster[0];
  }
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    bool binding = isa<LLVM::LLVMPointerType>(type);
    if ((binding && program.numConstants > 0) || (!binding && !type.isInteger(32)))
      return kernel.emitError("argument ") << index << " is " << type << "; kernels take pointers, then i32";
    ++(binding ? program.numBindings : program.numConstants);
  }
  return success();
}

void KernelRewriter::placeVariables() {
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    Variable variable;
    variable.name = global.getSymName().str();
    variable.bytes = layout.getTypeSize(global.getGlobalType());
    variable.alignment =
        std::max<uint64_t>(global.getAlignment().value_or(1), layout.getTypeABIAlignment(global.getGlobalType()));
    variable.dynamic = variable.bytes == 0;
    if (global.getAddrSpace() == sharedSpace) {
      sharedVariables[variable.name] = program.shared.size();
      program.shared.push_back(std::move(variable));
    } else {
      global.setLinkage(LLVM::Linkage::External); // the linker then places it
      program.global.push_back(std::move(variable));
    }
  }
}

void KernelRewriter::clean(LLVM::LLVMFuncOp function) {
  SmallVector<StringAttr> discarded;
  for (NamedAttribute attribute : function->getDiscardableAttrs())
    if (attribute.getName().strref().contains('.'))
      discarded.push_back(attribute.getName());
  for (StringAttr name : discarded)
    function->removeDiscardableAttr(name);
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  function.removeTargetCpuAttr();
  function.removeTargetFeaturesAttr();
  function.removeMemoryEffectsAttr();
  function.removePassthroughAttr();
  function.setCConv(LLVM::CConv::C);
  function.setLinkage(LLVM::Linkage::Internal);
}

LogicalResult KernelRewriter::rewrite(LLVM::LLVMFuncOp function) {
  if (function.isExternal())
    return function.emitError("'") << function.getName() << "' is called, but has no body";
  clean(function);
  for (Block &block : function.getBody())
    visit(block);
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op != function)
      ops.push_back(op);
  });
  llvm::DenseSet<Block *> mainLoops = findMainLoops(function);
  for (Operation *op : ops)
    if (mainLoops.contains(op->getBlock()))
      inMainLoops.insert(op);
  // Report uses of accumulators first, while the code still shows where they go.
  for (Operation *op : ops)
    if (isWarpgroupProduct(op))
      reportSums(op);
  // Report accesses before rewriting: they look for the base of their address, which rewriting changes.
  for (Operation *op : ops)
    if (failed(reportAccess(op)))
      return failure();
  for (Operation *op : ops)
    if (failed(rewrite(op)))
      return failure();
  return success();
}

void KernelRewriter::visit(Block &block) {
  BasicBlock counts;
  counts.location = describe(block.front().getLoc());
  for (Operation &op : block) {
    std::optional<InstructionClass> kind = classify(&op);
    if (auto access = memoryAccess(&op)) {
      unsigned space = cast<LLVM::LLVMPointerType>(access->pointer.getType()).getAddressSpace();
      bool local = addressBase(access->pointer).getDefiningOp<LLVM::AllocaOp>() != nullptr;
      kind = space == sharedSpace || space == clusterSpace ? InstructionClass::shared
             : local                                       ? InstructionClass::local
                                                           : InstructionClass::global;
    }
    if (!kind)
      continue;
    uint32_t count = memoryAccess(&op) ? 1 : lanes(&op);
    counts.instructions[static_cast<unsigned>(*kind)] += count;
    counts.total += count;
  }
  program.basicBlocks.push_back(std::move(counts));
  Location loc = block.front().getLoc();
  code.builder.setInsertionPointToStart(&block);
  code.call(loc, runtime::visit, {}, code.number(loc, program.basicBlocks.size() - 1));
}

LogicalResult KernelRewriter::rewrite(Operation *op) {
  code.builder.setInsertionPoint(op);
  if (const DeviceOp *device = findDeviceOp(op)) {
    FailureOr<Value> result = device->lower(op, device->variant, code);
    if (failed(result))
      return failure();
    if (*result)
      op->replaceAllUsesWith(ValueRange(*result));
    op->erase();
    return success();
  }
  if (isUnknown(op))
    return op->emitOpError("is not simulated");
  if (auto address = dyn_cast<LLVM::AddressOfOp>(op)) {
    auto variable = sharedVariables.find(address.getGlobalName());
    if (variable == sharedVariables.end())
      return success();
    Value number = code.number(op->getLoc(), variable->second);
    auto plain = LLVM::LLVMPointerType::get(op->getContext());
    Value pointer = code.call(op->getLoc(), runtime::shared, plain, number, /*pure=*/true);
    pointer = LLVM::AddrSpaceCastOp::create(code.builder, op->getLoc(), address.getType(), pointer);
    op->replaceAllUsesWith(ValueRange(pointer));
    op->erase();
  } else if (auto call = dyn_cast<LLVM::CallOp>(op)) {
    if (!call.getCallee())
      return op->emitOpError("through a pointer is not simulated");
    if (*call.getCallee() == gridBarrierName) {
      program.gridBarrier = true;
      code.call(op->getLoc(), runtime::gridBarrier, {}, code.site(op));
      op->erase();
    }
  } else if (isa<LLVM::Trap, LLVM::DebugTrap, LLVM::UBSanTrap>(op)) {
    code.call(op->getLoc(), runtime::trap, {}, code.site(op));
    op->erase();
  } else if (isa<LLVM::UDivOp, LLVM::SDivOp, LLVM::URemOp, LLVM::SRemOp>(op)) {
    if (failed(checkDivisor(op)))
      return failure();
  } else if (auto local = dyn_cast<LLVM::AllocaOp>(op)) {
    IntegerAttr count;
    if (!matchPattern(local.getArraySize(), m_Constant(&count)))
      return op->emitOpError("of a size that is not a constant is not simulated");
    localBytes += count.getInt() * layout.getTypeSize(local.getElemType());
  }
  return success();
}

LogicalResult KernelRewriter::checkDivisor(Operation *op) {
  Value divisor = op->getOperand(1);
  Type wide = code.builder.getI64Type(), type = getElementTypeOrSelf(divisor.getType());
  if (!isa<IntegerType>(type) || type.getIntOrFloatBitWidth() > 64)
    return op->emitOpError("of ") << divisor.getType() << " is not simulated";
  if (matchPattern(divisor, m_Constant()))
    return success();
  auto check = [&](Value number) {
    if (type != wide)
      number = LLVM::ZExtOp::create(code.builder, op->getLoc(), wide, number);
    code.call(op->getLoc(), runtime::divide, {}, {code.site(op), number});
  };
  auto vector = dyn_cast<VectorType>(divisor.getType());
  if (!vector)
    check(divisor);
  for (int64_t lane = 0; vector && lane < vector.getNumElements(); ++lane)
    check(LLVM::ExtractElementOp::create(code.builder, op->getLoc(), divisor, code.number(op->getLoc(), lane)));
  return success();
}

void KernelRewriter::buildEntry() {
  OpBuilder &builder = code.builder;
  Location loc = builder.getUnknownLoc();
  builder.setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {pointer});
  auto entry = LLVM::LLVMFuncOp::create(builder, loc, entryName, type);
  Block *body = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  SmallVector<Value> arguments;
  for (auto [index, argument] : llvm::enumerate(kernel.getArgumentTypes())) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, body->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
    arguments.push_back(LLVM::LoadOp::create(builder, loc, argument, address));
  }
  LLVM::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

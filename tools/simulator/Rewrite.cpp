#include "tools/simulator/Rewrite.h"
#include "tools/simulator/Collectives.h"
#include "tools/simulator/DeviceOps.h"
#include "tools/simulator/Fiber.h"
#include "tools/simulator/MatrixElements.h"

#include "core/Locations.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

/// The function whose calls are the grid barrier; its body is for PTX.
static constexpr llvm::StringLiteral gridBarrierName = "tile_grid_barrier";

static constexpr unsigned genericSpace = 0, globalSpace = 1, sharedSpace = 3, clusterSpace = 7;

//===----------------------------------------------------------------------===//
// Which kernel, and what belongs to it
//===----------------------------------------------------------------------===//

static bool isKernel(LLVM::LLVMFuncOp function) {
  return function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) || function->hasAttr("gpu.kernel");
}

static LLVM::LLVMFuncOp findKernel(ModuleOp module, StringRef name) {
  SmallVector<LLVM::LLVMFuncOp> kernels;
  std::string names;
  module.walk([&](LLVM::LLVMFuncOp function) {
    if (!isKernel(function))
      return;
    names += (names.empty() ? "" : ", ") + function.getName().str();
    if (name.empty() || function.getName() == name)
      kernels.push_back(function);
  });
  if (kernels.size() == 1)
    return kernels.front();
  if (names.empty())
    module.emitError("the module has no kernel, which is an llvm.func with the attribute nvvm.kernel");
  else if (name.empty())
    module.emitError("the module has several kernels, so one must be named: ") << names;
  else
    module.emitError("the module has no kernel '") << name << "'; it has " << names;
  return nullptr;
}

/// Clones the kernel, and what it refers to, into a module of their own.
static LogicalResult cloneReachable(LLVM::LLVMFuncOp kernel, ModuleOp into) {
  SymbolTable symbols(kernel->getParentOp());
  SmallVector<Operation *> work = {kernel};
  llvm::SmallPtrSet<Operation *, 8> seen = {kernel};
  OpBuilder builder = OpBuilder::atBlockEnd(into.getBody());
  while (!work.empty()) {
    Operation *symbol = work.pop_back_val();
    builder.clone(*symbol);
    bool failed = false;
    symbol->walk([&](Operation *op) {
      if (!isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect())) {
        op->emitOpError("is not of the dialects llvm and nvvm, at which kernels are simulated");
        failed = true;
        return;
      }
      op->getAttrDictionary().walk([&](FlatSymbolRefAttr reference) {
        Operation *target = symbols.lookup(reference.getAttr());
        if (target && reference.getValue() != gridBarrierName && seen.insert(target).second)
          work.push_back(target);
      });
    });
    if (failed)
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// What an op is
//===----------------------------------------------------------------------===//

/// The class an op is counted in, and in how many instructions; none: it is only names and constants.
static std::optional<InstructionClass> classify(Operation *op) {
  if (const DeviceOp *device = findDeviceOp(op))
    return device->instructionClass;
  using Class = std::optional<InstructionClass>;
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("llvm."))
    return std::nullopt;
  name.consume_front("intr.");
  return llvm::StringSwitch<Class>(name)
      .Cases({"fadd",   "fsub",    "fmul",    "fneg",  "fcmp", "fma",  "fmuladd",   "fabs",  "copysign", "maxnum",
              "minnum", "maximum", "minimum", "floor", "ceil", "rint", "nearbyint", "trunc", "round",    "roundeven"},
             InstructionClass::floating)
      .Cases({"fdiv", "frem", "sqrt", "exp", "exp2", "log", "log2", "log10", "pow", "powi", "sin", "cos", "tanh", "tan",
              "atan", "atan2"},
             InstructionClass::special)
      .Cases({"add",  "sub",  "mul",  "udiv",  "sdiv",   "urem", "srem",  "and",           "or",   "xor",
              "shl",  "lshr", "ashr", "icmp",  "select", "zext", "sext",  "getelementptr", "umin", "umax",
              "smin", "smax", "abs",  "ctpop", "ctlz",   "cttz", "bswap", "bitreverse",    "fshl", "fshr"},
             InstructionClass::integer)
      .Cases({"fpext", "fptrunc", "fptosi", "fptoui", "sitofp", "uitofp"}, InstructionClass::convert)
      .Cases({"br", "cond_br", "switch", "return", "call", "unreachable"}, InstructionClass::control)
      .Case("fence", InstructionClass::barrier)
      .Default(std::nullopt);
}

/// A vector is as many instructions as it has elements.
static uint32_t lanes(Operation *op) {
  Type type = op->getNumResults() > 0 ? op->getResult(0).getType() : Type();
  auto vector = dyn_cast_if_present<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

/// An access to memory: where, how much, and how.
namespace {
struct MemoryAccess {
  Value pointer;
  Type type;
  uint64_t alignment; ///< 0: as the type has it
  AccessKind kind;
};
} // namespace

static std::optional<MemoryAccess> memoryAccess(Operation *op) {
  auto isAtomic = [](LLVM::AtomicOrdering ordering) { return ordering != LLVM::AtomicOrdering::not_atomic; };
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return MemoryAccess{
        load.getAddr(), load.getType(), load.getAlignment().value_or(0), {true, false, isAtomic(load.getOrdering())}};
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return MemoryAccess{store.getAddr(),
                        store.getValue().getType(),
                        store.getAlignment().value_or(0),
                        {false, true, isAtomic(store.getOrdering())}};
  if (auto update = dyn_cast<LLVM::AtomicRMWOp>(op))
    return MemoryAccess{
        update.getPtr(), update.getVal().getType(), update.getAlignment().value_or(0), {true, true, true}};
  if (auto exchange = dyn_cast<LLVM::AtomicCmpXchgOp>(op))
    return MemoryAccess{
        exchange.getPtr(), exchange.getVal().getType(), exchange.getAlignment().value_or(0), {true, true, true}};
  return std::nullopt;
}

/// Ops that read or write memory in a way that nothing here knows of.
static bool isUnknown(Operation *op) {
  if (isa<LLVM::InlineAsmOp, LLVM::CallIntrinsicOp, LLVM::InvokeOp>(op) || !isa<LLVM::LLVMDialect>(op->getDialect()))
    return !findDeviceOp(op);
  return isa<LLVM::MemcpyOp, LLVM::MemcpyInlineOp, LLVM::MemmoveOp, LLVM::MemsetOp, LLVM::MaskedLoadOp,
             LLVM::MaskedStoreOp, LLVM::masked_gather, LLVM::masked_scatter>(op);
}

/// The value that was put into a struct at the position from which `extract` takes it; null if that is not to be seen.
static Value insertedValue(LLVM::ExtractValueOp extract) {
  Value container = extract.getContainer();
  while (auto insert = container.getDefiningOp<LLVM::InsertValueOp>()) {
    if (insert.getPosition() == extract.getPosition())
      return insert.getValue();
    container = insert.getContainer();
  }
  return nullptr;
}

/// What an address is computed from, as far as the code says.
static Value addressBase(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    Value from;
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp, LLVM::BitcastOp>(op))
      from = op->getOperand(0);
    else if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op)) // lowered memrefs are structs
      from = insertedValue(extract);
    if (!from)
      break;
    pointer = from;
  }
  return pointer;
}

//===----------------------------------------------------------------------===//
// The rewriting
//===----------------------------------------------------------------------===//

namespace {
class KernelRewriter {
public:
  KernelRewriter(ModuleOp module, StringRef kernel, DeviceProgram &program)
      : module(module), code{OpBuilder(module.getContext()), module, program}, program(program), layout(module),
        kernel(module.lookupSymbol<LLVM::LLVMFuncOp>(kernel)) {}

  LogicalResult run();

private:
  LogicalResult readKernel();
  void placeVariables();
  void clean(LLVM::LLVMFuncOp function);
  LogicalResult rewrite(LLVM::LLVMFuncOp function);
  LogicalResult rewrite(Operation *op);
  LogicalResult checkDivisor(Operation *op);
  FailureOr<Value> siteOf(Operation *op, const MemoryAccess &access);
  Value plainPointer(Operation *op, Value pointer);
  LogicalResult report(Operation *op, const MemoryAccess &access);
  LogicalResult report(NVVM::CpAsyncOp copy);
  LogicalResult report(NVVM::LdMatrixOp load);
  LogicalResult report(NVVM::CpAsyncBulkGlobalToSharedClusterOp copy);
  LogicalResult report(NVVM::WgmmaMmaAsyncOp multiply);
  void reportSums(NVVM::WgmmaMmaAsyncOp multiply);
  LogicalResult reportBarrier(Operation *op);
  void visit(Block &block);
  void buildEntry();

  ModuleOp module;
  HostCode code;
  DeviceProgram &program;
  DataLayout layout;
  LLVM::LLVMFuncOp kernel;
  llvm::StringMap<uint32_t> sharedVariables;
  llvm::DenseMap<Operation *, uint32_t> productSites;
  uint64_t localBytes = 0;
};
} // namespace

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
    return kernel.emitError("has ") << program.sites.size() << " accesses; the simulated device tells 65535 apart";
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
      return kernel.emitError("clusters are simulated of at most 16 blocks along x");
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
      global.setLinkage(LLVM::Linkage::External); // so that the linker says where it lies
      program.global.push_back(std::move(variable));
    }
  }
}

/// Takes off what only a device back end understands, and promises that fibers do not keep.
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
    return function.emitError("is called, but has no body");
  clean(function);
  for (Block &block : function.getBody())
    visit(block);
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op != function)
      ops.push_back(op);
  });
  // While the code still says where sums go to.
  for (Operation *op : ops)
    if (auto multiply = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op))
      reportSums(multiply);
  // Accesses first: they look for what their address is computed from, which is then rewritten.
  for (Operation *op : ops) {
    LogicalResult reported = success();
    if (std::optional<MemoryAccess> access = memoryAccess(op))
      reported = report(op, *access);
    else if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
      reported = report(copy);
    else if (auto load = dyn_cast<NVVM::LdMatrixOp>(op))
      reported = report(load);
    else if (auto copy = dyn_cast<NVVM::CpAsyncBulkGlobalToSharedClusterOp>(op))
      reported = report(copy);
    else if (auto multiply = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op))
      reported = report(multiply);
    else if (isa<NVVM::MBarrierInitOp, NVVM::MBarrierArriveExpectTxOp, NVVM::MBarrierTryWaitParityOp>(op))
      reported = reportBarrier(op);
    if (failed(reported))
      return failure();
  }
  for (Operation *op : ops)
    if (failed(rewrite(op)))
      return failure();
  return success();
}

/// Counts the block's instructions, and lets it report that it runs.
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

/// An id for the access; null where no other thread can see the memory.
FailureOr<Value> KernelRewriter::siteOf(Operation *op, const MemoryAccess &access) {
  Value base = addressBase(access.pointer);
  unsigned space = cast<LLVM::LLVMPointerType>(base.getType()).getAddressSpace();
  if (base.getDefiningOp<LLVM::AllocaOp>() ||
      (space != genericSpace && space != globalSpace && space != sharedSpace && space != clusterSpace))
    return Value(); // the thread's own, or constant
  code.builder.setInsertionPoint(op);
  Value id = code.site(op);
  Site &site = program.sites.back();
  site.isAccess = true;
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
    return copy.emitOpError("is simulated of a constant number of bytes, a multiple of 16");
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

/// Arrivals and waits order each other; who initialises a barrier has to come before them by another one.
LogicalResult KernelRewriter::reportBarrier(Operation *op) {
  bool initialises = isa<NVVM::MBarrierInitOp>(op);
  if (op->getNumResults() > 0 || op->getNumOperands() > (isa<NVVM::MBarrierTryWaitParityOp>(op) ? 3 : 2))
    return op->emitOpError("with a state or a predicate is not simulated");
  AccessKind kind = initialises ? AccessKind{false, true, false} : AccessKind{true, true, true};
  FailureOr<Value> id = siteOf(op, {op->getOperand(0), code.builder.getI64Type(), /*alignment=*/8, kind});
  if (failed(id))
    return failure();
  const char *function = initialises                               ? runtime::initBarrier
                         : isa<NVVM::MBarrierArriveExpectTxOp>(op) ? runtime::arriveExpecting
                                                                   : runtime::waitForPhase;
  code.call(op->getLoc(), function, {}, {*id, plainPointer(op, op->getOperand(0)), op->getOperand(1)});
  return success();
}

LogicalResult KernelRewriter::report(NVVM::LdMatrixOp load) {
  constexpr uint64_t rowBytes = 16;
  OpBuilder &builder = code.builder;
  Location loc = load.getLoc();
  if (load.getEltType() != NVVM::LdStMatrixEltType::B16)
    return load.emitOpError("of other elements than 16 bits is not simulated");
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
    Value place = LLVM::GEPOp::create(builder, loc, plain, word, registers, ArrayRef<LLVM::GEPArg>{index});
    return LLVM::LoadOp::create(builder, loc, word, place);
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

/// Sums go through structs and blocks without being touched; whoever does anything else with them says so.
void KernelRewriter::reportSums(NVVM::WgmmaMmaAsyncOp multiply) {
  code.builder.setInsertionPoint(multiply);
  code.site(multiply);
  uint32_t product = productSites[multiply] = program.sites.size() - 1;
  program.sites.back().kind.reads = true;
  program.sites.back().space = Space::shared;
  SmallVector<Value> work = {multiply.getResults()};
  llvm::DenseSet<Value> seen(work.begin(), work.end());
  llvm::SmallSetVector<Operation *, 8> users;
  auto pass = [&](Value value) {
    if (seen.insert(value).second)
      work.push_back(value);
  };
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<LLVM::ExtractValueOp, LLVM::InsertValueOp>(user))
        pass(user->getResult(0));
      else if (auto branch = dyn_cast<BranchOpInterface>(user)) {
        if (std::optional<BlockArgument> argument = branch.getSuccessorBlockArgument(use.getOperandNumber()))
          pass(*argument);
      } else if (!isa<NVVM::WgmmaMmaAsyncOp>(user)) {
        users.insert(user);
      }
    }
  for (Operation *user : users) {
    code.builder.setInsertionPoint(user);
    code.call(user->getLoc(), runtime::touchSums, {}, {code.site(user), code.number(user->getLoc(), product)});
  }
}

/// What a warpgroup multiplies, if it is simulated.
static std::optional<MatrixType> factorsOf(NVVM::WgmmaMmaAsyncOp multiply) {
  using Types = NVVM::WGMMATypes;
  Types left = multiply.getTypeA(), right = multiply.getTypeB();
  auto isByte = [](Types type) { return type == Types::s8 || type == Types::u8; };
  if (isByte(left) && isByte(right))
    return static_cast<MatrixType>(static_cast<uint32_t>(MatrixType::u8u8) + (left == Types::s8 ? 2 : 0) +
                                   (right == Types::s8 ? 1 : 0));
  if (left != right)
    return std::nullopt;
  return left == Types::f16    ? std::optional(MatrixType::f16)
         : left == Types::bf16 ? std::optional(MatrixType::bf16)
         : left == Types::tf32 ? std::optional(MatrixType::tf32)
                               : std::nullopt;
}

LogicalResult KernelRewriter::report(NVVM::WgmmaMmaAsyncOp multiply) {
  OpBuilder &builder = code.builder;
  Location loc = multiply.getLoc();
  auto type = cast<LLVM::LLVMStructType>(multiply.getResults().getType());
  NVVM::MMAShapeAttr shape = multiply.getShape();
  std::optional<MatrixType> factors = factorsOf(multiply);
  bool isWhole = factors && isBytes(*factors);
  bool fits = factors && multiply.getTypeD() == (isWhole ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32) &&
              multiply.getScaleD() == NVVM::WGMMAScaleOut::one && multiply.getScaleA() == NVVM::WGMMAScaleIn::one &&
              multiply.getScaleB() == NVVM::WGMMAScaleIn::one &&
              multiply.getSatfinite() != NVVM::MMAIntOverflow::satfinite;
  if (!fits)
    return multiply.emitOpError(
        "of these types is not simulated: of f16, bf16 and tf32 added to sums in f32 is, and of "
        "bytes added to sums in i32 that wrap");
  builder.setInsertionPoint(multiply);
  uint32_t along =
      (multiply.getLayoutA() == NVVM::MMALayout::row ? 1 : 0) | (multiply.getLayoutB() == NVVM::MMALayout::col ? 2 : 0);
  Value sums = code.scratch(multiply, shape.getN() / 2 * static_cast<int64_t>(sizeof(float)));
  auto place = [&](int32_t index) -> Value {
    return LLVM::GEPOp::create(builder, loc, sums.getType(), builder.getF32Type(), sums, ArrayRef<LLVM::GEPArg>{index});
  };
  for (auto [index, element] : llvm::enumerate(type.getBody())) {
    Value sum = LLVM::ExtractValueOp::create(builder, loc, element, multiply.getInouts(), ArrayRef<int64_t>(index));
    LLVM::StoreOp::create(builder, loc, sum, place(index));
  }
  code.call(loc, runtime::startProduct, {},
            {code.number(loc, productSites.lookup(multiply)), code.number(loc, static_cast<uint32_t>(*factors)),
             code.number(loc, shape.getN() | along << 16), multiply.getDescriptorA(), multiply.getDescriptorB(), sums});
  Value result = LLVM::UndefOp::create(builder, loc, type);
  for (auto [index, element] : llvm::enumerate(type.getBody())) {
    Value sum = LLVM::LoadOp::create(builder, loc, element, place(index));
    result = LLVM::InsertValueOp::create(builder, loc, result, sum, index);
  }
  multiply.getResults().replaceAllUsesWith(result);
  return success();
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
      return op->emitOpError("of a size that is not constant is not simulated");
    localBytes += count.getInt() * layout.getTypeSize(local.getElemType());
  }
  return success();
}

/// Of a vector each lane.
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

/// entry(arguments): kernel(*arguments[0], *arguments[1], ...)
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

OwningOpRef<ModuleOp> tilewright::simulator::rewriteKernel(ModuleOp module, StringRef kernel, DeviceProgram &program) {
  LLVM::LLVMFuncOp found = findKernel(module, kernel);
  if (!found)
    return nullptr;
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  if (failed(cloneReachable(found, *result)) || failed(KernelRewriter(*result, found.getName(), program).run()))
    return nullptr;
  return result;
}

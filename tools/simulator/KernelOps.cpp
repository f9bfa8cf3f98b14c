#include "tools/simulator/KernelOps.h"
#include "tools/simulator/DeviceOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

bool tilewright::simulator::isWarpgroupProduct(Operation *op) {
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  return isa<NVVM::WgmmaMmaAsyncOp>(op) || (assembly && assembly.getAsmString().contains("wgmma.mma_async"));
}

std::optional<InstructionClass> tilewright::simulator::classify(Operation *op) {
  if (isWarpgroupProduct(op))
    return InstructionClass::tensor;
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

uint32_t tilewright::simulator::lanes(Operation *op) {
  Type type = op->getNumResults() > 0 ? op->getResult(0).getType() : Type();
  auto vector = dyn_cast_if_present<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

std::optional<MemoryAccess> tilewright::simulator::memoryAccess(Operation *op) {
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

bool tilewright::simulator::isUnknown(Operation *op) {
  if (isa<LLVM::InlineAsmOp, LLVM::CallIntrinsicOp, LLVM::InvokeOp>(op) || !isa<LLVM::LLVMDialect>(op->getDialect()))
    return !findDeviceOp(op);
  return isa<LLVM::MemcpyOp, LLVM::MemcpyInlineOp, LLVM::MemmoveOp, LLVM::MemsetOp, LLVM::MaskedLoadOp,
             LLVM::MaskedStoreOp, LLVM::masked_gather, LLVM::masked_scatter>(op);
}

/// Returns the value that was inserted into a struct at the position from which `extract` reads, or null if the code
/// does not show it.
static Value insertedValue(LLVM::ExtractValueOp extract) {
  Value container = extract.getContainer();
  while (auto insert = container.getDefiningOp<LLVM::InsertValueOp>()) {
    if (insert.getPosition() == extract.getPosition())
      return insert.getValue();
    container = insert.getContainer();
  }
  return nullptr;
}

Value tilewright::simulator::addressBase(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    Value from;
    if (isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp, LLVM::BitcastOp>(op))
      from = op->getOperand(0);
    else if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op)) // memrefs become structs
      from = insertedValue(extract);
    if (!from)
      break;
    pointer = from;
  }
  return pointer;
}

// Linux gives a process tile registers only if the process requests them, because their state is large. Without the
// request, the first use is an illegal instruction. XGETBV tells whether the system supports them at all, and a system
// call (arch_prctl), which every process may make, tells whether this process has requested them. The check takes a
// tenth of a microsecond in each workgroup of a kernel that uses tiles. XINUSE and other registers that are faster to
// read do not have the answer.
#include "passes/codegen/cpu/TileGate.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr StringRef kGate = "tile_registers_granted";
constexpr int64_t kArchPrctl = 158, kGetPermissions = 0x1022; // number and operation of Linux's arch_prctl on x86-64
constexpr int64_t kTileConfig = 1 << 17, kTileData = 1 << 18; // components of the extended state

class GateBuilder {
public:
  GateBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  void build(LLVM::LLVMFuncOp gate) {
    Block *start = gate.addEntryBlock(builder), *ask = builder.createBlock(&gate.getBody());
    Block *end = builder.createBlock(&gate.getBody());
    Value answer = end->addArgument(builder.getI1Type(), loc);
    builder.setInsertionPointToStart(start);
    Value no = LLVM::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
    LLVM::CondBrOp::create(builder, loc, has(enabledByTheSystem(), kTileConfig | kTileData), ask, ValueRange(), end,
                           ValueRange(no));
    builder.setInsertionPointToStart(ask);
    LLVM::BrOp::create(builder, loc, ValueRange(isGranted()), end);
    builder.setInsertionPointToStart(end);
    LLVM::ReturnOp::create(builder, loc, answer);
  }

private:
  Value number(int64_t value) { return LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value)); }

  Value has(Value bits, int64_t wanted) {
    Value found = LLVM::AndOp::create(builder, loc, bits, number(wanted));
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, found, number(wanted));
  }

  Value assembly(StringRef text, StringRef constraints, ValueRange operands) {
    return LLVM::InlineAsmOp::create(
               builder, loc, builder.getI64Type(), operands, text, constraints,
               /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
               LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr())
        .getResult(0);
  }

  /// Returns the components of the extended state that the system saves. All are in the lower half of XCR0.
  Value enabledByTheSystem() { return assembly("xgetbv", "={ax},{cx},~{dx}", number(0)); }

  Value isGranted() {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Value granted = LLVM::AllocaOp::create(builder, loc, pointer, builder.getI64Type(), number(1));
    LLVM::StoreOp::create(builder, loc, number(0), granted);
    Value status = assembly("syscall", "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory}",
                            {number(kArchPrctl), number(kGetPermissions), granted});
    Value answered = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, status, number(0));
    Value bits = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), granted);
    return LLVM::AndOp::create(builder, loc, answered, has(bits, kTileData));
  }

  OpBuilder &builder;
  Location loc;
};
} // namespace

bool tilewright::usesTileRegisters(Operation *function) {
  WalkResult found = function->walk([](LLVM::CallIntrinsicOp call) {
    return call.getIntrin() == "llvm.x86.ldtilecfg" ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

Value tilewright::askForTileRegisters(OpBuilder &builder, LLVM::LLVMFuncOp entry) {
  auto gate = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(entry, builder.getStringAttr(kGate));
  if (!gate) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(entry);
    auto type = LLVM::LLVMFunctionType::get(builder.getI1Type(), {});
    gate = LLVM::LLVMFuncOp::create(builder, entry.getLoc(), kGate, type, LLVM::Linkage::Internal);
    gate.setNoInline(true);
    if (Attribute target = entry->getAttr(kTargetAttr))
      gate->setAttr(kTargetAttr, target);
    GateBuilder(builder, entry.getLoc()).build(gate);
  }
  return LLVM::CallOp::create(builder, entry.getLoc(), gate, ValueRange()).getResult();
}

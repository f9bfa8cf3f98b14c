// Wraps kernels in entry points with IREE's ABI for CPU executables, int f(environment*, dispatch_state*,
// workgroup_state*), which return 0 on success. The offsets are those of the structs in IREE's executable_library.h. A
// kernel needs only the binding pointers, the workgroup's index along x and its local memory. A kernel with variants
// also needs the features of the processor.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/cpu/TileGate.h"
#include "passes/program/InPlace.h"
#include "passes/target/ProcessorData.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {
#define GEN_PASS_DEF_WRAPCPUABI
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kDispatchState = 48;   ///< bytes of a dispatch_state
constexpr int64_t kBindingPointers = 32; ///< dispatch_state.binding_ptrs
constexpr int64_t kProcessorData = 32;   ///< environment.processor.data[0], u64: feature bits
constexpr int64_t kWorkgroupX = 0;       ///< workgroup_state.workgroup_id_x, u32
constexpr int64_t kLocalMemory = 16;     ///< workgroup_state.local_memory
constexpr int32_t kNoVariant = 1;        ///< status of a call that no variant can serve

struct WrapCpuAbi : tilewright::impl::WrapCpuAbiBase<WrapCpuAbi> {
  using WrapCpuAbiBase::WrapCpuAbiBase;

  static Value addressOf(OpBuilder &builder, Location loc, Value base, int64_t offset) {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  }

  static Value field(OpBuilder &builder, Location loc, Value base, int64_t offset, Type type) {
    return LLVM::LoadOp::create(builder, loc, type, addressOf(builder, loc, base, offset));
  }

  static LLVM::LLVMFuncOp createEntry(OpBuilder &builder, LLVM::LLVMFuncOp kernel, StringRef name) {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    auto type = LLVM::LLVMFunctionType::get(builder.getI32Type(), {pointer, pointer, pointer});
    auto entry = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), name, type);
    for (StringRef attr :
         {kWorkgroupsAttr, kOutputsAttr, kBlockBytesAttr, kBindingBytesAttr, kTargetAttr, kInPlaceAttr})
      if (Attribute value = kernel->getAttr(attr))
        entry->setAttr(attr, value);
    return entry;
  }

  LLVM::LLVMFuncOp wrap(LLVM::LLVMFuncOp kernel) {
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    std::string name = kernel.getName().str();
    kernel.setName(name + ".kernel");
    kernel.setLinkage(LLVM::Linkage::Internal);
    kernel.setAlwaysInline(true);
    LLVM::LLVMFuncOp entry = createEntry(builder, kernel, name);
    Block *block = entry.addEntryBlock(builder);
    builder.setInsertionPointToStart(block);
    bool usesTiles = !assumeTiles && usesTileRegisters(kernel);
    if (usesTiles && kernel->hasAttr(kVariantOfAttr))
      entry->setAttr(kUsesTilesAttr, builder.getUnitAttr()); // choose() adds the check
    else if (usesTiles)
      failWithoutTiles(builder, entry);
    unsigned bindings = kernel.getNumArguments() - 2;
    Value pointers = field(builder, loc, block->getArgument(1), kBindingPointers, pointer);
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < bindings; ++i)
      arguments.push_back(field(builder, loc, pointers, 8 * i, pointer));
    arguments.push_back(field(builder, loc, block->getArgument(2), kLocalMemory, pointer));
    Value index = field(builder, loc, block->getArgument(2), kWorkgroupX, builder.getI32Type());
    arguments.push_back(LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), index));
    LLVM::CallOp::create(builder, loc, kernel, arguments);
    returnStatus(builder, loc, 0);
    return entry;
  }

  /// Emits a check that the process may use tile registers. If it may not, the call fails before it has done anything.
  static void failWithoutTiles(OpBuilder &builder, LLVM::LLVMFuncOp entry) {
    Location loc = entry.getLoc();
    Block *ask = builder.createBlock(&entry.getBody()), *refuse = builder.createBlock(&entry.getBody()),
          *go = builder.createBlock(&entry.getBody());
    builder.setInsertionPointToEnd(&entry.getBody().front());
    Value reported = field(builder, loc, entry.getArgument(0), kProcessorData, builder.getI64Type());
    branchIfReported(builder, loc, reported, tileRegistersBit(), ask, refuse);
    builder.setInsertionPointToEnd(ask);
    LLVM::CondBrOp::create(builder, loc, askForTileRegisters(builder, entry), go, refuse);
    builder.setInsertionPointToEnd(refuse);
    returnStatus(builder, loc, kNoVariant);
    builder.setInsertionPointToEnd(go);
  }

  static void branchIfReported(OpBuilder &builder, Location loc, Value reported, uint64_t bits, Block *taken,
                               Block *next) {
    Value needed = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(bits));
    Value found = LLVM::AndOp::create(builder, loc, reported, needed);
    Value fits = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, found, needed);
    LLVM::CondBrOp::create(builder, loc, fits, taken, next);
  }

  static void returnStatus(OpBuilder &builder, Location loc, int32_t status) {
    Value value = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(status));
    LLVM::ReturnOp::create(builder, loc, value);
  }

  /// Creates the kernel's entry point, which calls the first variant whose features the processor has.
  FailureOr<LLVM::LLVMFuncOp> choose(ArrayRef<LLVM::LLVMFuncOp> variants) {
    LLVM::LLVMFuncOp first = variants.front(), last = variants.back();
    std::string name = first.getName().str();
    OpBuilder builder(first);
    Location loc = first.getLoc();
    LLVM::LLVMFuncOp entry = createEntry(builder, first, name);
    entry->setAttr(kTargetAttr, last->getAttr(kTargetAttr)); // the entry runs on all processors of all variants
    builder.setInsertionPointToStart(entry.addEntryBlock(builder));
    Value reported = field(builder, loc, entry.getArgument(0), kProcessorData, builder.getI64Type());
    for (LLVM::LLVMFuncOp variant : variants) {
      llvm::Expected<Target> target = lookupTarget(variant->getAttrOfType<StringAttr>(kTargetAttr).str());
      llvm::Expected<uint64_t> bits = target ? processorBits(*target) : target.takeError();
      if (!bits)
        return variant.emitError(llvm::toString(bits.takeError()));
      variant.setLinkage(LLVM::Linkage::Internal);
      variant.setNoInline(true); // the choice is then no more than a test and a jump
      variant.setName(name + "." + target->name);
      Block *here = builder.getInsertionBlock();
      Block *ask = variant->hasAttr(kUsesTilesAttr) ? builder.createBlock(&entry.getBody()) : nullptr;
      Block *taken = builder.createBlock(&entry.getBody()), *next = builder.createBlock(&entry.getBody());
      builder.setInsertionPointToEnd(here);
      branchIfReported(builder, loc, reported, *bits, ask ? ask : taken, next);
      if (ask) {
        builder.setInsertionPointToEnd(ask);
        LLVM::CondBrOp::create(builder, loc, askForTileRegisters(builder, entry), taken, next);
      }
      builder.setInsertionPointToEnd(taken);
      auto status = LLVM::CallOp::create(builder, loc, variant, entry.getArguments());
      LLVM::ReturnOp::create(builder, loc, status.getResult());
      builder.setInsertionPointToEnd(next);
    }
    returnStatus(builder, loc, kNoVariant);
    return entry;
  }

  /// Adds an entry point for launches in which outputs take the memory of inputs. Such a launch has one binding less
  /// for each of these outputs. The entry calls the kernel's own one with a dispatch_state that has all bindings;
  /// kernels read no other field of it.
  static void addInPlaceEntry(LLVM::LLVMFuncOp entry, ArrayRef<int64_t> tied) {
    OpBuilder builder(entry->getContext());
    builder.setInsertionPointAfter(entry);
    Location loc = entry.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    auto name = inPlaceName(entry.getName(), tied);
    auto inPlace = LLVM::LLVMFuncOp::create(builder, loc, name, entry.getFunctionType());
    Block *block = inPlace.addEntryBlock(builder);
    builder.setInsertionPointToStart(block);
    int64_t bindings = entry->getAttrOfType<DenseI64ArrayAttr>(kBindingBytesAttr).size();
    auto bytes = [&](int64_t count) -> Value {
      Value size = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(count));
      return LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(), size, /*alignment=*/8);
    };
    Value state = bytes(kDispatchState), pointers = bytes(8 * bindings);
    Value given = field(builder, loc, block->getArgument(1), kBindingPointers, pointer);
    int64_t inputs = bindings - tied.size(), next = inputs;
    for (int64_t i = 0; i < bindings; ++i) {
      bool shares = i >= inputs && tied[i - inputs] >= 0;
      int64_t from = i < inputs ? i : shares ? tied[i - inputs] : next++;
      Value binding = field(builder, loc, given, 8 * from, pointer);
      LLVM::StoreOp::create(builder, loc, binding, addressOf(builder, loc, pointers, 8 * i));
    }
    LLVM::StoreOp::create(builder, loc, pointers, addressOf(builder, loc, state, kBindingPointers));
    SmallVector<Value> arguments{block->getArgument(0), state, block->getArgument(2)};
    LLVM::ReturnOp::create(builder, loc, LLVM::CallOp::create(builder, loc, entry, arguments).getResult());
  }

  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> kernels;
    getOperation().walk([&](LLVM::LLVMFuncOp function) {
      if (function->hasAttr(kWorkgroupsAttr) && !function.isExternal())
        kernels.push_back(function);
    });
    llvm::MapVector<Attribute, SmallVector<LLVM::LLVMFuncOp>> families;
    SmallVector<LLVM::LLVMFuncOp> entries;
    for (LLVM::LLVMFuncOp kernel : kernels) {
      LLVM::LLVMFuncOp entry = wrap(kernel);
      if (Attribute of = kernel->getAttr(kVariantOfAttr))
        families[of].push_back(entry);
      else
        entries.push_back(entry);
    }
    for (auto &[of, variants] : families) {
      FailureOr<LLVM::LLVMFuncOp> entry = choose(variants);
      if (failed(entry))
        return signalPassFailure();
      entries.push_back(*entry);
    }
    for (LLVM::LLVMFuncOp entry : entries)
      if (auto ties = entry->getAttrOfType<ArrayAttr>(kInPlaceAttr))
        for (auto tied : ties.getAsRange<DenseI64ArrayAttr>())
          addInPlaceEntry(entry, tied);
  }
};
} // namespace

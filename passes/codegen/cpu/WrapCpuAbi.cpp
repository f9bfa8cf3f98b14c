// IREE's ABI for CPU executables: int f(environment*, dispatch_state*, workgroup_state*), 0 on success. The offsets are
// those of the structs in its executable_library.h; a kernel needs only the binding pointers, the workgroup's index
// along x and its local memory.
#include "passes/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace tilewright {
#define GEN_PASS_DEF_WRAPCPUABI
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kBindingPointers = 32; ///< dispatch_state.binding_ptrs
constexpr int64_t kWorkgroupX = 0;       ///< workgroup_state.workgroup_id_x, u32
constexpr int64_t kLocalMemory = 16;     ///< workgroup_state.local_memory

struct WrapCpuAbi : tilewright::impl::WrapCpuAbiBase<WrapCpuAbi> {
  static Value field(OpBuilder &builder, Location loc, Value base, int64_t offset, Type type) {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Value address = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base,
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    return LLVM::LoadOp::create(builder, loc, type, address);
  }

  static void wrap(LLVM::LLVMFuncOp kernel) {
    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    std::string name = kernel.getName().str();
    kernel.setName(name + ".kernel");
    kernel.setLinkage(LLVM::Linkage::Internal);
    kernel.setAlwaysInline(true);
    auto type = LLVM::LLVMFunctionType::get(builder.getI32Type(), {pointer, pointer, pointer});
    auto entry = LLVM::LLVMFuncOp::create(builder, loc, name, type);
    for (StringRef attr : {kWorkgroupsAttr, kOutputsAttr, kBlockBytesAttr, kBindingBytesAttr})
      entry->setAttr(attr, kernel->getAttr(attr));
    Block *block = entry.addEntryBlock(builder);
    builder.setInsertionPointToStart(block);
    unsigned bindings = kernel.getNumArguments() - 2;
    Value pointers = field(builder, loc, block->getArgument(1), kBindingPointers, pointer);
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < bindings; ++i)
      arguments.push_back(field(builder, loc, pointers, 8 * i, pointer));
    arguments.push_back(field(builder, loc, block->getArgument(2), kLocalMemory, pointer));
    Value index = field(builder, loc, block->getArgument(2), kWorkgroupX, builder.getI32Type());
    arguments.push_back(LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), index));
    LLVM::CallOp::create(builder, loc, kernel, arguments);
    Value success = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    LLVM::ReturnOp::create(builder, loc, success);
  }

  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> kernels;
    getOperation().walk([&](LLVM::LLVMFuncOp function) {
      if (function->hasAttr(kWorkgroupsAttr) && !function.isExternal())
        kernels.push_back(function);
    });
    for (LLVM::LLVMFuncOp kernel : kernels)
      wrap(kernel);
  }
};
} // namespace

// Gives kernels IREE's ABI for CUDA: the bindings as 64-bit pointers, then constants, of which static shapes need none.
// The driver takes block sizes and dynamic shared memory from the export (SpliceIree.cpp).
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/gpu/SharedMemory.h"
#include "passes/codegen/gpu/copy/ClusterCopy.h"
#include "passes/codegen/gpu/nest/GridBarrier.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace tilewright {
#define GEN_PASS_DEF_WRAPCUDAABI
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kSharedAlignment = 64;      ///< bytes; alignment of buffers
constexpr int64_t kDescribedAlignment = 1024; ///< bytes; wgmma operands: the widest swizzle repeats after this many
constexpr int64_t kBindingAlignment = 16;     ///< bytes; for vector accesses; IREE aligns buffers to more
constexpr unsigned kSharedSpace = 3;
constexpr llvm::StringLiteral kDynamicShared = "tile_dynamic_shared";

struct WrapCudaAbi : tilewright::impl::WrapCudaAbiBase<WrapCudaAbi> {
  static LLVM::GlobalOp sharedMemory(gpu::GPUModuleOp module, LLVM::LLVMFuncOp kernel, int64_t bytes) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    Location loc = kernel.getLoc();
    bool isStatic = bytes <= kStaticSharedBytes;
    // Some products are inline assembly, but a fence stands before each, so look for that.
    bool isDescribed = kernel.walk([](NVVM::WgmmaFenceAlignedOp) { return WalkResult::interrupt(); }).wasInterrupted();
    int64_t alignment = isDescribed ? kDescribedAlignment : kSharedAlignment;
    if (auto known = module.lookupSymbol<LLVM::GlobalOp>(kDynamicShared); known && !isStatic) {
      known.setAlignment(std::max<uint64_t>(known.getAlignment().value_or(1), alignment));
      return known;
    }
    std::string name = isStatic ? kernel.getName().str() + "_shared" : kDynamicShared.str();
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), isStatic ? bytes : 0);
    auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/false,
                                         isStatic ? LLVM::Linkage::Internal : LLVM::Linkage::External, name,
                                         Attribute(), alignment, kSharedSpace);
    if (isStatic) {
      builder.createBlock(&global.getInitializerRegion());
      Value nothing = LLVM::UndefOp::create(builder, loc, type);
      LLVM::ReturnOp::create(builder, loc, nothing);
    }
    return global;
  }

  /// Erases the arguments from `count` on. The function interface cannot do this for a function without results.
  static void keepArguments(LLVM::LLVMFuncOp kernel, unsigned count) {
    SmallVector<Type> types(kernel.getFunctionType().getParams().take_front(count));
    SmallVector<DictionaryAttr> attributes;
    for (unsigned i = 0; i < count; ++i)
      attributes.push_back(function_interface_impl::getArgAttrDict(kernel, i));
    kernel.getBody().front().eraseArguments(count, kernel.getNumArguments() - count);
    kernel.removeArgAttrsAttr();
    kernel.setFunctionType(LLVM::LLVMFunctionType::get(kernel.getFunctionType().getReturnType(), types));
    kernel.setAllArgAttrs(attributes);
  }

  /// Removes `noalias` from outputs, because other blocks read them behind a grid barrier.
  static void shareOutputs(LLVM::LLVMFuncOp kernel, unsigned bindings) {
    unsigned outputs = kernel->getAttrOfType<IntegerAttr>(kOutputsAttr).getInt();
    for (unsigned i = bindings - outputs; i < bindings; ++i)
      kernel.removeArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName());
  }

  static LogicalResult wrap(gpu::GPUModuleOp module, LLVM::LLVMFuncOp kernel) {
    Location loc = kernel.getLoc();
    Block &entry = kernel.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    unsigned bindings = kernel.getNumArguments() - 2;
    Value memory = entry.getArgument(bindings), workgroup = entry.getArgument(bindings + 1);
    Value block = NVVM::BlockIdXOp::create(builder, loc, builder.getI32Type());
    workgroup.replaceAllUsesWith(LLVM::ZExtOp::create(builder, loc, workgroup.getType(), block));
    int64_t bytes = kernel->getAttrOfType<IntegerAttr>(kBlockBytesAttr).getInt();
    if (!memory.use_empty() && bytes <= 0)
      return kernel.emitError("the kernel uses shared memory, but declares ") << bytes << " bytes of it";
    if (!memory.use_empty())
      memory.replaceAllUsesWith(LLVM::AddressOfOp::create(builder, loc, sharedMemory(module, kernel, bytes)));
    keepArguments(kernel, bindings);
    for (unsigned i = 0; i < bindings; ++i)
      kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(kBindingAlignment));
    int32_t threads = kernel->getAttrOfType<IntegerAttr>(kThreadsAttr).getInt();
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    kernel->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), builder.getDenseI32ArrayAttr({threads, 1, 1}));
    auto resident = kernel->getAttrOfType<IntegerAttr>(kResidentBlocksAttr);
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(resident ? resident.getInt() : 1));
    if (auto cluster = kernel->getAttrOfType<IntegerAttr>(kClusterAttr))
      kernel->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      builder.getDenseI32ArrayAttr({static_cast<int32_t>(cluster.getInt()), 1, 1}));
    if (kernel->hasAttr(kGridSyncAttr))
      shareOutputs(kernel, bindings);
    kernel.setLinkage(LLVM::Linkage::External);
    return success();
  }

  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> functions(getOperation().getOps<LLVM::LLVMFuncOp>());
    if (functions.empty())
      return;
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto module = gpu::GPUModuleOp::create(builder, getOperation().getLoc(), kGpuModule);
    for (LLVM::GlobalOp global : llvm::make_early_inc_range(getOperation().getOps<LLVM::GlobalOp>()))
      global->moveBefore(module.getBody(), module.getBody()->end());
    for (LLVM::LLVMFuncOp function : functions) {
      function->moveBefore(module.getBody(), module.getBody()->end());
      if (function->hasAttr(kThreadsAttr) && failed(wrap(module, function)))
        return signalPassFailure();
    }
  }
};
} // namespace

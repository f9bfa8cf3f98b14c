// Splices the kernels into IREE's module: an executable whose code is an object file, and a dispatch per launch. IREE's
// ops are unregistered here and are built in the generic form that IREE 3.13 parses. On llvm-cpu an external object
// must be called from a shim inside the executable, declared as a static import; otherwise loading fails. On CUDA an
// export has the name of its PTX entry.
#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/codegen/gpu/SharedMemory.h"
#include "passes/iree/CapabilityCondition.h"
#include "passes/iree/ExportName.h"
#include "passes/iree/ResultStorage.h"
#include "passes/iree/Variants.h"
#include "passes/target/AccessBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

namespace tilewright {
#define GEN_PASS_DEF_SPLICEIREE
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// Page size of IREE's local memory, in bytes. Pages may be aligned to only 16 bytes, and kernels assume no more.
constexpr int64_t kLocalMemoryPage = 4096;

struct Kernel {
  std::string name;
  unsigned bindings, outputs;
  int64_t workgroups, blockBytes;
  int64_t threads;           ///< threads per block on a GPU; 0 on a CPU
  SmallVector<int64_t> tied; ///< for each output, the input that shares its binding, or -1

  std::string exportName() const { return threads > 0 ? name : shimName(name); }
};

Kernel describeKernel(LLVM::LLVMFuncOp entry, LaunchOp launch) {
  auto integer = [&](StringRef name) {
    auto attr = entry->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  SmallVector<int64_t> tied(launch.getTied().value_or(SmallVector<int64_t>(launch.getNumResults(), -1)));
  unsigned own = llvm::count(tied, -1);
  return {entryName(entry, launch),
          static_cast<unsigned>(launch.getInputs().size()) + own,
          own,
          integer(kWorkgroupsAttr),
          integer(kBlockBytesAttr),
          integer(kThreadsAttr),
          tied};
}

/// Returns true if the kernel has several results and no operand. IREE 3.13 repeats a dispatch without operands for
/// every reader of a copy of its results, and gives each reader the *first* result. To prevent this, the first result
/// is tied to an operand; the bindings do not change.
bool needsOperand(const Kernel &kernel) { return kernel.bindings == kernel.outputs && kernel.outputs > 1; }

void tieFirstResult(Kernel &kernel) {
  kernel.tied.front() = 0;
  --kernel.outputs;
}

/// Code for GPUs with at least this compute capability.
struct GpuVariant {
  int64_t capability; ///< 10 * major + minor
  std::string object;

  std::string name() const { return "sm_" + std::to_string(capability); }
};

class ExecutableBuilder {
public:
  ExecutableBuilder(OpBuilder &builder, Location loc, StringRef objectPath)
      : builder(builder), loc(loc), objectPath(objectPath) {}

  void build(ArrayRef<Kernel> kernels) {
    OperationState state(loc, "hal.executable.source");
    state.addAttribute("sym_name", builder.getStringAttr(kKernelModule));
    state.addAttribute("sym_visibility", builder.getStringAttr("private"));
    bool hasThreads = kernels.front().threads > 0;
    StringRef key = hasThreads ? "\"cuda\", \"cuda-nvptx-fb\"" : "\"llvm-cpu\", \"embedded-elf-x86_64\"";
    state.addAttribute("objects", opaque("hal", "executable.objects<{#hal.executable.target<" + key + "> = [#hal." +
                                                    objectText(objectPath) + "]}>"));
    Block &body = state.addRegion()->emplaceBlock();
    builder.create(state);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    for (auto [ordinal, kernel] : llvm::enumerate(kernels))
      buildExport(kernel, ordinal);
    if (!hasThreads)
      buildShims(kernels);
    builder.create(OperationState(loc, "hal.executable.source_end"));
  }

  /// Builds an executable with variants. The runtime takes the first one that its device can run.
  void buildVariants(ArrayRef<Kernel> kernels, ArrayRef<GpuVariant> variants) {
    OperationState state(loc, "hal.executable");
    state.addAttribute("sym_name", builder.getStringAttr(kKernelModule));
    state.addAttribute("sym_visibility", builder.getStringAttr("private"));
    Block &body = state.addRegion()->emplaceBlock();
    builder.create(state);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    for (const GpuVariant &variant : variants)
      buildVariant(kernels, variant);
    builder.create(OperationState(loc, "hal.executable_end"));
  }

private:
  static std::string objectText(StringRef path) { return ("executable.object<{path = \"" + path + "\"}>").str(); }

  void buildVariant(ArrayRef<Kernel> kernels, const GpuVariant &variant) {
    OperationState state(loc, "hal.executable.variant");
    state.addAttribute("sym_name", builder.getStringAttr(variant.name()));
    state.addAttribute("sym_visibility", builder.getStringAttr("public"));
    state.addAttribute("target", opaque("hal", "executable.target<\"cuda\", \"cuda-nvptx-fb\">"));
    state.addAttribute("objects", builder.getArrayAttr(opaque("hal", objectText(variant.object))));
    Block &body = state.addRegion()->emplaceBlock();
    builder.create(state);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    buildCapabilityCondition(builder, loc, variant.capability);
    for (auto [ordinal, kernel] : llvm::enumerate(kernels))
      buildExport(kernel, ordinal);
    builder.create(OperationState(loc, "hal.executable.variant_end"));
  }

  Attribute opaque(StringRef dialect, const Twine &text) {
    return OpaqueAttr::get(builder.getStringAttr(dialect), text.str(), NoneType::get(builder.getContext()));
  }

  /// Returns the bytes of local memory that the runtime must provide to each workgroup.
  static int64_t localMemory(const Kernel &kernel) {
    if (kernel.threads > 0)
      return kernel.blockBytes > kStaticSharedBytes ? kernel.blockBytes : 0;
    return llvm::alignTo(kernel.blockBytes, kLocalMemoryPage);
  }

  void buildExport(const Kernel &kernel, unsigned ordinal) {
    std::string layout = "pipeline.layout<bindings = [";
    for (unsigned i = 0; i < kernel.bindings; ++i) {
      bool input = i < kernel.bindings - kernel.outputs && !llvm::is_contained(kernel.tied, i);
      layout += std::string(i ? ", " : "") + "#hal.pipeline.binding<storage_buffer" + (input ? ", ReadOnly>" : ">");
    }
    layout += "]>";
    OperationState state(loc, "hal.executable.export");
    state.addAttribute("sym_name", builder.getStringAttr(kernel.exportName()));
    state.addAttribute("sym_visibility", builder.getStringAttr("public"));
    state.addAttribute("ordinal", builder.getIndexAttr(ordinal));
    state.addAttribute("layout", opaque("hal", layout));
    if (kernel.threads > 0) {
      state.addAttribute("workgroup_size", builder.getIndexArrayAttr({kernel.threads, 1, 1}));
      state.addAttribute("subgroup_size", builder.getIndexAttr(kWarpLanes));
    }
    if (int64_t bytes = localMemory(kernel))
      state.addAttribute("workgroup_local_memory", builder.getIndexAttr(bytes));
    Block &count = state.addRegion()->emplaceBlock();
    state.addRegion();
    auto device = OpaqueType::get(builder.getStringAttr("hal"), "device");
    count.addArgument(device, loc);
    builder.create(state);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&count);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value workgroups = arith::ConstantIndexOp::create(builder, loc, kernel.workgroups);
    OperationState result(loc, "hal.return");
    result.addOperands({workgroups, one, one});
    builder.create(result);
  }

  void buildShims(ArrayRef<Kernel> kernels) {
    auto module = ModuleOp::create(builder, loc);
    OpBuilder inside = OpBuilder::atBlockEnd(module.getBody());
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    auto type = LLVM::LLVMFunctionType::get(builder.getI32Type(), {pointer, pointer, pointer});
    for (const Kernel &kernel : kernels) {
      auto import = LLVM::LLVMFuncOp::create(inside, loc, kernel.name, type);
      import->setAttr("hal.import.static", builder.getUnitAttr());
      auto shim = LLVM::LLVMFuncOp::create(inside, loc, shimName(kernel.name), type);
      Block *entry = shim.addEntryBlock(inside);
      OpBuilder body = OpBuilder::atBlockEnd(entry);
      auto call = LLVM::CallOp::create(body, loc, import, entry->getArguments());
      LLVM::ReturnOp::create(body, loc, call.getResult());
    }
  }

  OpBuilder &builder;
  Location loc;
  StringRef objectPath;
};

/// Returns an operand's tensor before reshapes, which has the same elements in the same order. IREE copies a tensor
/// that was updated in place if its reshape has several readers, but not if they read the tensor itself.
Value beforeReshapes(Value operand) {
  auto isStatic = [](Value value) { return cast<RankedTensorType>(value.getType()).hasStaticShape(); };
  while (Operation *op = operand.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) || !isStatic(op->getOperand(0)) || !isStatic(operand))
      break;
    operand = op->getOperand(0);
  }
  return operand;
}

/// Returns an uninitialised tensor that a result can be stored in.
Value memoryOf(OpBuilder &builder, Value result) {
  OperationState state(result.getLoc(), "flow.tensor.empty");
  state.addTypes(result.getType());
  return builder.create(state)->getResult(0);
}

struct SpliceIree : tilewright::impl::SpliceIreeBase<SpliceIree> {
  using SpliceIreeBase::SpliceIreeBase;

  /// Returns the kernel's entry point, or one for every variant.
  static ArrayAttr entryPoints(Builder &builder, const Kernel &kernel, ArrayRef<GpuVariant> variants) {
    auto exported = FlatSymbolRefAttr::get(builder.getContext(), kernel.exportName());
    if (variants.empty())
      return builder.getArrayAttr(SymbolRefAttr::get(builder.getContext(), kKernelModule, {exported}));
    SmallVector<Attribute> symbols;
    for (const GpuVariant &variant : variants) {
      auto name = FlatSymbolRefAttr::get(builder.getContext(), variant.name());
      symbols.push_back(SymbolRefAttr::get(builder.getContext(), kKernelModule, {name, exported}));
    }
    return builder.getArrayAttr(symbols);
  }

  static void dispatch(LaunchOp launch, const Kernel &kernel, ArrayRef<GpuVariant> variants) {
    OpBuilder builder(launch);
    OperationState state(launch.getLoc(), "flow.dispatch");
    // The type of a tied result is that of its operand.
    for (auto [number, input] : llvm::enumerate(launch.getInputs()))
      state.addOperands(llvm::is_contained(kernel.tied, number) ? input : beforeReshapes(input));
    if (launch.getInputs().empty() && kernel.tied.front() == 0)
      state.addOperands(memoryOf(builder, launch.getResult(0)));
    state.addTypes(launch.getResultTypes());
    state.addAttribute("entry_points", entryPoints(builder, kernel, variants));
    int32_t inputs = state.operands.size();
    state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr({0, inputs, 0, 0}));
    state.addAttribute("tied_operands", builder.getIndexArrayAttr(kernel.tied));
    Operation *op = builder.create(state);
    launch->replaceAllUsesWith(op->getResults());
    launch.erase();
  }

  /// Returns the variants, most capable first and that of `target` last, or an empty list if there is only one target.
  FailureOr<SmallVector<GpuVariant>> listVariants() {
    SmallVector<GpuVariant> list;
    auto add = [&](const std::string &name, std::string path) -> LogicalResult {
      llvm::Expected<Target> known = lookupTarget(name);
      llvm::Expected<int64_t> capability =
          known ? computeCapability(*known) : llvm::Expected<int64_t>(known.takeError());
      if (!capability)
        return getOperation().emitError(llvm::toString(capability.takeError()));
      if (!list.empty() && *capability >= list.back().capability)
        return getOperation().emitError("variant 'sm_")
               << *capability << "' would never be chosen, because '" << list.back().name()
               << "' comes before it; put the most capable first";
      list.push_back({*capability, std::move(path)});
      return success();
    };
    if (variants.empty())
      return list;
    for (auto [number, variant] : llvm::enumerate(variants))
      if (failed(add(variant, variantPath(object, number))))
        return failure();
    if (failed(add(target, object)))
      return failure();
    return list;
  }

  void runOnOperation() override {
    auto module = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    if (!module)
      return;
    FailureOr<SmallVector<GpuVariant>> gpus = listVariants();
    if (failed(gpus))
      return signalPassFailure();
    SmallVector<LaunchOp> launches;
    getOperation().walk([&](LaunchOp launch) { launches.push_back(launch); });
    SmallVector<Kernel> kernels;
    llvm::StringSet<> known;
    for (LaunchOp launch : launches) {
      StringRef name = launch.getProgram().getLeafReference();
      auto gpuKernels = module.lookupSymbol<gpu::GPUModuleOp>(kGpuModule);
      Operation *symbols = gpuKernels ? gpuKernels.getOperation() : module.getOperation();
      auto entry = dyn_cast_or_null<LLVM::LLVMFuncOp>(SymbolTable::lookupSymbolIn(symbols, name));
      if (!entry || !entry->hasAttr(kWorkgroupsAttr)) {
        launch.emitError("no compiled kernel '") << name << "'; run the code generation passes first";
        return signalPassFailure();
      }
      Kernel kernel = describeKernel(entry, launch);
      if (needsOperand(kernel))
        tieFirstResult(kernel);
      dispatch(launch, kernel, *gpus);
      if (known.insert(kernel.name).second)
        kernels.push_back(std::move(kernel));
      ++dispatches;
    }
    OpBuilder builder(module);
    Location loc = module.getLoc();
    module.erase();
    builder.setInsertionPointToStart(getOperation().getBody());
    if (kernels.empty())
      return;
    if (kernels.front().threads == 0)
      storeLargeResults(getOperation());
    ExecutableBuilder executable(builder, loc, object);
    if (gpus->empty())
      executable.build(kernels);
    else
      executable.buildVariants(kernels, *gpus);
  }
};
} // namespace

// Replaces a loop that launches one kernel in every step by one launch of a kernel that runs all steps.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/gpu/RepeatKernel.h"
#include "passes/codegen/gpu/nest/FirstStep.h"
#include "passes/graph/LoopBodies.h"
#include "passes/iree/RepeatedLaunch.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

namespace tilewright {
#define GEN_PASS_DEF_REPEATLAUNCHES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct RepeatLaunches : tilewright::impl::RepeatLaunchesBase<RepeatLaunches> {
  using RepeatLaunchesBase::RepeatLaunchesBase;

  /// Moves what does not depend on the step in front of the loop.
  static void hoist(scf::ForOp loop) {
    for (Operation &op : llvm::make_early_inc_range(loop.getBody()->without_terminator())) {
      bool isLoad = op.getName().getStringRef() == "util.global.load";
      if (op.getNumRegions() == 0 && !isa<LaunchOp>(op) && (isLoad || isMemoryEffectFree(&op)) &&
          llvm::all_of(op.getOperands(), [&](Value value) { return loop.isDefinedOutsideOfLoop(value); }))
        op.moveBefore(loop);
    }
  }

  LLVM::LLVMFuncOp kernelOf(LaunchOp launch) {
    auto module = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    auto kernels = module ? module.lookupSymbol<gpu::GPUModuleOp>(kGpuModule) : gpu::GPUModuleOp();
    return kernels ? kernels.lookupSymbol<LLVM::LLVMFuncOp>(launch.getProgram().getLeafReference())
                   : LLVM::LLVMFuncOp();
  }

  static std::string whyNot(const RepeatedLaunch &repeated, LLVM::LLVMFuncOp kernel, int64_t maxBindings) {
    if (!kernel || !kernel->hasAttr(kGridSyncAttr))
      return "its blocks are not proved to be resident at once";
    if (kernel->hasAttr(kClusterAttr))
      return "its blocks form clusters";
    int64_t bindings = repeated.inputs.size() + repeated.outputs.size();
    return bindings <= maxBindings ? "" : "it would have " + std::to_string(bindings) + " bindings";
  }

  static int64_t bytesOf(Type tensor) {
    auto type = cast<RankedTensorType>(tensor);
    return type.getNumElements() * elementBytes(type.getElementType());
  }

  /// Returns the name of the kernel that runs all steps. Equal loops share it.
  StringAttr repeat(const RepeatedLaunch &repeated, LLVM::LLVMFuncOp kernel) {
    std::string key;
    llvm::raw_string_ostream text(key);
    SmallVector<int64_t> bytes = llvm::map_to_vector(repeated.inputs, [](Value in) { return bytesOf(in.getType()); });
    llvm::append_range(bytes, llvm::map_range(repeated.outputs, bytesOf));
    text << kernel.getName() << ' ' << repeated.steps << ' ' << repeated.outputs.size();
    for (int64_t binding : bytes)
      text << ' ' << binding;
    for (const StepAddress &at : repeated.addresses)
      text << ' ' << at.first << ' ' << at.even << ' ' << at.odd << ' ' << at.firstOffset << ' ' << at.offset << ' '
           << at.stride << ' ' << at.from << ' ' << at.to;
    StringAttr &name = names[key];
    if (!name) {
      std::string own = (kernel.getName() + "_steps").str();
      for (unsigned next = 1; SymbolTable::lookupSymbolIn(kernel->getParentOp(), own); ++next)
        own = (kernel.getName() + "_steps_" + Twine(next)).str();
      name = repeatKernel(kernel, own, bytes, repeated.outputs.size(), repeated.addresses, repeated.steps)
                 .getSymNameAttr();
    }
    return name;
  }

  static Value resultOf(OpBuilder &builder, LaunchOp launch, const LoopResult &result, RankedTensorType type) {
    Value whole = launch.getResult(result.output);
    if (!result.lastElement)
      return whole;
    Location loc = launch.getLoc();
    auto flatten = [&](Value value) -> Value {
      auto from = cast<RankedTensorType>(value.getType());
      if (from.getRank() == 1)
        return value;
      auto flat = RankedTensorType::get({from.getNumElements()}, from.getElementType());
      ReassociationIndices all = llvm::to_vector<2>(llvm::seq<int64_t>(from.getRank()));
      return tensor::CollapseShapeOp::create(builder, loc, flat, value, ArrayRef<ReassociationIndices>(all));
    };
    SmallVector<OpFoldResult> offset = {builder.getIndexAttr(*result.lastElement)},
                              size = {builder.getIndexAttr(type.getNumElements())}, one = {builder.getIndexAttr(1)};
    Value part = tensor::ExtractSliceOp::create(builder, loc, flatten(whole), offset, size, one);
    if (type.getRank() == 1)
      return part;
    ReassociationIndices all = llvm::to_vector<2>(llvm::seq<int64_t>(type.getRank()));
    return tensor::ExpandShapeOp::create(builder, loc, type, part, ArrayRef<ReassociationIndices>(all));
  }

  void replace(const RepeatedLaunch &repeated, StringAttr name) {
    scf::ForOp loop = repeated.loop;
    LaunchOp step = repeated.launch;
    OpBuilder builder(loop);
    auto symbol = SymbolRefAttr::get(step.getProgram().getRootReference(), {FlatSymbolRefAttr::get(name)});
    auto launch = LaunchOp::create(builder, step.getLoc(), repeated.outputs, symbol, repeated.inputs,
                                   /*tied=*/DenseI64ArrayAttr());
    for (auto [result, from] : llvm::zip_equal(loop.getResults(), repeated.results))
      if (!result.use_empty())
        result.replaceAllUsesWith(resultOf(builder, launch, from, cast<RankedTensorType>(result.getType())));
    loop.erase();
  }

  void runOnOperation() override {
    names.clear();
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(kOneKernelAttr))
        loops.push_back(loop);
    });
    SmallVector<LLVM::LLVMFuncOp> kernels;
    for (scf::ForOp loop : loops) {
      loop->removeAttr(kOneKernelAttr);
      bool isGiven = static_cast<bool>(loop->removeAttr(kGivenAttr));
      hoist(loop);
      auto decided = decideRepeatedLaunch(loop, kAccessBytes);
      auto *repeated = std::get_if<RepeatedLaunch>(&decided);
      LLVM::LLVMFuncOp kernel = repeated ? kernelOf(repeated->launch) : LLVM::LLVMFuncOp();
      std::string why = repeated ? whyNot(*repeated, kernel, machine->maxBindings) : std::get<std::string>(decided);
      if (why.empty()) {
        replace(*repeated, repeat(*repeated, kernel));
        kernels.push_back(kernel);
        ++numRepeated;
      } else if (isGiven) {
        loop.emitError("illegal plan: one kernel cannot run all steps (oneKernel): ") << why;
        return signalPassFailure();
      } else {
        ++numDeclined;
        remark::missed(loop.getLoc(), remark::RemarkOpts::name("launches").category("tile-repeat-launches"))
            << ("tile: the loop launches its kernel in every step: " + why);
      }
    }
    eraseUnused(kernels);
    bool isAnswered = answerOthers();
    if (loops.empty() && !isAnswered)
      markAllAnalysesPreserved();
  }

  /// Has kernels that no loop repeats copy their weights in every launch. Returns false if no kernel asks.
  bool answerOthers() {
    auto module = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    auto gpuModule = module ? module.lookupSymbol<gpu::GPUModuleOp>(kGpuModule) : gpu::GPUModuleOp();
    if (!gpuModule || !eraseFirstStep(gpuModule))
      return false;
    for (auto kernel : gpuModule.getOps<LLVM::LLVMFuncOp>())
      answerFirstStep(kernel);
    return true;
  }

  /// Erases kernels that no launch is left of.
  void eraseUnused(ArrayRef<LLVM::LLVMFuncOp> kernels) {
    llvm::SmallPtrSet<StringAttr, 8> used;
    getOperation().walk([&](LaunchOp launch) { used.insert(launch.getProgram().getLeafReference()); });
    llvm::SmallPtrSet<Operation *, 8> erased;
    for (LLVM::LLVMFuncOp kernel : kernels)
      if (!used.contains(kernel.getSymNameAttr()) && erased.insert(kernel).second)
        kernel.erase();
  }

  std::map<std::string, StringAttr> names; ///< of repeated kernels, by what they do
};
} // namespace

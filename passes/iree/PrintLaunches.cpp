// Prints which kernels a compiled module runs on which tensors, for tools that run kernels without IREE. Tensors are
// numbered. A tensor that an unknown op computes is described by that op instead of being an error, because no one may
// need its value.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/gpu/SharedMemory.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/LoopBodies.h"
#include "passes/iree/ExportName.h"
#include "passes/iree/ForeignFunction.h"
#include "passes/iree/ForeignOp.h"
#include "passes/graph/StepSlice.h"
#include "passes/iree/ValuesAtLoad.h"
#include "passes/support/JsonFile.h"
#include "passes/target/ProcessorData.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Base64.h"

namespace tilewright {
#define GEN_PASS_DEF_PRINTLAUNCHES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;
namespace json = llvm::json;

namespace {
std::string textOf(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (op)
    op->print(stream, OpPrintingFlags().enableDebugInfo().useLocalScope());
  return text;
}

/// Prints an op in generic form, because IREE has another version of MLIR.
std::string textForIree(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().enableDebugInfo().useLocalScope().printGenericOpForm());
  return text;
}

/// The tensors of one function, numbered in the order in which they are reached.
class Tensors {
public:
  Tensors(ModuleOp module, bool withFunctions)
      : withFunctions(withFunctions), atLoad(functionOfValues(module)) {}

  int64_t idOf(Value value) {
    value = behindReshapes(value);
    auto [known, isNew] = ids.try_emplace(value, list.size());
    int64_t id = known->second;
    if (isNew) {
      list.push_back(nullptr);
      list[id] = describe(value, id); // this may number more tensors
    }
    return id;
  }

  json::Array idsOf(ValueRange values) {
    json::Array result;
    for (Value value : values)
      result.push_back(idOf(value));
    return result;
  }

  json::Array take() { return std::move(list); }

  /// Describes the function that returns what is computed at load.
  json::Object takeAtLoad() const {
    json::Array results;
    for (RankedTensorType type : atLoad.types)
      results.push_back(describe(type));
    return json::Object{{"function", atLoad.name}, {"results", std::move(results)}};
  }

  /// Says that the flow describes how the op makes its results.
  void markMade(Operation *op) { made.insert(op); }

private:
  static json::Object describe(RankedTensorType type) {
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    return json::Object{{"shape", json::Array(type.getShape())}, {"element", element}};
  }

  json::Object describe(Value value, int64_t id) {
    json::Object tensor = describe(cast<RankedTensorType>(value.getType()));
    Operation *op = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value); argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      tensor["argument"] = static_cast<int64_t>(argument.getArgNumber());
    if (!op || isa<LaunchOp>(op) || made.contains(op))
      return tensor;
    StringRef name = op->getName().getStringRef();
    ElementsAttr constant;
    auto argument = op->getNumOperands() > 0 ? dyn_cast<BlockArgument>(op->getOperand(0)) : BlockArgument();
    if (name == "hal.tensor.import" && argument)
      tensor["argument"] = static_cast<int64_t>(argument.getArgNumber());
    else if (name == "util.global.load")
      describeLoad(op, tensor);
    else if (matchPattern(value, m_Constant(&constant)) && describe(constant, tensor))
      return tensor;
    else
      describeForeign(cast<OpResult>(value), id, tensor);
    return tensor;
  }

  void describeLoad(Operation *load, json::Object &tensor) const {
    StringRef name = cast<FlatSymbolRefAttr>(propertyOf(load, "global")).getValue();
    if (auto result = atLoad.results.find(name); result != atLoad.results.end()) {
      tensor["at_load"] = result->second;
      return;
    }
    Operation *global = globalOf(load);
    bool isFixed = global && (withFunctions || !isMutableGlobal(global));
    Attribute initial = isFixed ? propertyOf(global, "initial_value") : Attribute();
    tensor["global"] = initial ? textOf(initial) : "";
  }

  void describeForeign(OpResult made, int64_t id, json::Object &tensor) {
    tensor["op"] = made.getOwner()->getName().getStringRef();
    tensor["loc"] = textOf(LocationAttr(made.getLoc()));
    if (!withFunctions)
      describeArrangement(made, tensor);
    if (!withFunctions || comesFromElsewhere(made))
      return; // its source is not known, or of no interest
    if (auto foreign = isolate(made, "tensor_" + std::to_string(id))) {
      tensor["inputs"] = idsOf(foreign->inputs);
      tensor["function"] = textForIree(*foreign->function);
    }
  }

  /// Describes how elements of constants and weights are arranged, so that a tensor that IREE computes when a program
  /// is loaded can be computed without it. The parameters of the recipe are named by the numbers of their tensors.
  void describeArrangement(Value value, json::Object &tensor) {
    if (auto recipe = arrangementOf(value, [&](Value source) { return std::to_string(idOf(source)); }))
      tensor["recipe"] = recipe->toJson();
  }

  /// Describes the elements of a constant. Returns false if they are not at hand as runtimes read them.
  static bool describe(ElementsAttr constant, json::Object &tensor) {
    if (auto dense = dyn_cast<DenseElementsAttr>(constant)) {
      tensor["splat"] = dense.isSplat();
      tensor["base64"] = llvm::encodeBase64(dense.getRawData());
      return true;
    }
    auto resource = dyn_cast<DenseResourceElementsAttr>(constant);
    AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob || constant.getElementType().isInteger(1)) // a byte each here, and a bit each otherwise
      return false;
    tensor["splat"] = false;
    tensor["base64"] = llvm::encodeBase64(blob->getData());
    return true;
  }

  bool withFunctions;
  FunctionOfValues atLoad;
  llvm::DenseMap<Value, int64_t> ids;
  llvm::DenseSet<Operation *> made;
  json::Array list;
};

struct PrintLaunches : tilewright::impl::PrintLaunchesBase<PrintLaunches> {
  using PrintLaunchesBase::PrintLaunchesBase;

  json::Object describe(LaunchOp launch, Tensors &tensors) {
    StringRef name = launch.getProgram().getLeafReference();
    json::Object step{{"kernel", name},
                      {"inputs", tensors.idsOf(launch.getInputs())},
                      {"outputs", tensors.idsOf(launch.getResults())}};
    if (auto entry = kernels.lookup(name)) {
      auto integer = [&](StringRef attr) { return entry->getAttrOfType<IntegerAttr>(attr).getInt(); };
      bool hasThreads = entry->hasAttr(kThreadsAttr); // of blocks, on a GPU
      int64_t memory = integer(kBlockBytesAttr);
      step["workgroups"] = integer(kWorkgroupsAttr);
      if (hasThreads || !forRuntime) {
        step["threads"] = integer(kThreadsAttr);
        step[forRuntime ? "shared_bytes" : "dynamic_shared_bytes"] = memory > kStaticSharedBytes ? memory : 0;
      }
      if (forRuntime) {
        step["export"] = hasThreads ? name.str() : shimName(entryName(entry, launch));
        step["local_bytes"] = hasThreads ? 0 : memory;
        step["meets_at_grid"] = entry->hasAttr(kGridSyncAttr);
        step["tied"] = json::Array(launch.getTied().value_or(SmallVector<int64_t>(launch.getNumResults(), -1)));
      }
    }
    return step;
  }

  /// Returns true for ops of a function that a runtime may not leave out although no tensor depends on them.
  static bool mayChange(Operation *op) {
    return isNamed(op, "util.global.store") ||
           (op->isRegistered() && !isMemoryEffectFree(op) && !op->hasTrait<OpTrait::IsTerminator>());
  }

  /// Describes what a block does, in order: launches, loops that have launches, and in a loop the slices that move with
  /// the step.
  json::Array flowOf(Block &block, scf::ForOp loop, Tensors &tensors) {
    json::Array flow;
    for (Operation &op : block) {
      if (auto launch = dyn_cast<LaunchOp>(op))
        flow.push_back(describe(launch, tensors));
      else if (isLoop(&op) && holdsLaunches(&op))
        flow.push_back(json::Object{{"loop", describeLoop(op, tensors)}});
      else if (auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op); slice && loop)
        describeSlice(slice, loop, tensors, flow);
      else if (loop ? !isMemoryEffectFree(&op) && !isNamed(&op, "util.global.load") : forRuntime && mayChange(&op))
        flow.push_back(json::Object{{"op", op.getName().getStringRef()}}); // such as a check of the model
    }
    return flow;
  }

  /// Describes a loop. One whose steps are not known before the program runs has its name only.
  json::Object describeLoop(Operation &op, Tensors &tensors) {
    json::Object described{{"op", op.getName().getStringRef()}};
    auto loop = dyn_cast<scf::ForOp>(op);
    std::optional<int64_t> steps = tripCount(&op);
    auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
    if (!loop || !steps || !llvm::all_of(loop.getResultTypes(), isTensor))
      return described;
    tensors.markMade(loop);
    json::Array carried;
    for (auto [initial, argument, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults()))
      carried.push_back(json::Object{{"initial", tensors.idOf(initial)},
                                     {"argument", tensors.idOf(argument)},
                                     {"result", tensors.idOf(result)}});
    described["steps"] = *steps;
    described["body"] = flowOf(*loop.getBody(), loop, tensors);
    for (auto [entry, next] : llvm::zip_equal(carried, loop.getYieldedValues()))
      (*entry.getAsObject())["next"] = tensors.idOf(next);
    described["carried"] = std::move(carried);
    return described;
  }

  /// Describes an op that reads or writes a part of a tensor, if its elements are neighbours.
  static void describeSlice(OffsetSizeAndStrideOpInterface op, scf::ForOp loop, Tensors &tensors, json::Array &flow) {
    bool writes = isa<tensor::InsertSliceOp>(op);
    if (!writes && !isa<tensor::ExtractSliceOp>(op))
      return;
    Value whole = op->getOperand(writes ? 1 : 0);
    std::optional<StepSlice> slice = stepSlice(op, cast<RankedTensorType>(whole.getType()).getShape(), loop);
    if (!slice)
      return;
    tensors.markMade(op);
    json::Object described{{"whole", tensors.idOf(whole)},
                           {"result", tensors.idOf(op->getResult(0))},
                           {"offset", slice->offset},
                           {"stride", slice->stride}};
    if (!slice->alwaysMoves()) {
      described["from"] = slice->from;
      described["to"] = slice->to;
    }
    if (writes)
      described["part"] = tensors.idOf(op->getOperand(0));
    flow.push_back(json::Object{{writes ? "update" : "slice", std::move(described)}});
  }

  /// Describes a result of the program: a tensor, with the shape that it has as result, or an argument that is returned
  /// unchanged, which is never imported.
  static FailureOr<json::Object> describeResult(Value result, Tensors &tensors) {
    Operation *made = result.getDefiningOp();
    if (made && made->getName().getStringRef() == "hal.tensor.export")
      result = made->getOperand(0);
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      return json::Object{{"tensor", tensors.idOf(result)}, {"shape", json::Array(type.getShape())}};
    if (auto argument = dyn_cast<BlockArgument>(result))
      return json::Object{{"argument", argument.getArgNumber()}};
    return made->emitError("expected a tensor, an argument or an export of a tensor as result; run this pass on IREE's "
                           "module at its preprocessing phase");
  }

  static json::Object describeBits() {
    json::Object bits;
    for (const auto &feature : reportedBits())
      bits[feature.first()] = feature.second;
    return bits;
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    kernels.clear();
    getOperation().walk([&](LLVM::LLVMFuncOp function) {
      if (function->hasAttr(kWorkgroupsAttr))
        kernels[function.getName()] = function;
    });
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!holdsLaunches(function))
        continue;
      Tensors tensors(getOperation(), /*withFunctions=*/!forRuntime);
      json::Array steps = flowOf(function.getBody().front(), {}, tensors), results;
      for (Value result : function.getBody().front().getTerminator()->getOperands()) {
        FailureOr<json::Object> described = describeResult(result, tensors);
        if (failed(described))
          return signalPassFailure();
        results.push_back(std::move(*described));
      }
      json::Object flow{{"launches", std::move(steps)}, {"results", std::move(results)}};
      flow["tensors"] = tensors.take();
      if (forRuntime) {
        flow["at_load"] = tensors.takeAtLoad();
        flow["processor_bits"] = describeBits();
      } else {
        flow["kernels"] = textOf(getOperation().lookupSymbol(kKernelModule));
      }
      if (failed(writeJson(function, output, std::move(flow))))
        signalPassFailure();
      return;
    }
    if (failed(writeJson(getOperation(), output, json::Object{{"launches", json::Array()}})))
      signalPassFailure();
  }

  llvm::StringMap<LLVM::LLVMFuncOp> kernels;
};
} // namespace

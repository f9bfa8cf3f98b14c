// Lets tensors share bindings in kernels with more tensors than the driver passes. The launches show which tensors may
// share one. The rewrite works on finished kernels, where a tensor is just a pointer, so that no earlier pass has to
// know about it.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/gpu/SharedMemory.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/normalize/PackedCopy.h"
#include "passes/graph/Bindings.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {
#define GEN_PASS_DEF_SHAREBINDINGS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr int64_t kTensorAlignment = 128; ///< bytes; alignment of tensors that share a binding: whole sectors, and any
                                          ///< vector

using Launches = SmallVector<LaunchOp>;

int64_t elementsWithPadding(RankedTensorType type) {
  int64_t bytes = elementBytes(type.getElementType());
  return llvm::alignTo(type.getNumElements() * bytes, kTensorAlignment) / bytes;
}

/// A binding, and the tensors that lie in it one after another.
struct Binding {
  SmallVector<unsigned> tensors; ///< arguments of the kernel
  SmallVector<int64_t> offsets;  ///< bytes
  int64_t bytes = 0;             ///< bytes of all tensors, each padded to the alignment of the next
  int64_t ownBytes = 0;          ///< bytes of the last tensor

  void add(unsigned argument, RankedTensorType type) {
    tensors.push_back(argument);
    offsets.push_back(bytes);
    ownBytes = type.getNumElements() * elementBytes(type.getElementType());
    bytes += elementsWithPadding(type) * elementBytes(type.getElementType());
  }
};

struct Bindings {
  SmallVector<Binding> inputs, outputs;

  int64_t count() const { return inputs.size() + outputs.size(); }
};

/// Returns the weight group of an input, or none if the launches differ in it.
std::optional<WeightGroup> groupOf(ArrayRef<LaunchOp> launches, unsigned input, const Target &machine) {
  std::optional<WeightGroup> group = weightGroupOf(LaunchOp(launches.front()).getInputs()[input], machine);
  bool isAlike = llvm::all_of(
      launches, [&](LaunchOp launch) { return weightGroupOf(launch.getInputs()[input], machine) == group; });
  return isAlike ? group : std::nullopt;
}

/// Assigns tensors to as few bindings as possible: weights of one group share a binding, and so do tensors that no
/// launch passes on.
Bindings decideBindings(ArrayRef<LaunchOp> launches, const Target &machine) {
  LaunchOp first = launches.front();
  unsigned inputs = first.getInputs().size();
  SmallVector<std::pair<WeightGroup, Binding>> weights;
  Binding own;
  Bindings bindings;
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  for (unsigned i = 0; i < inputs; ++i) {
    std::optional<WeightGroup> group = groupOf(launches, i, machine);
    auto known = llvm::find_if(weights, [&](const auto &entry) { return entry.first == group; });
    if (group && known == weights.end())
      known = &weights.emplace_back(*group, Binding());
    (group ? known->second : bindings.inputs.emplace_back()).add(i, typeOf(first.getInputs()[i]));
  }
  for (auto &[group, binding] : weights)
    bindings.inputs.push_back(std::move(binding));
  for (unsigned i = 0; i < first.getNumResults(); ++i) {
    bool isOwn = llvm::all_of(launches, [i](LaunchOp launch) { return launch.getResult(i).use_empty(); });
    Binding &binding = isOwn ? own : bindings.outputs.emplace_back();
    binding.add(inputs + i, typeOf(first.getResult(i)));
  }
  if (!own.tensors.empty())
    bindings.outputs.push_back(std::move(own));
  return bindings;
}

/// Groups the launches such that, within a group, the same tensors may share bindings.
SmallVector<Launches> apartByTensors(ArrayRef<LaunchOp> launches, const Target &machine) {
  auto areAlike = [&](LaunchOp a, LaunchOp b) {
    return llvm::all_of(llvm::zip(a.getInputs(), b.getInputs()),
                        [&](auto pair) {
                          return weightGroupOf(std::get<0>(pair), machine) == weightGroupOf(std::get<1>(pair), machine);
                        }) &&
           llvm::all_of(llvm::zip(a.getResults(), b.getResults()),
                        [](auto pair) { return std::get<0>(pair).use_empty() == std::get<1>(pair).use_empty(); });
  };
  SmallVector<Launches> apart;
  for (LaunchOp launch : launches) {
    auto known = llvm::find_if(apart, [&](const Launches &own) { return areAlike(own.front(), launch); });
    (known == apart.end() ? apart.emplace_back() : *known).push_back(launch);
  }
  return apart;
}

/// Rewrites the kernel to take bindings: what were arguments become offsets into them.
void rewriteKernel(LLVM::LLVMFuncOp kernel, const Bindings &bindings) {
  Block &entry = kernel.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  Location loc = kernel.getLoc();
  unsigned old = kernel.getNumArguments();
  SmallVector<DictionaryAttr> attributes;
  for (const Binding &binding : llvm::concat<const Binding>(bindings.inputs, bindings.outputs)) {
    Type pointer = entry.getArgument(binding.tensors.front()).getType();
    attributes.push_back(function_interface_impl::getArgAttrDict(kernel, binding.tensors.front()));
    Value base = entry.addArgument(pointer, loc);
    for (auto [tensor, offset] : llvm::zip(binding.tensors, binding.offsets)) {
      Value place = base;
      if (offset > 0) {
        Value bytes = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), offset);
        place = LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), base, LLVM::GEPArg(bytes));
      }
      entry.getArgument(tensor).replaceAllUsesWith(place);
    }
  }
  entry.eraseArguments(0, old);
  kernel.removeArgAttrsAttr();
  kernel.setFunctionType(
      LLVM::LLVMFunctionType::get(kernel.getFunctionType().getReturnType(), llvm::to_vector(entry.getArgumentTypes())));
  kernel.setAllArgAttrs(attributes);
  kernel->setAttr(kOutputsAttr, builder.getI64IntegerAttr(bindings.outputs.size()));
  if (kernel->hasAttr(kBindingBytesAttr))
    kernel->setAttr(kBindingBytesAttr,
                    builder.getDenseI64ArrayAttr(llvm::map_to_vector(
                        llvm::concat<const Binding>(bindings.inputs, bindings.outputs), [](const Binding &binding) {
                          return binding.tensors.size() == 1 ? binding.ownBytes : binding.bytes;
                        })));
}

/// Returns a weight's elements as a 1-D tensor, with padding up to the next weight.
Value flatten(OpBuilder &builder, Location loc, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  if (Operation *made = weight.getDefiningOp(); weight.hasOneUse())
    made->removeAttr(kPackedWeightAttr); // it is stored together with the others
  auto flat = RankedTensorType::get({type.getNumElements()}, type.getElementType());
  if (type.getRank() == 0)
    weight = tensor::ExpandShapeOp::create(builder, loc, flat, weight, ArrayRef<ReassociationIndices>());
  else if (type.getRank() > 1)
    weight = tensor::CollapseShapeOp::create(
        builder, loc, flat, weight, ReassociationIndices(llvm::to_vector<2>(llvm::seq<int64_t>(type.getRank()))));
  return padBehind(builder, loc, weight, {elementsWithPadding(type)});
}

Value joinParameters(OpBuilder &builder, LaunchOp launch, const Binding &binding) {
  Location loc = launch.getLoc();
  SmallVector<Value> flat;
  for (unsigned tensor : binding.tensors)
    flat.push_back(flatten(builder, loc, launch.getInputs()[tensor]));
  auto joined = tensor::ConcatOp::create(builder, loc, /*dim=*/0, flat);
  joined->setAttr(kPackedWeightAttr, builder.getUnitAttr());
  return joined;
}

Value joinConstants(OpBuilder &builder, LaunchOp launch, const Binding &binding) {
  Type element = getElementTypeOrSelf(launch.getInputs()[binding.tensors.front()]);
  std::vector<char> bytes(binding.bytes);
  for (auto [tensor, offset] : llvm::zip(binding.tensors, binding.offsets)) {
    DenseElementsAttr constant = constantBehindViews(launch.getInputs()[tensor]);
    ArrayRef<char> data = constant.getRawData();
    int64_t times = constant.isSplat() ? constant.getNumElements() : 1;
    for (int64_t i = 0; i < times; ++i)
      llvm::copy(data, bytes.begin() + offset + i * data.size());
  }
  auto type = RankedTensorType::get({binding.bytes / elementBytes(element)}, element);
  return arith::ConstantOp::create(builder, launch.getLoc(), DenseElementsAttr::getFromRawBuffer(type, bytes));
}

Value joined(OpBuilder &builder, LaunchOp launch, const Binding &binding) {
  Value first = launch.getInputs()[binding.tensors.front()];
  if (binding.tensors.size() == 1)
    return first;
  return constantBehindViews(first) ? joinConstants(builder, launch, binding)
                                    : joinParameters(builder, launch, binding);
}

void rewriteLaunch(LaunchOp launch, const Bindings &bindings) {
  OpBuilder builder(launch);
  unsigned numInputs = launch.getInputs().size();
  SmallVector<Value> inputs;
  for (const Binding &binding : bindings.inputs)
    inputs.push_back(joined(builder, launch, binding));
  SmallVector<Type> types;
  for (const Binding &binding : bindings.outputs)
    types.push_back(binding.tensors.size() == 1 ? launch.getResult(binding.tensors.front() - numInputs).getType()
                                                : RankedTensorType::get({binding.bytes}, builder.getI8Type()));
  auto own = LaunchOp::create(builder, launch.getLoc(), types, launch.getProgram(), inputs,
                              /*tied=*/DenseI64ArrayAttr());
  own->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
  for (auto [i, binding] : llvm::enumerate(bindings.outputs))
    if (binding.tensors.size() == 1)
      launch.getResult(binding.tensors.front() - numInputs).replaceAllUsesWith(own.getResult(i));
  launch.erase();
}

struct ShareBindings : tilewright::impl::ShareBindingsBase<ShareBindings> {
  using ShareBindingsBase::ShareBindingsBase;

  LogicalResult share(LLVM::LLVMFuncOp kernel, ArrayRef<LaunchOp> launches, const Target &machine) {
    int64_t tensors = kernel.getNumArguments();
    if (tensors <= machine.maxBindings)
      return success();
    if (launches.empty())
      return refuse(kernel, tensors, machine);
    if (decideBindings(launches, machine).count() <= machine.maxBindings)
      return carryOut(kernel, launches, machine);
    // A weight of one launch may be computed for another one: each such group of launches gets a kernel of its own.
    SmallVector<Launches> alike = apartByTensors(launches, machine);
    for (auto [number, own] : llvm::enumerate(ArrayRef(alike).drop_front())) {
      LLVM::LLVMFuncOp copy = kernel.clone();
      copy.setName((kernel.getName() + "_for_" + Twine(number + 1)).str());
      kernel->getBlock()->getOperations().insertAfter(kernel->getIterator(), copy);
      for (LaunchOp launch : own)
        launch.setProgramAttr(
            SymbolRefAttr::get(launch.getProgram().getRootReference(), {FlatSymbolRefAttr::get(copy.getNameAttr())}));
      if (failed(carryOut(copy, own, machine)))
        return failure();
    }
    return carryOut(kernel, alike.front(), machine);
  }

  static LogicalResult refuse(LLVM::LLVMFuncOp kernel, int64_t count, const Target &machine) {
    return kernel.emitError("the kernel has ") << count << " bindings; target '" << machine.name << "' takes "
                                               << machine.maxBindings << ": plan smaller kernels";
  }

  LogicalResult carryOut(LLVM::LLVMFuncOp kernel, ArrayRef<LaunchOp> launches, const Target &machine) {
    Bindings bindings = decideBindings(launches, machine);
    if (bindings.count() > machine.maxBindings)
      return refuse(kernel, bindings.count(), machine);
    rewriteKernel(kernel, bindings);
    for (LaunchOp launch : launches)
      rewriteLaunch(launch, bindings);
    ++numShared;
    return success();
  }

  void runOnOperation() override {
    llvm::Expected<Target> machine = lookupTarget(target);
    if (!machine) {
      getOperation().emitError(llvm::toString(machine.takeError()));
      return signalPassFailure();
    }
    llvm::StringMap<Launches> launches;
    getOperation().walk([&](LaunchOp launch) { launches[launch.getProgram().getLeafReference()].push_back(launch); });
    SmallVector<LLVM::LLVMFuncOp> kernels;
    getOperation().walk([&](LLVM::LLVMFuncOp kernel) {
      if (kernel->hasAttr(kWorkgroupsAttr))
        kernels.push_back(kernel);
    });
    for (LLVM::LLVMFuncOp kernel : kernels)
      if (failed(share(kernel, launches.lookup(kernel.getName()), *machine)))
        return signalPassFailure();
  }
};
} // namespace

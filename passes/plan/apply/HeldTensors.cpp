#include "passes/plan/apply/HeldTensors.h"

#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/space/StagedInputs.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tilewright;

namespace {
class TensorChecker {
public:
  TensorChecker(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const GroupPlan &group,
                const IterationSpace &space)
      : choice(choiceOf(plan, graph, group)), staged(graph, choice, space, group.ops) {
    for (auto [number, input] : llvm::enumerate(space.inputs))
      inputs["in" + std::to_string(firstInputOf(plan, graph, kernel, group) + number)] = input;
    for (const GroupRoot &root : space.roots)
      if (group.op(root.expr).microKernel.empty())
        for (const RootAccess &access : root.accesses)
          readByNests.insert(access.tensor);
    for (unsigned expr : choice.exprs)
      for (OpResult result : graph.exprs()[expr].op->getResults())
        results.insert(resultName(graph, result));
    for (const GroupRoot &root : space.roots)
      for (OpResult result : graph.exprs()[root.expr].op->getResults())
        if (!space.readingNests(result).empty())
          buffered.insert(resultName(graph, result));
    for (Value output : groupOutputs(graph, choice))
      outputs.insert(resultName(graph, cast<OpResult>(output)));
  }

  /// Returns why a tensor cannot be where the plan says, as the end of a sentence that begins with its name.
  std::string whyNot(const TensorPlan &tensor) {
    bool isHeld = tensor.lifetime == tile::Lifetime::tile || tensor.lifetime == tile::Lifetime::workgroup;
    auto input = inputs.find(tensor.tensor);
    if (input == inputs.end() && !results.contains(tensor.tensor))
      return "is neither an input of the group" + range() + " nor a result of an op of the group (op3.0)";
    if (tensor.lifetime == tile::Lifetime::stream && tensor.space != tile::Space::global)
      return "is streamed, so it must be global";
    if (tensor.lifetime == tile::Lifetime::stream && !outputs.contains(tensor.tensor))
      return "is streamed, but is not an output of the group";
    std::string lives = "lives for a " + tile::stringifyLifetime(tensor.lifetime).str();
    if (tensor.space != (isHeld ? tile::Space::block : tile::Space::global))
      return lives + ", so it is " + (isHeld ? "of a block" : "global") + ", not " +
             tile::stringifySpace(tensor.space).str();
    bool isInput = input != inputs.end();
    if (tensor.access != tile::Access::derived && !isInput && isHeld)
      return "has an access, which only tensors in global memory have";
    if (tensor.access != tile::Access::derived && isInput && !readByNests.contains(input->second))
      return "has an access, but only contractions read it, which copy it step by step";
    // a result may be in both: other nests read it, and it leaves the group
    if (!seen.insert(tensor.tensor + (isHeld && !isInput ? "" : ", global")).second)
      return "is listed twice";
    if (!isInput)
      return whyNotResult(tensor, isHeld);
    std::string why = staged.whyNot(input->second, tensor.lifetime);
    return why.empty() ? "" : lives + ", but a block cannot copy it: " + why;
  }

private:
  std::string range() const {
    SmallVector<StringRef> names(inputs.keys());
    llvm::sort(names);
    return names.empty() ? "" : " (" + llvm::join(names, ", ") + ")";
  }

  std::string whyNotResult(const TensorPlan &tensor, bool isHeld) const {
    if (!isHeld && !outputs.contains(tensor.tensor))
      return "is global, but nothing outside the group reads it";
    if (isHeld && !buffered.contains(tensor.tensor))
      return "is of a block, but no other nest of the group reads it";
    if (tensor.lifetime == tile::Lifetime::workgroup)
      return "lives for a workgroup, but what a tile computes lives for the tile";
    return "";
  }

  GroupChoice choice;
  StagedInputs staged;
  llvm::StringMap<Value> inputs;
  llvm::StringSet<> results, buffered, outputs, seen;
  llvm::DenseSet<Value> readByNests; ///< inputs that others than register blocks and micro kernels read
};
} // namespace

std::string tilewright::whyNotHeld(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                   const GroupPlan &group, const IterationSpace &space) {
  TensorChecker checker(plan, graph, kernel, group, space);
  for (const TensorPlan &tensor : group.tensors)
    if (std::string why = checker.whyNot(tensor); !why.empty())
      return "tensor " + tensor.tensor + " " + why;
  return "";
}

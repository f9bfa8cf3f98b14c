// All workgroups of a kernel take part in the barrier at which they hand over partial sums, and the buffer of these
// takes a binding.
#include "passes/plan/tiling/gpu/PlannedSharing.h"

#include "passes/graph/Bindings.h"
#include "passes/plan/ir/Phases.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Returns true if the kernel has a binding for partial sums. A kernel with too many tensors keeps those that only it
/// reads in one binding, with the partial sums.
static bool hasBindingForPartials(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                  const Target &target) {
  llvm::SetVector<Value> outputs, inputs;
  GroupChoice all;
  int64_t partials = 0;
  for (const GroupPlan &group : kernel.groups) {
    GroupChoice choice = choiceOf(plan, graph, group);
    outputs.insert_range(groupOutputs(graph, choice));
    all.exprs.append(choice.exprs.begin(), choice.exprs.end());
    partials += group.steps > 0;
  }
  for (const GroupPlan &group : kernel.groups)
    for (Value input : groupInputs(graph, choiceOf(plan, graph, group)))
      if (!outputs.contains(input))
        inputs.insert(input);
  if (static_cast<int64_t>(inputs.size() + outputs.size()) + partials <= target.maxBindings)
    return true;
  auto isPrivate = [&](Value output) { return !leavesGroup(graph, all, output); };
  Target sharing = target;
  sharing.maxBindings = 0;
  return countBindings(inputs.getArrayRef(), outputs.getArrayRef(), isPrivate, sharing) +
             llvm::none_of(outputs, isPrivate) <=
         target.maxBindings;
}

/// Returns why workgroups cannot share the group's tiles, or an empty string.
static std::string whyNotByGroup(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                 const GroupPlan &group, const Target &target) {
  std::vector<PlannedContraction> contractions = plannedContractions(plan, graph, kernel, group, target);
  if (contractions.size() != 1)
    return "a tile that workgroups share has a single contraction";
  if (int64_t steps = contractions.front().steps; steps != group.steps)
    return llvm::formatv("a tile of op {0} has {1} steps of {2} along K, not {3}", contractions.front().op, steps,
                         contractions.front().tiling.step, group.steps);
  unsigned own = &group - kernel.groups.data();
  for (ArrayRef<unsigned> phase : phasesOf(plan, kernel))
    if (phase.size() > 1 && llvm::is_contained(phase, own))
      return "other parts run in the same phase";
  if (int64_t all = workgroupsOf(plan, kernel); group.workgroups != all)
    return llvm::formatv("all {0} workgroups of the kernel take part in the barrier, so the group must have them", all);
  int64_t tiles = group.numTiles();
  if (group.workgroups > tiles * group.steps)
    return llvm::formatv("{0} steps are too few for {1} workgroups", tiles * group.steps, group.workgroups);
  if (tiles % group.workgroups == 0)
    return "each workgroup has the same number of whole tiles anyway";
  if (!hasBindingForPartials(plan, graph, kernel, target))
    return llvm::formatv("no binding is left for partial sums: target '{0}' has {1}", target.name, target.maxBindings);
  return "";
}

void tilewright::settleSteps(Plan &plan, const TensorGraph &graph, const Target &target,
                             llvm::function_ref<bool(unsigned op)> isGiven) {
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &group : kernel.groups)
      if (group.steps > 0)
        for (const PlannedContraction &contraction : plannedContractions(plan, graph, kernel, group, target))
          if (!isGiven(contraction.op))
            group.steps = contraction.steps;
}

void tilewright::settleSharing(Plan &plan, const TensorGraph &graph, const Target &target) {
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &group : kernel.groups) {
      if (group.steps == 0)
        continue;
      int64_t whole = std::min(group.workgroups, group.numTiles());
      group.workgroups = workgroupsOf(plan, kernel);
      if (whyNotByGroup(plan, graph, kernel, group, target).empty())
        continue;
      group.steps = 0;
      group.workgroups = whole;
    }
}

std::string tilewright::whyNotShared(const Plan &plan, const TensorGraph &graph, const Target &target) {
  for (const KernelPlan &kernel : plan.kernels)
    for (auto [number, group] : llvm::enumerate(kernel.groups))
      if (group.steps > 0)
        if (std::string why = whyNotByGroup(plan, graph, kernel, group, target); !why.empty())
          return llvm::formatv("kernel '{0}' group {1}: steps: {2}", kernel.name, number, why);
  return "";
}

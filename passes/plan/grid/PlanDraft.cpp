#include "passes/plan/grid/PlanDraft.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

PlanDraft::PlanDraft(const TensorGraph &graph, Block &block) : partition(graph, block) {
  decisions.reasons.assign(graph.exprs().size(), "not planned yet");
  decisions.partOf.assign(graph.exprs().size(), -1);
}

static std::string verifyGroups(const Decisions &decisions) {
  size_t held = 0;
  for (auto [number, group] : llvm::enumerate(decisions.parts)) {
    if (!group)
      continue;
    held += group->choice.exprs.size();
    if (group->choice.exprs.empty() || !llvm::is_sorted(group->choice.exprs))
      return llvm::formatv("group {0} is empty, or its expressions are not in program order", number);
    for (unsigned expr : group->choice.exprs)
      if (decisions.partOf[expr] != static_cast<int64_t>(number))
        return llvm::formatv("group {0} holds op {1}, which belongs to group {2}", number, expr,
                             decisions.partOf[expr]);
  }
  for (auto [expr, group] : llvm::enumerate(decisions.partOf)) {
    held -= group >= 0;
    if (group < 0 && decisions.reasons[expr].empty())
      return llvm::formatv("op {0} is left to IREE without a reason", expr);
  }
  return held == 0 ? "" : "an op belongs to a group that does not hold it";
}

static std::string verifyKernels(const Decisions &decisions) {
  std::vector<unsigned> kernels(decisions.parts.size());
  for (ArrayRef<unsigned> kernel : decisions.kernels)
    for (unsigned group : kernel) {
      if (group >= decisions.parts.size() || !decisions.parts[group])
        return llvm::formatv("a kernel has group {0}, which is gone", group);
      ++kernels[group];
    }
  for (auto [number, group] : llvm::enumerate(decisions.parts))
    if (group && !decisions.kernels.empty() && kernels[number] != 1)
      return llvm::formatv("group {0} is in {1} kernels", number, kernels[number]);
  return "";
}

std::string PlanDraft::verify() const {
  if (std::string why = verifyGroups(decisions); !why.empty())
    return why;
  if (std::string why = verifyKernels(decisions); !why.empty())
    return why;
  Partition fresh = partition.ungrouped();
  for (const std::optional<PlannedGroup> &group : decisions.parts)
    if (group)
      fresh.join(group->choice.exprs);
  for (ArrayRef<unsigned> kernel : decisions.kernels)
    for (unsigned group : kernel)
      fresh.join({decisions.parts[kernel.front()]->choice.exprs.front(), decisions.parts[group]->choice.exprs.front()});
  return fresh.order() ? "" : "kernels depend on each other in a circle";
}

void tilewright::explainLaunches(const TensorGraph &graph, Decisions &decisions,
                                 llvm::function_ref<Declined(const TensorEdge &)> why) {
  for (const TensorEdge &edge : graph.edges()) {
    int64_t from = decisions.partOf[edge.producer], to = decisions.partOf[edge.consumer];
    if (from < 0 || to < 0 || from == to)
      continue;
    auto [known, isNew] = decisions.declined.try_emplace({static_cast<unsigned>(from), static_cast<unsigned>(to)});
    if (isNew)
      known->second = why(edge);
  }
}

#include "passes/plan/ir/Phases.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tilewright;

Phases tilewright::splitIntoPhases(unsigned count, llvm::function_ref<bool(unsigned, unsigned)> reads) {
  Phases phases(1);
  for (unsigned part = 0; part < count; ++part) {
    if (llvm::any_of(phases.back(), [&](unsigned before) { return reads(part, before); }))
      phases.emplace_back();
    phases.back().push_back(part);
  }
  return phases;
}

Phases tilewright::phasesOf(const Plan &plan, const KernelPlan &kernel) {
  auto holds = [&](unsigned part, unsigned op) {
    return llvm::any_of(kernel.groups[part].ops, [&](const OpPlan &entry) { return entry.id == op; });
  };
  return splitIntoPhases(kernel.groups.size(), [&](unsigned reader, unsigned producer) {
    return llvm::any_of(plan.edges, [&](const EdgePlan &edge) {
      return edge.scope == tile::Scope::grid && holds(producer, edge.producer) && holds(reader, edge.consumer);
    });
  });
}

int64_t tilewright::workgroupsOf(const Plan &plan, const KernelPlan &kernel) {
  int64_t most = 0;
  for (ArrayRef<unsigned> phase : phasesOf(plan, kernel)) {
    int64_t workgroups = 0;
    for (unsigned part : phase)
      workgroups += kernel.groups[part].workgroups;
    most = std::max(most, workgroups);
  }
  return most;
}

int64_t tilewright::blocksPerSm(const Plan &plan, const KernelPlan &kernel, int64_t sms) {
  int64_t cluster = std::max<int64_t>(kernel.groups.front().cluster, 1);
  return divideCeil(alignTo(workgroupsOf(plan, kernel), cluster), sms);
}

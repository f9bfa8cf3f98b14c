#include "passes/plan/tiling/gpu/PlannedResidency.h"

#include "passes/plan/ir/Phases.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/tiling/gpu/BlockMemory.h"
#include "passes/target/Occupancy.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Returns true if the blocks of a kernel wait for each other at grid barriers.
static bool waits(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const Target &target) {
  auto shares = [&](const GroupPlan &group) { return group.steps > 0 || blocksPerRow(graph, group) > 1; };
  return target.gpu.guaranteedSms > 0 &&
         (phasesOf(plan, kernel).size() > 1 || llvm::any_of(kernel.groups, shares));
}

static bool contracts(const KernelPlan &kernel) {
  return llvm::any_of(kernel.groups, [](const GroupPlan &group) {
    return llvm::any_of(group.ops, [](const OpPlan &op) { return !op.microKernel.empty(); });
  });
}

void tilewright::settleResidentBlocks(Plan &plan, const TensorGraph &graph, const Target &target,
                                      llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) {
  for (KernelPlan &kernel : plan.kernels) {
    bool mustWait = waits(plan, graph, kernel, target);
    if (kernel.residentBlocks || (!groupOf && !mustWait))
      continue; // code generation knows the memory of blocks better than a plan without groups
    int64_t blocks = 1;
    if (mustWait)
      blocks = blocksPerSm(plan, kernel, target.gpu.guaranteedSms);
    else if (contracts(kernel))
      blocks = std::min(BlockMemory(plan, graph, kernel, target, groupOf).residentBlocks(),
                        blocksPerSm(plan, kernel, target.cores));
    kernel.residentBlocks = std::max<int64_t>(blocks, 1);
  }
}

/// Returns why an SM cannot hold so many blocks of the kernel, or why more have to be, or an empty string.
static std::string whyNotOf(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                            const Target &target) {
  int64_t stated = *kernel.residentBlocks, most = residentBlocks(target.gpu, kernel.threads(), 0, 1);
  int64_t least = waits(plan, graph, kernel, target) ? blocksPerSm(plan, kernel, target.gpu.guaranteedSms) : 1;
  if (stated == least)
    return ""; // whether so many blocks can be resident is another question, which whyNotCoResident answers
  if (stated < 1 || stated > most)
    return llvm::formatv("an SM of target '{0}' holds from 1 to {1} blocks of {2} threads, not {3}", target.name, most,
                         kernel.threads(), stated);
  if (stated < least)
    return llvm::formatv("its blocks wait for each other, so an SM has to hold at least {0} of them, not {1}", least,
                         stated);
  return "";
}

std::string tilewright::whyNotResident(const Plan &plan, const TensorGraph &graph, const Target &target) {
  for (const KernelPlan &kernel : plan.kernels)
    if (std::string why = kernel.residentBlocks ? whyNotOf(plan, graph, kernel, target) : ""; !why.empty())
      return llvm::formatv("kernel '{0}': residentBlocks: {1}", kernel.name, why);
  return "";
}

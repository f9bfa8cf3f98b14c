#include "passes/plan/grid/KernelPhases.h"

#include "passes/cost/GridPartition.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::readsResultsOf(const TensorGraph &graph, const GroupChoice &reader, const GroupChoice &producer) {
  return llvm::any_of(reader.exprs, [&](unsigned expr) {
    return llvm::any_of(graph.inEdges(expr),
                        [&](unsigned edge) { return producer.contains(graph.edges()[edge].producer); });
  });
}

std::string tilewright::whyNotCoResident(const Plan &plan, const TensorGraph &graph, const Target &target,
                                         bool allowed) {
  for (const KernelPlan &kernel : plan.kernels) {
    bool sharesTiles = llvm::any_of(kernel.groups, [](const GroupPlan &part) { return part.steps > 0; });
    bool shares = sharesTiles || llvm::any_of(kernel.groups, [&](const GroupPlan &part) {
                    return blocksPerRow(graph, part) > 1;
                  });
    if (phasesOf(plan, kernel).size() == 1 && !shares)
      continue;
    std::string subject = "kernel '" + kernel.name + (sharesTiles ? "' shares tiles"
                                                      : shares    ? "' shares rows"
                                                                  : "' has edges at scope grid");
    if (!allowed)
      return subject + ", which " + (shares ? "takes a barrier of the grid: that " : "") + "is forbidden";
    if (target.gpu.guaranteedSms == 0)
      return subject + ", which target '" + target.name +
             (shares ? "' cannot: it has no grid barrier" : "' does not have");
    int64_t threads = std::max(target.gpu.warpLanes, kernel.threads()), blocks = workgroupsOf(plan, kernel);
    int64_t registers = countedRegisters(plan, graph, kernel, target);
    int64_t most = coResidentBlocks(target, residentBlocks(target.gpu, threads, 0, registers));
    if (blocks > most)
      return llvm::formatv("kernel '{0}' has {1} workgroups of {2} threads, {3} registers a thread, that wait for each "
                           "other at scope grid; target '{4}' is sure to have {5} resident",
                           kernel.name, blocks, threads, registers, target.name, most);
  }
  return "";
}

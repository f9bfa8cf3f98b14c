// Prints the composition schemes of each fusion group as remarks, for tests and for people.
#include "passes/Passes.h"
#include "passes/plan/scopes/PlanGroup.h"
#include "passes/graph/GraphPass.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/tiling/TileSizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTSCHEMES
#include "passes/Passes.h.inc"

namespace {
class PrintSchemes : public GraphPass<impl::PrintSchemesBase<PrintSchemes>> {
public:
  using GraphPass::GraphPass;

private:
  void printGroup(const TensorGraph &graph, const GroupPlan &part, const Target &machine) {
    SmallVector<unsigned> exprs;
    for (const OpPlan &op : part.ops)
      exprs.push_back(op.id);
    OrDeclined<PlannedGroup> planned = planGroup(GroupProblem(graph, machine, NumericsMode::standard), exprs);
    if (!planned)
      return;
    Operation *last = graph.exprs()[exprs.back()].op;
    std::vector<BlockCandidate> candidates = blockCandidates(graph, planned->choice, machine, planned->space);
    int64_t best = bestBlock(candidates, machine);
    if (best >= 0)
      remark(last, "chosen: ", candidates[best]);
    for (auto &[composition, members] : byComposition(candidates)) {
      int64_t own = bestBlock(members, machine);
      if (!all && !(best >= 0 && candidates[best].composition == composition))
        remark(last, "", members[own >= 0 ? own : 0]);
      if (all)
        for (const BlockCandidate &candidate : members)
          remark(last, "", candidate);
    }
  }

  static llvm::MapVector<Composition, std::vector<BlockCandidate>> byComposition(ArrayRef<BlockCandidate> candidates) {
    llvm::MapVector<Composition, std::vector<BlockCandidate>> sorted;
    for (const BlockCandidate &candidate : candidates)
      sorted[candidate.composition].push_back(candidate);
    return sorted;
  }

  static void remark(Operation *op, StringRef prefix, const BlockCandidate &candidate) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << prefix;
    candidate.print(os);
    op->emitRemark() << text;
  }

  void run(const TensorGraph &graph, const Target &target) override {
    markAllAnalysesPreserved();
    if (!target.traits.threadBlocks) {
      getOperation().emitError("target '") << target.name << "' is not a GPU: it has no thread blocks";
      return signalPassFailure();
    }
    OrDeclined<Plan> plan = makePlan(graph, target);
    if (!plan) {
      getOperation().emitError("no plan: ") << plan.why().reason;
      return signalPassFailure();
    }
    for (const KernelPlan &kernel : plan->kernels) {
      if (kernel.groups.size() > 1)
        getOperation().emitRemark() << "kernel " << kernel.name << " packs or orders " << kernel.groups.size()
                                    << " parts";
      for (const GroupPlan &part : kernel.groups)
        printGroup(graph, part, target);
    }
  }
};
} // namespace
} // namespace tilewright

// Prints the plan as remarks at the ops that it is about, for tests and for people.
#include "passes/Passes.h"
#include "passes/graph/GraphPass.h"
#include "passes/plan/fusion/Explorers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Mutex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTPLAN
#include "passes/Passes.h.inc"

namespace {
std::string list(const std::vector<int64_t> &values) {
  return "[" + llvm::join(llvm::map_range(values, [](int64_t value) { return std::to_string(value); }), ", ") + "]";
}

class PrintPlan : public GraphPass<impl::PrintPlanBase<PrintPlan>> {
public:
  using GraphPass::GraphPass;

private:
  void printKernel(const KernelPlan &kernel) {
    for (const GroupPlan &part : kernel.groups)
      getOperation().emitRemark() << "kernel " << kernel.name << ": extents " << list(part.extents) << " tiles "
                                  << list(part.tiles) << " grid " << list(part.grid) << " vector " << part.vector
                                  << " workgroups " << part.workgroups;
  }

  void printOps(const TensorGraph &graph, const Plan &plan) {
    for (const KernelPlan &kernel : plan.kernels)
      for (const GroupPlan &part : kernel.groups)
        for (const OpPlan &op : part.ops) {
          InFlightDiagnostic remark = graph.exprs()[op.id].op->emitRemark();
          remark << "op " << op.id << " in kernel " << kernel.name;
          if (op.root)
            remark << ", root at dims " << list(op.dims);
        }
    for (const LeftOp &op : plan.left)
      graph.exprs()[op.id].op->emitRemark() << "op " << op.id << " left: " << op.reason;
  }

  void printEdges(const TensorGraph &graph, const Plan &plan) {
    for (const EdgePlan &edge : plan.edges)
      graph.exprs()[edge.consumer].op->emitRemark()
          << "input " << edge.input << " from op " << edge.producer << " at scope " << tile::stringifyScope(edge.scope)
          << (edge.recompute ? ", recomputed: " : ": ") << edge.reason;
  }

  void run(const TensorGraph &graph, const Target &target) override {
    markAllAnalysesPreserved();
    if (json && graph.exprs().empty())
      return; // IREE's modules have a second function that only calls the model
    PlanOptions options;
    options.policy = policy;
    options.planSeconds = planSeconds;
    OrDeclined<Plan> made = makePlan(graph, cores > 0 ? withCores(target, cores) : target, options);
    if (!made) {
      getOperation().emitError("no plan: ") << made.why().reason;
      return signalPassFailure();
    }
    const Plan &plan = *made;
    if (json) {
      static llvm::sys::Mutex mutex;
      llvm::sys::ScopedLock lock(mutex);
      llvm::outs() << llvm::formatv("{0:2}\n", toJson(plan));
      return;
    }
    llvm::for_each(plan.kernels, [&](const KernelPlan &kernel) { printKernel(kernel); });
    printOps(graph, plan);
    printEdges(graph, plan);
  }
};
} // namespace
} // namespace tilewright

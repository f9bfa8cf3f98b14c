// Names the maxima that one pass over a row finds together with the sum of exp(x - maximum). The algebra is
// RunningMaximum's; here it is only said to be wanted, because strict numerics and GPUs do without it. Whether a kernel
// uses it is seen from its loop nests.
#include "passes/Passes.h"
#include "passes/analysis/RunningMaximum.h"
#include "passes/analysis/TensorGraph.h"
#include "passes/plan/PlanNumerics.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_RUNMAXIMA
#include "passes/Passes.h.inc"

namespace {
/// Whether neighbours in memory are neighbours along the reduced dim.
bool reducesInnermost(const TensorExpr &expr) {
  return llvm::all_of(expr.inputs, [&](const TensorAccess &access) {
    return access.map.getNumResults() > 0 &&
           access.map.getResults().back() == getAffineDimExpr(expr.reductions.front(), access.map.getContext());
  });
}

/// Whether some sum over the same points is proportional to exp(-maximum).
bool isSummedOver(const TensorGraph &graph, unsigned maximum) {
  ArrayRef<TensorExpr> exprs = graph.exprs();
  SmallVector<Relation> relations = relateTo(exprs, maximum, [&](unsigned expr, unsigned input) -> int64_t {
    for (unsigned edge : graph.inEdges(expr))
      if (graph.edges()[edge].input == input)
        return graph.edges()[edge].producer;
    return -1;
  });
  return llvm::any_of(llvm::zip(exprs, relations), [&](auto pair) {
    auto &[expr, relation] = pair;
    return relation == Relation::sum && expr.domainSize() == exprs[maximum].domainSize();
  });
}

struct RunMaxima : impl::RunMaximaBase<RunMaxima> {
  using RunMaximaBase::RunMaximaBase;

  void runOnOperation() override {
    llvm::Expected<Target> machine = lookupTarget(target);
    if (!machine) {
      getOperation().emitError(llvm::toString(machine.takeError()));
      return signalPassFailure();
    }
    int64_t least = kLeastReferences * pointsPerReference(machine->vectorBytes, machine->vectorRegisters);
    for (Block &block : getOperation().getBody()) {
      TensorGraph graph = TensorGraph::build(block);
      for (auto [id, expr] : llvm::enumerate(graph.exprs()))
        if (isRowMaximum(expr, least) && reducesInnermost(expr) && isSummedOver(graph, id)) {
          expr.op->setAttr(kFormAttr, StringAttr::get(&getContext(), kRunningMaximum));
          ++numNamed;
        }
    }
  }
};
} // namespace
} // namespace tilewright

// Prints the tensor dependence graph: each expression on its op, and each shared tensor at its definition.
#include "passes/Passes.h"
#include "passes/graph/TensorGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTTENSORGRAPH
#include "passes/Passes.h.inc"

namespace {
class PrintTensorGraph : public impl::PrintTensorGraphBase<PrintTensorGraph> {
  void printExpr(const TensorGraph &graph, unsigned index) {
    const TensorExpr &expr = graph.exprs()[index];
    InFlightDiagnostic remark = expr.op->emitRemark();
    remark << "expr " << index << ": " << stringify(expr.kind) << ", domain [" << expr.domain << "]";
    if (!expr.reductions.empty())
      remark << " reduce [" << expr.reductions << "]";
    for (unsigned edge : graph.inEdges(index)) {
      const TensorEdge &in = graph.edges()[edge];
      remark << ", input " << in.input << " from expr " << in.producer << " result " << in.result;
    }
    for (Value result : expr.op->getResults()) {
      LiveRange range = graph.liveRange(result);
      remark << ", live " << range.first << " to " << range.last;
    }
    if (graph.escapes(index))
      remark << ", escapes";
  }

  void printReuse(const TensorReuse &reuse) {
    Operation *definition = reuse.tensor.getDefiningOp();
    InFlightDiagnostic remark = (definition ? definition : getOperation().getOperation())->emitRemark();
    remark << "reuse: " << reuse.tensor.getType();
    if (auto argument = dyn_cast<BlockArgument>(reuse.tensor))
      remark << " (argument " << argument.getArgNumber() << ")";
    remark << " is read by exprs [" << reuse.readers << "]";
    if (reuse.spatial)
      remark << ", spatial";
    if (reuse.temporal)
      remark << ", temporal";
  }

  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      TensorGraph graph = TensorGraph::build(block);
      for (unsigned index = 0; index < graph.exprs().size(); ++index)
        printExpr(graph, index);
      for (const TensorReuse &reuse : graph.reuse())
        printReuse(reuse);
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright

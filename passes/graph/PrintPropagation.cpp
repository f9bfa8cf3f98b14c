// Prints the tiles that an output tile needs: the tile of every op, then footprint and traffic on the root.
#include "passes/Passes.h"
#include "passes/graph/TilePropagation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTPROPAGATION
#include "passes/Passes.h.inc"

namespace {
/// Returns the expression behind the first returned value, or -1.
int64_t rootOf(Block &block, const TensorGraph &graph) {
  Operation *terminator = block.getTerminator();
  Operation *root = terminator->getNumOperands() ? terminator->getOperand(0).getDefiningOp() : nullptr;
  return root ? graph.indexOf(root) : -1;
}

class PrintPropagation : public impl::PrintPropagationBase<PrintPropagation> {
public:
  using PrintPropagationBase::PrintPropagationBase;

private:
  void print(const TensorGraph &graph, unsigned root) {
    TileGraph tileGraph(graph);
    for (unsigned edge = 0; connect && edge < graph.edges().size(); ++edge)
      tileGraph.setConnect(edge, 1);
    PropagationOptions options;
    options.outputTile.assign(outputTile.begin(), outputTile.end());
    options.reductionTile = reductionTile;
    TilePropagation tiles = propagate(tileGraph, root, options);
    for (const ExprTile &tile : tiles.exprs)
      graph.exprs()[tile.expr].op->emitRemark() << "tile [" << tile.sizes << "]";
    for (const UnalignedOutput &output : tiles.unaligned)
      graph.exprs()[output.expr].op->emitRemark() << "not connected: " << output.reason;
    std::string text;
    llvm::raw_string_ostream os(text);
    tiles.print(os);
    graph.exprs()[root].op->emitRemark() << text;
  }

  void runOnOperation() override {
    if (llvm::any_of(outputTile, [](int64_t size) { return size <= 0; }) || reductionTile < 0) {
      getOperation().emitError("tile sizes must be positive");
      return signalPassFailure();
    }
    if (!getOperation().getBody().hasOneBlock())
      return;
    TensorGraph graph = TensorGraph::build(getOperation().getBody().front());
    int64_t root = rootOf(getOperation().getBody().front(), graph);
    if (root >= 0)
      print(graph, root);
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright

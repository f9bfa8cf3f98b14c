// Base class of passes that rewrite the tensor graphs of a function, its own and those of its loops, for a given
// target.
#ifndef TILEWRIGHT_GRAPH_GRAPHPASS_H
#define TILEWRIGHT_GRAPH_GRAPHPASS_H

#include "passes/graph/LoopBodies.h"
#include "passes/graph/TensorGraph.h"
#include "passes/target/TargetOrError.h"

namespace tilewright {

/// `Base` is the generated class of a pass on func.func with an option `target`. An unknown target is an error.
/// Functions without a body or with several blocks are left alone.
template <typename Base> class GraphPass : public Base {
protected:
  using Base::Base;

  virtual void run(const TensorGraph &graph, const Target &target) = 0;

private:
  void runOnOperation() final {
    mlir::FailureOr<Target> found = targetOrError(this->getOperation(), this->target);
    if (mlir::failed(found))
      return this->signalPassFailure();
    for (PlannedBlock planned : plannedBlocks(this->getOperation()))
      run(TensorGraph::build(*planned.block), *found);
  }
};

} // namespace tilewright

#endif

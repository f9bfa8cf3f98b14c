// Base class of passes that rewrite the tensor graph of a function for a given target.
#ifndef TILEWRIGHT_GRAPH_GRAPHPASS_H
#define TILEWRIGHT_GRAPH_GRAPHPASS_H

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
    if (this->getOperation().getBody().hasOneBlock())
      run(TensorGraph::build(this->getOperation().getBody().front()), *found);
  }
};

} // namespace tilewright

#endif

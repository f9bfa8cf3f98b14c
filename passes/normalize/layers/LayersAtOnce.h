// Offers stacks of recurrent layers the form `wavefront`, and carries it out where it is taken.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_LAYERSATONCE_H
#define TILEWRIGHT_NORMALIZE_LAYERS_LAYERSATONCE_H

#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Has the layers of stacks run at once where the rule, or a request, says so. Records the choices on the function, with
/// a remark each. Fails with an error at the first loop if a request cannot be carried out. Ops of the stacked loop may
/// read a part of a tensor from outside by their maps, which linalg's verifier refuses, so the caller raises them to
/// expressions before it runs.
mlir::LogicalResult runLayersAtOnce(mlir::func::FuncOp function, const Target &target, NumericsMode numerics);

} // namespace tilewright

#endif

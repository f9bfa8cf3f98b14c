// Parts of the loop of a stack of layers that all of its forms have: the products of states, the layers that are at
// work in a step, and the removal of the loops that it replaces.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_STACKEDLOOP_H
#define TILEWRIGHT_NORMALIZE_LAYERS_STACKEDLOOP_H

#include "passes/normalize/layers/LayerStack.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// The product of the state with the weights of the second layer's cell, and the one of the sequence with those of its
/// projection.
struct StateProducts {
  mlir::linalg::LinalgOp cell, projection;
};

/// Finds products of matrices of one size and type whose weights come from outside and that are added to nothing, or
/// returns nothing. Unless numerics are strict, the sequence may have been rounded to 16 bits.
std::optional<StateProducts> findStateProducts(const LayerStack &stack, bool strict);

/// Replaces tensors that are widened by what is widened, if that has the same type for all of them.
void narrowAll(mlir::OpBuilder &builder, llvm::MutableArrayRef<mlir::Value> tensors);

/// Makes the product of a layer for all layers: `read` is [layer, row, k], `weights` are [layer, k, group, column of the
/// group], and the result, of `type`, is [layer, row, group, column].
mlir::Value stackedProduct(mlir::OpBuilder &builder, mlir::Location loc, mlir::linalg::LinalgOp ofLayer,
                           mlir::RankedTensorType type, mlir::Value read, mlir::Value weights);

/// Returns a table of ones for the layers that are at work in a step, and zeros: layer i in `steps` steps from
/// `firsts[i]` on.
mlir::Value tableOfLayers(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> firsts, int64_t steps,
                          int64_t waves);

/// Returns the row of the table that belongs to a step.
mlir::Value layersAtWork(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value table, mlir::Value step,
                         int64_t layers);

/// Returns `next` for the layers that are at work, and the state before for the others.
mlir::Value keepOthers(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value next, mlir::Value before,
                       mlir::Value atWork);

/// Moves what reads results of the layers behind the last one.
void moveReadersBehind(const LayerStack &stack);

/// Returns true if an op behind the last layer uses the value.
bool isUsedBehind(const LayerStack &stack, mlir::OpOperand &use);

/// Erases the layers, whose results nothing reads.
void eraseLayers(LayerStack &stack);

} // namespace tilewright

#endif

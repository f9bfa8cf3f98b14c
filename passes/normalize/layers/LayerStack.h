// Stacks of recurrent layers of equal cells, each of which reads the sequence that the layer before collects. They can
// become one loop, a wavefront over layers and steps: in its step s, layer l makes its step s - l, so all layers run at
// once, and there are steps + layers - 1 steps instead of steps x layers.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_LAYERSTACK_H
#define TILEWRIGHT_NORMALIZE_LAYERS_LAYERSTACK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace tilewright {

/// A recurrent layer: a loop over the steps of a sequence that collects a sequence of states.
struct RecurrentLayer {
  mlir::scf::ForOp loop;
  int64_t steps;
  mlir::tensor::ExtractSliceOp part;     ///< of `part.getSource()`, what the cell reads in a step
  mlir::tensor::InsertSliceOp collected; ///< of the state into the sequence
  unsigned sequence;                     ///< number of the result that is the sequence
  unsigned state;                        ///< number of the state that is collected
  /// Ops in front of the loop that compute what the parts are slices of from the sequence of the layer before, in
  /// program order. Each computes the elements of a step from those of the same step.
  llvm::SmallVector<mlir::Operation *> projection;

  /// Returns the numbers of the results that are states.
  llvm::SmallVector<unsigned> states();
  /// Returns the place of a state among these.
  unsigned position(unsigned result) const { return result - (result > sequence); }
};

/// Layers in order, each of which reads the one before, with equal cells, and from the second on equal projections.
struct LayerStack {
  std::vector<RecurrentLayer> layers;
  /// For each value from outside that the second layer's cell reads, the values that the others read in its place; and
  /// the same for its projection, which begins with the second layer.
  llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::Value>> ofCells, ofProjections;
  llvm::SmallVector<mlir::Operation *> readers; ///< other ops in front of the last loop that depend on its layers

  int64_t steps() const { return layers.front().steps; }
  int64_t waves() const { return steps() + static_cast<int64_t>(layers.size()) - 1; }
};

/// Returns the stacks of at least two layers in a function's block.
std::vector<LayerStack> findLayerStacks(mlir::func::FuncOp function);

} // namespace tilewright

#endif

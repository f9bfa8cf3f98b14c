// Wavefront over layers and steps: recurrent layers of equal cells, each of which reads the sequence that the layer
// before collects, become one loop. In its step s, layer l makes its step s - l, so all layers run at once, and there
// are steps + layers - 1 steps instead of steps x layers. Finding stacks and deciding about them is pure; the rewrite
// (StackLayers.h) decides nothing.
#ifndef TILEWRIGHT_PLAN_APPLY_WAVEFRONT_H
#define TILEWRIGHT_PLAN_APPLY_WAVEFRONT_H

#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"

#include <string>
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

/// The predictions that decide whether the layers of a stack run at once, in seconds.
struct WavefrontChoice {
  double seconds = 0;          ///< of what differs: barriers, and projections in every step
  double otherwiseSeconds = 0; ///< of layer after layer, with one projection of all steps
  bool taken() const { return seconds < otherwiseSeconds; }
};

/// The columns of a product of each layer, in groups that a block each keeps the weights of.
struct ColumnGroups {
  int64_t count = 1, columns = 0; ///< of a layer; and of a group, of which the last ones may be of zeros
};

/// Returns the groups of `columns` columns of each layer, with `weightBytes` bytes of weights in a column, such that
/// one block for each group is resident at once and keeps its weights in shared memory; one group if there are no such.
ColumnGroups groupColumns(int64_t columns, int64_t weightBytes, int64_t layers, const Target &target);

WavefrontChoice chooseWavefront(const LayerStack &stack, const Target &target);

} // namespace tilewright

#endif

// One product for a recurrent layer: what it reads in a step and its state, side by side, are multiplied by the weights
// of both, so that a step of a stack of layers is one product for each layer, and the cell behind it (Souffle 6.1). The
// first layer's input is multiplied in the step that reads it, as those of the others are.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_JOINTPRODUCT_H
#define TILEWRIGHT_NORMALIZE_LAYERS_JOINTPRODUCT_H

#include "passes/normalize/layers/ColumnGroups.h"
#include "passes/normalize/layers/StackedLoop.h"

namespace tilewright {

/// The ops of a stack whose layers can have one product each.
struct JointProduct {
  StateProducts products;
  mlir::linalg::LinalgOp sum; ///< of the second layer's part and the product of its state
  /// Ops of the second layer between the product of its projection and its part, in program order.
  llvm::SmallVector<mlir::Operation *> between;
  mlir::Value sequence; ///< what the first layer's projection multiplies, [step * row, k]
  /// Maps what the second layer's projection reads to what the first one's reads in its place.
  llvm::DenseMap<mlir::Value, mlir::Value> ofFirst;
  int64_t rows = 0;    ///< of a state
  int64_t units = 0;   ///< of a row
  int64_t gates = 0;   ///< columns of the product for each unit
  ColumnGroups groups; ///< with all gates of some units each
};

/// Returns nothing if sums may not be reordered, if a layer does more than to add both products and to compute each
/// unit from its gates, if the sequences of other layers than the last are read, or if not all weights would stay in
/// shared memory.
std::optional<JointProduct> findJointProduct(const LayerStack &stack, const Target &target, NumericsMode numerics);

/// Replaces the loops of the stack by one with a product for each layer. Returns it.
mlir::scf::ForOp stackByJointProduct(const LayerStack &stack, const JointProduct &joint);

} // namespace tilewright

#endif

// Which input elements an output element relies on (Souffle 5.2), as a relation per pair of result and input.
#ifndef TILEWRIGHT_GRAPH_ELEMENTDEPENDENCE_H
#define TILEWRIGHT_GRAPH_ELEMENTDEPENDENCE_H

#include "passes/support/AffineAlgebra.h"
#include "passes/graph/TensorExpr.h"
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace tilewright {

/// v -> matrix * v + offset over the output's index; rows are dims of the input.
struct AffineForm {
  llvm::SmallVector<llvm::SmallVector<int64_t>> matrix;
  llvm::SmallVector<int64_t> offset;
};

struct ElementDependence {
  unsigned result, input;               ///< positions in the expression
  llvm::SmallVector<int64_t> output;    ///< the output's shape: the range of the map's dims
  llvm::SmallVector<int64_t> reduction; ///< extents of the reduction variables, the map's symbols; empty: one-on-one
  mlir::AffineMap map;                  ///< output index and reduction variables to input index
  mlir::IntegerSet guard;               ///< where there is a dependence, over the same variables; null: everywhere
  std::optional<AffineForm> affine;     ///< for one-relies-on-one without division or mod

  bool oneReliesOnOne() const { return reduction.empty(); }
  /// The relation in the paper's notation.
  void print(llvm::raw_ostream &os) const;
};

std::vector<ElementDependence> elementDependence(const TensorExpr &expr);

} // namespace tilewright

#endif

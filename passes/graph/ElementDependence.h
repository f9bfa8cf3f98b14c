// The input elements that an output element relies on (Souffle 5.2), as one relation per pair of result and input.
#ifndef TILEWRIGHT_GRAPH_ELEMENTDEPENDENCE_H
#define TILEWRIGHT_GRAPH_ELEMENTDEPENDENCE_H

#include "passes/graph/TensorExpr.h"
#include "passes/support/AffineAlgebra.h"
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace tilewright {

/// The function v -> matrix * v + offset of the output's index v. Rows of the matrix are dims of the input.
struct AffineForm {
  llvm::SmallVector<llvm::SmallVector<int64_t>> matrix;
  llvm::SmallVector<int64_t> offset;
};

struct ElementDependence {
  unsigned result, input;               ///< positions in the expression
  llvm::SmallVector<int64_t> output;    ///< shape of the output, the range of the map's dims
  llvm::SmallVector<int64_t> reduction; ///< extents of the reduction variables, the map's symbols; empty: one-on-one
  mlir::AffineMap map;                  ///< from output index and reduction variables to input index
  mlir::IntegerSet guard;               ///< points that have the dependence, over the same variables; null: all
  std::optional<AffineForm> affine;     ///< set for one-relies-on-one without division or mod

  bool oneReliesOnOne() const { return reduction.empty(); }
  /// Prints the relation in the paper's notation.
  void print(llvm::raw_ostream &os) const;
};

std::vector<ElementDependence> elementDependence(const TensorExpr &expr);

} // namespace tilewright

#endif

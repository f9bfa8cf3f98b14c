// Arithmetic per element moved (Souffle 5.3), which classifies an expression as memory- or compute-intensive.
#ifndef TILEWRIGHT_GRAPH_COMPUTERATIO_H
#define TILEWRIGHT_GRAPH_COMPUTERATIO_H

#include "passes/graph/TensorExpr.h"

namespace llvm {
class raw_ostream;
}

namespace tilewright {

/// Souffle's threshold, in operations per element. Below it an expression is memory-intensive.
inline constexpr double kComputeRatioThreshold = 3.0;

struct ComputeRatio {
  int64_t arithmetic = 0;   ///< operations
  int64_t elementsRead = 0; ///< upper bound of the distinct input elements
  int64_t elementsWritten = 0;
  double threshold = kComputeRatioThreshold;

  double ratio() const;
  bool memoryIntensive() const { return ratio() < threshold; }
  void print(llvm::raw_ostream &os) const;
};

ComputeRatio computeRatio(const TensorExpr &expr, double threshold = kComputeRatioThreshold);

} // namespace tilewright

#endif

// The sizes for which one kernel would be the better choice for a few ops, or no longer be. It is found by planning the
// ops with other sizes.
#ifndef TILEWRIGHT_PLAN_FUSION_SIZEFLIPS_H
#define TILEWRIGHT_PLAN_FUSION_SIZEFLIPS_H

#include "passes/plan/scopes/PlanGroup.h"
#include "llvm/ADT/StringMap.h"

namespace tilewright {

class SizeFlips {
public:
  explicit SizeFlips(const GroupProblem &problem) : problem(problem) {}

  /// Returns the nearest size of a dim of the tensor for which the prediction prefers another choice between one kernel
  /// for all pieces and one for each, such as "dims of at most 6144 in place of 8192". Returns an empty string if there
  /// is none from a sixteenth of a dim to sixteen times it, or if the ops do not allow other sizes.
  std::string nearest(llvm::ArrayRef<llvm::SmallVector<unsigned>> pieces, mlir::Value tensor);

private:
  const GroupProblem &problem;
  llvm::StringMap<std::string> known; ///< by the ops, their pieces and the dims
};

} // namespace tilewright

#endif

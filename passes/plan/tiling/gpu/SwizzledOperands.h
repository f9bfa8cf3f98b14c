// Decides which constant operands of contractions on a GPU are stored as tiles in the swizzled layout of shared memory
// (graph/SwizzledLayout.h), so that bulk copies can load them. A plan states it as the layout of a kernel's input.
// Planners choose it where it pays (cost/BulkCopies.h); plans from files may state it wherever it is possible.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_SWIZZLEDOPERANDS_H
#define TILEWRIGHT_PLAN_TILING_GPU_SWIZZLEDOPERANDS_H

#include "passes/cost/BulkCopies.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// An operand of a contraction stored as swizzled tiles.
struct SwizzledLayout {
  unsigned op = 0, operand = 0;  ///< expression of the contraction, and number of the operand
  GroupRoot root;                ///< the contraction's accesses
  std::string input;             ///< name of the tensor in the plan
  std::vector<int64_t> padded;   ///< padded sizes of the tensor
  int64_t nDim = 0, kDim = 0;    ///< dims of the tensor that are N and K; all others have one point
  SwizzledShape shape;
  int64_t atom = 1; ///< elements per 16 bytes
  BulkCopyGain gain;

  /// Returns the recipe that numpy follows to make the layout: pad to sizes, permute, split into lines, steps, and the
  /// K of a step, permute, swizzle by atoms of this many elements.
  std::vector<LayoutStep> layout() const;
};

/// Returns the swizzled layout of rhs for a contraction with a warpgroup micro kernel. If there is none, `why` explains
/// it.
std::optional<SwizzledLayout> possibleSwizzledLayout(const TensorGraph &graph, const Plan &plan,
                                                     const KernelPlan &kernel, const OpPlan &contraction,
                                                     const Target &target, std::string &why);

/// Gives weights that a plan's kernels read a swizzled layout, where that is possible and pays.
void chooseSwizzledOperands(Plan &plan, const TensorGraph &graph, const Target &target);

/// A warpgroup contraction that copies rhs without a swizzled layout, with the reason.
struct PlainCopies {
  unsigned op;
  std::string reason;
};
std::vector<PlainCopies> plainCopies(const Plan &plan, const TensorGraph &graph, const Target &target);

/// Returns why an input cannot have the layout that the plan states, or an empty string if all can.
std::string whyNotLaidOut(const Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif

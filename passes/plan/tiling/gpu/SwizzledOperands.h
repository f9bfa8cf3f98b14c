// Which constant operands of contractions on a GPU are stored as images of their tiles in shared memory
// (graph/SwizzledLayout.h). In a plan that is the layout of a kernel's input; planners choose it where it pays
// (cost/BulkCopies.h), plans from files may say it wherever it is possible.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_SWIZZLEDOPERANDS_H
#define TILEWRIGHT_PLAN_TILING_GPU_SWIZZLEDOPERANDS_H

#include "passes/cost/BulkCopies.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// The step of a layout whose sizes are lines, steps, and terms of a step.
inline constexpr llvm::StringLiteral kSplitStep = "split";

/// The operand of a contraction as images of its tiles.
struct SwizzledLayout {
  unsigned op = 0, operand = 0;  ///< the contraction, and which of its operands it is
  GroupRoot root;                ///< the contraction's reads
  std::string input;             ///< what the plan calls the tensor
  std::vector<int64_t> padded;   ///< sizes of the tensor, filled up
  int64_t laneDim = 0, kDim = 0; ///< of the tensor; its other dims have one point
  SwizzledShape shape;
  int64_t atom = 1;      ///< elements of 16 bytes
  int64_t copyBytes = 0; ///< of a bulk copy
  BulkCopyGain gain;

  /// As numpy would make it of the tensor: pad to sizes, permute, split into sizes, permute, swizzle by atoms of so
  /// many elements.
  std::vector<LayoutStep> layout() const;
};

/// The image of what a contraction with a micro kernel of warpgroups reads along its lanes, or `why` there can be none.
std::optional<SwizzledLayout> possibleSwizzledLayout(const TensorGraph &graph, const Plan &plan,
                                                     const KernelPlan &kernel, const OpPlan &contraction,
                                                     const Target &target, std::string &why);

/// Gives weights that a plan's kernels read the layout of images, where that is possible and pays.
void chooseSwizzledOperands(Plan &plan, const TensorGraph &graph, const Target &target);

/// A contraction of warpgroups that copies its operand as it is, and why.
struct PlainCopies {
  unsigned op;
  std::string reason;
};
std::vector<PlainCopies> plainCopies(const Plan &plan, const TensorGraph &graph, const Target &target);

/// Why an input cannot have the layout that the plan says; empty if all can.
std::string whyNotLaidOut(const Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif

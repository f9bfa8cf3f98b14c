// Which independent contractions become one (Souffle 6.1): those that multiply one tensor with weights, and agree in
// the rest. Their columns lie side by side in blocks that every reader can address by dims of its own: heads, then the
// parts that a head has, then columns of one part. A pure function of graph and target; MergeContractions carries it
// out.
#ifndef TILEWRIGHT_PLAN_FORMS_HORIZONTALMERGE_H
#define TILEWRIGHT_PLAN_FORMS_HORIZONTALMERGE_H

#include "passes/graph/TensorGraph.h"
#include "passes/target/Target.h"
#include <vector>

namespace tilewright {

/// How the columns of the parts are split and ordered: part i has `heads` x `slots[i]` x `width` of them, and the
/// merged contraction `heads` x sum of `slots` x `width`.
struct ColumnLayout {
  int64_t heads = 1, width = 0;
  std::vector<int64_t> slots;

  int64_t allSlots() const;
  std::string toString() const;
};

/// Contractions that become one.
struct HorizontalMerge {
  std::vector<unsigned> contractions; ///< expressions of the graph, in program order
  /// What follows each of them with the same arithmetic, and becomes one, too: by step, an expression for each part.
  std::vector<std::vector<unsigned>> epilogue;
  ColumnLayout columns;
  double savedSeconds = 0; ///< launches, and reads of the shared tensor, less columns that fill up register blocks

  /// Why it cannot be carried out on the graph; empty if it can.
  std::string verify(const TensorGraph &graph) const;
};

/// Two contractions that share a tensor and stay apart.
struct DeclinedMerge {
  unsigned first, second;
  std::string reason;
};

struct HorizontalMerges {
  std::vector<HorizontalMerge> merges;
  std::vector<DeclinedMerge> declined;

  void print(llvm::raw_ostream &os) const;
};

HorizontalMerges findHorizontalMerges(const TensorGraph &graph, const Target &target);

/// The loop of an elementwise step that runs along dim `axis` of what it gets from the step before, or -1; `operand` is
/// where it gets it.
struct StepInput {
  unsigned operand;
  int64_t loop;
};
std::optional<StepInput> stepInput(mlir::Operation *step, mlir::Value before, int64_t axis);

/// The dim of the result of a structured op that stands at a loop, or -1.
int64_t resultAxis(mlir::Operation *op, int64_t loop);

} // namespace tilewright

#endif

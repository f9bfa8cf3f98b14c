// Decides which independent contractions are merged into one (Souffle 6.1): those that multiply the same tensor with
// weights and agree in everything else. The columns of the merged contraction are divided into three dims, so that
// every reader can address its own: heads, the slots of a head, and the columns of a slot. The offers and the rule that
// takes them are pure functions of graph and target; MergeContractions carries the choices out.
#ifndef TILEWRIGHT_NORMALIZE_FORMS_HORIZONTALMERGE_H
#define TILEWRIGHT_NORMALIZE_FORMS_HORIZONTALMERGE_H

#include "passes/graph/FormChoice.h"
#include "passes/graph/TensorGraph.h"
#include "passes/target/Target.h"
#include <vector>

namespace tilewright {

/// How the columns of the contractions are split and ordered: contraction i has `heads` x `slots[i]` x `width` columns,
/// and the merged one has `heads` x sum of `slots` x `width`.
struct ColumnLayout {
  int64_t heads = 1, width = 0;
  std::vector<int64_t> slots;

  int64_t allSlots() const;
  std::string toString() const;
};

/// Contractions that can be merged into one.
struct HorizontalMerge {
  std::vector<unsigned> contractions; ///< expressions of the graph, in program order
  /// Elementwise expressions that follow all contractions alike and are merged, too: by step, one for each contraction.
  std::vector<std::vector<unsigned>> epilogue;
  ColumnLayout columns;
  double savedSeconds = 0; ///< seconds of launches and reads of the shared tensor, minus those of padded columns

  /// Returns the choice that the prediction alone makes: merge if it saves time.
  FormChoice byRule() const;
  /// Sets the columns to the choice's. Returns why the merge cannot be carried out on the graph, or an empty string.
  std::string layOut(const TensorGraph &graph, const FormChoice &choice);
};

/// Two contractions that share a tensor but cannot be merged.
struct ApartContractions {
  unsigned first, second;
  std::string reason;
};

struct HorizontalMerges {
  std::vector<HorizontalMerge> offers;
  std::vector<ApartContractions> apart;
};

/// Finds the merges of a graph, each with its best columns.
HorizontalMerges findHorizontalMerges(const TensorGraph &graph, const Target &target);

/// The operand with which an elementwise step reads the result of the step before.
struct StepInput {
  unsigned operand; ///< number of the operand
  int64_t loop;     ///< loop of the step along dim `axis` of the operand
};

/// Returns how a step reads `before`, whose columns are dim `axis`, or nothing if it does not read it elementwise.
std::optional<StepInput> stepInput(mlir::Operation *step, mlir::Value before, int64_t axis);

/// Returns the dim of a structured op's result that has the loop as its index, or -1.
int64_t resultAxis(mlir::Operation *op, int64_t loop);

} // namespace tilewright

#endif

#include "passes/plan/grid/TrialGroups.h"

using namespace mlir;
using namespace tilewright;

void TrialGroups::place(unsigned index, PlannedGroup part) {
  decisions.parts.resize(std::max<size_t>(decisions.parts.size(), index + 1));
  for (unsigned expr : part.choice.exprs) {
    moved.push_back({expr, decisions.partOf[expr]});
    decisions.partOf[expr] = index;
  }
  replaced.push_back({index, std::exchange(decisions.parts[index], std::move(part))});
}

/// Restores in reverse order, since a group may have been replaced twice.
TrialGroups::~TrialGroups() {
  if (isKept)
    return;
  for (const Moved &own : llvm::reverse(moved))
    decisions.partOf[own.expr] = own.part;
  for (Replaced &own : llvm::reverse(replaced))
    decisions.parts[own.index] = std::move(own.part);
  decisions.parts.resize(before);
}

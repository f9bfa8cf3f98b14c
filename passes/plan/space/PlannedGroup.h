// A fusion group during planning: its expressions, the scope of every edge between them, their iteration space with
// tiles, and its predicted cost.
#ifndef TILEWRIGHT_PLAN_SPACE_PLANNEDGROUP_H
#define TILEWRIGHT_PLAN_SPACE_PLANNEDGROUP_H

#include "passes/plan/space/Work.h"

namespace tilewright {

/// The scope of an edge inside a group, and the reason for it.
struct EdgeChoice {
  tile::Scope scope = tile::Scope::block;
  bool recompute = false;
  std::string reason;
};

/// A fusion group with all decisions about it.
struct PlannedGroup {
  GroupChoice choice;
  llvm::DenseMap<unsigned, EdgeChoice> edges;
  IterationSpace space;
  GroupWork work;
  Prediction predicted;
  double apartSeconds =
      0; ///< predicted seconds if each of its contractions had a kernel of its own; 0 if it has at most one
};

} // namespace tilewright

#endif

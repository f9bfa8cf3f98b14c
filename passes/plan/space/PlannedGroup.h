// A fusion group as the planner holds it while it plans: its expressions, the scope of every edge between them, their
// iteration space with tiles, and what that is predicted to take.
#ifndef TILEWRIGHT_PLAN_SPACE_PLANNEDGROUP_H
#define TILEWRIGHT_PLAN_SPACE_PLANNEDGROUP_H

#include "passes/plan/space/Work.h"

namespace tilewright {

/// How an edge inside a part is carried out, and why.
struct EdgeChoice {
  tile::Scope scope = tile::Scope::block;
  bool recompute = false;
  std::string reason;
};

/// A part with everything decided about it.
struct PlannedGroup {
  GroupChoice choice;
  llvm::DenseMap<unsigned, EdgeChoice> edges;
  IterationSpace space;
  GroupWork work;
  Prediction predicted;
  double apartSeconds = 0; ///< predicted for a kernel for each of its contractions; 0: it has one at most
};

} // namespace tilewright

#endif

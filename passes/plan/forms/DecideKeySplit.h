// Into how many parts the keys of a group are cut: the planner predicts the group by itself, whole and in parts.
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEKEYSPLIT_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEKEYSPLIT_H

#include "passes/plan/forms/KeyGroup.h"
#include "passes/target/Target.h"

namespace tilewright {

/// How many parts, and the predictions that decided it.
struct KeySplit {
  int64_t parts = 1;
  double oneSeconds = 0, twoSeconds = 0;
  std::string reason; ///< for one part

  std::string form() const;
  void print(llvm::raw_ostream &os) const;
};

KeySplit decideKeySplit(const TensorGraph &graph, const KeyGroup &group, const Target &target, bool gridSync);

} // namespace tilewright

#endif

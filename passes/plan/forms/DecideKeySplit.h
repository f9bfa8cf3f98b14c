// Decides into how many parts the keys of a group are split. The planner predicts the group on its own, whole and in
// parts.
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEKEYSPLIT_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEKEYSPLIT_H

#include "passes/plan/forms/KeyGroup.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The decision how the keys of a group are split, and the predictions that it is based on.
struct KeySplit {
  int64_t parts = 1;
  double oneSeconds = 0, twoSeconds = 0; ///< predicted seconds in one part and in `parts` parts
  std::string reason;                    ///< why the keys stay in one part

  std::string form() const;
  void print(llvm::raw_ostream &os) const;
};

KeySplit decideKeySplit(const TensorGraph &graph, const KeyGroup &group, const Target &target, bool gridSync);

} // namespace tilewright

#endif

// Decides into how many parts the keys of a group are split. The planner predicts the group on its own, whole and in
// parts.
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEKEYSPLIT_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEKEYSPLIT_H

#include "passes/graph/FormChoice.h"
#include "passes/normalize/forms/KeyGroup.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Decides for a group that can be split. The parameter `parts` of the choice is the number of parts.
FormChoice decideKeySplit(const TensorGraph &graph, const KeyGroup &group, const Target &target, bool gridSync);

/// Returns why a choice cannot be carried out, or an empty string.
std::string whyNotSplitKeys(const KeyGroup &group, const FormChoice &choice);

} // namespace tilewright

#endif

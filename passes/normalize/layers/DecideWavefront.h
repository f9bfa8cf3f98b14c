// Decides whether the layers of a stack run at once.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_DECIDEWAVEFRONT_H
#define TILEWRIGHT_NORMALIZE_LAYERS_DECIDEWAVEFRONT_H

#include "passes/graph/FormChoice.h"
#include "passes/normalize/layers/JointProduct.h"

namespace tilewright {

/// Returns the rule's choice of the form `wavefront`. It has the parameter `joint`: 1 if each layer has one joint
/// product, 0 otherwise. The seconds are those of what differs: barriers, and products of what layers hand on.
FormChoice decideWavefront(const LayerStack &stack, const std::optional<JointProduct> &joint, const Target &target,
                           NumericsMode numerics);

/// Returns true if the choice, which can be carried out, has joint products.
bool hasJointProduct(const FormChoice &choice);

/// Returns why a choice with other parameters than the rule's cannot be carried out, or an empty string. Sets whether it
/// sums in another order, as joint products do.
std::string whyNotWavefront(const std::optional<JointProduct> &joint, FormChoice &choice);

} // namespace tilewright

#endif

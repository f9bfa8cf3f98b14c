// Carries a wavefront out: replaces the loops of a stack of recurrent layers by one, whose ops have the layers as their
// first dim.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_STACKLAYERS_H
#define TILEWRIGHT_NORMALIZE_LAYERS_STACKLAYERS_H

#include "passes/normalize/layers/JointProduct.h"

namespace tilewright {

/// Replaces the loops of the stack by one, which has the joint product if there is one. Returns it. Unless numerics are
/// strict, the projections of layers of 16 bits read the state before it is rounded.
mlir::scf::ForOp stackLayers(const LayerStack &stack, const std::optional<JointProduct> &joint, const Target &target,
                             NumericsMode numerics);

} // namespace tilewright

#endif

#include "passes/codegen/cpu/ContractionEmitter.h"

#include "passes/codegen/cpu/ContractionLoops.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

bool tilewright::emitContraction(OpBuilder &builder, ComputeOp compute, const IRMapping &values, const Target &target) {
  std::optional<Contraction> contraction = matchContraction(compute, OperandGuards::allowed);
  if (!contraction || contraction->rhs.getGuard())
    return false;
  KLayout layout = kLayout(compute, *contraction);
  for (bool allowTiles : {true, false}) {
    std::optional<MicroKernel> kernel = kernelFor(compute, *contraction, layout, target, allowTiles);
    if (!kernel)
      continue;
    ContractionNest nest{compute, *contraction, layout, *kernel, values, target};
    auto blocks = kernel->unit == StepUnit::tiles ? makeTileBlocks(builder, nest) : makeVectorBlocks(builder, nest);
    if (!blocks->canEmit())
      continue;
    blocks->emit();
    return true;
  }
  return false;
}

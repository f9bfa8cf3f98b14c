#include "passes/codegen/cpu/ContractionEmitter.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/codegen/cpu/ContractionLoops.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

FailureOr<bool> tilewright::emitContraction(OpBuilder &builder, ComputeOp compute, const IRMapping &values,
                                            const Target &target) {
  std::optional<Contraction> contraction = matchContraction(compute, OperandGuards::allowed);
  if (!contraction || contraction->rhs.getGuard())
    return false;
  KLayout layout = kLayout(compute, *contraction);
  auto stated = compute->getAttrOfType<BlockingAttr>(kBlockingAttr);
  for (bool allowTiles : {true, false}) {
    std::optional<MicroKernel> kernel = kernelFor(compute, *contraction, layout, target, allowTiles);
    if (!kernel)
      continue;
    ContractionNest nest{compute, *contraction, layout, *kernel, values, target};
    BlockedContraction blocked = blockedContraction(nest);
    // A choice for the micro kernel that the label names says nothing about another one in its place.
    bool isNamed = kernel->name == compute.getMicroKernel()->rsplit('-').first;
    BlockingChoice derived = chooseBlocking(blocked), blocking = stated && isNamed ? choiceOf(stated) : derived;
    auto blocks = kernel->unit == StepUnit::tiles ? makeTileBlocks(builder, nest, blocking)
                                                  : makeVectorBlocks(builder, nest, blocking);
    std::string why = whyNotBlocked(blocked, blocking);
    if (why.empty() && !blocks->canEmit())
      why = "its operands do not lie as blocks of this size are loaded";
    if (why.empty()) {
      blocks->emit();
      return true;
    }
    // Only this place knows if tile registers can be loaded, so other kernels may follow theirs.
    if (stated && isNamed && (kernel->unit == StepUnit::vector || stated != attrOf(derived, compute.getContext())))
      return compute.emitError("the contraction cannot be computed as '") << kBlockingAttr << "' states: " << why;
    stated = BlockingAttr();
  }
  return false;
}

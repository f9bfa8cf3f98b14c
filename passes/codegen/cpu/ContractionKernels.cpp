#include "passes/codegen/cpu/ContractionKernels.h"

#include "passes/graph/Contraction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

KLayout tilewright::kLayout(ComputeOp compute, Contraction contraction) {
  std::optional<PackedK> packing =
      packedK(contraction.rhs.getMap(), contraction.rhs.getSlice().getType().getShape(), contraction.n,
              compute.getExtents(), [&](int64_t dim) { return compute.isReduced(dim); });
  int64_t innermost = contraction.reduced.back();
  if (!packing)
    return {{1}, innermost};
  return {{packing->depth}, packing->dim < 0 ? innermost : packing->dim};
}

/// Returns true if the nest starts at a multiple of `depth` along K. It does if it starts at zero, or in a loop over K
/// whose blocks are whole steps.
static bool takesWholeSteps(ComputeOp compute, int64_t dim, int64_t depth) {
  auto own = llvm::find(compute.getOffsetDims(), dim);
  if (depth == 1 || (own == compute.getOffsetDims().end() && compute.getExtents()[dim] == compute.getSizes()[dim]))
    return true;
  if (own == compute.getOffsetDims().end() || compute.getSizes()[dim] % depth != 0)
    return false;
  Value offset = compute.getOffsets()[own - compute.getOffsetDims().begin()];
  auto argument = dyn_cast<BlockArgument>(offset);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && argument == loop.getInductionVar() && getConstantIntValue(loop.getLowerBound()) == 0 &&
         getConstantIntValue(loop.getStep()) == compute.getSizes()[dim];
}

std::optional<MicroKernel> tilewright::kernelFor(ComputeOp compute, const Contraction &contraction,
                                                 const KLayout &layout, const Target &target, bool allowTiles) {
  RhsLayout named = layout.rhs;
  named.tiles = allowTiles;
  auto found = findMicroKernel(target, contraction.types, named, *compute.getMicroKernel());
  if (found && takesWholeSteps(compute, layout.dim, found->stepK()))
    return found;
  auto quickest = chooseMicroKernel(target, contraction.types, layout.rhs, NumericsMode::standard);
  if (compute.getExtents()[layout.dim] == compute.getSizes()[layout.dim] ||
      (quickest && takesWholeSteps(compute, layout.dim, quickest->depth)))
    return quickest;
  for (StringRef generic : {"fma", "mul_add"})
    if (auto found = findMicroKernel(target, contraction.types, layout.rhs, generic); found && found->depth == 1)
      return found;
  return std::nullopt;
}

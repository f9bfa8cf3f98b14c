// Hides small constants from IREE where slices of them, or of what elementwise ops compute from them, are read. IREE
// 3.13 puts constants of up to 256 bytes into the kernels that read them and moves slices up to them. Its back end for
// CUDA then computes the whole of it outside the loop over workgroups, and refuses the result as not distributed. Behind
// an optimization barrier, the constant is a buffer like any other.
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {
#define GEN_PASS_DEF_HIDECONSTANTS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLargestInKernels = 256; ///< bytes of the largest constant that IREE puts into kernels

/// Returns true for a tensor of different elements that IREE puts into kernels.
bool isPutIntoKernels(arith::ConstantOp constant) {
  auto elements = dyn_cast<ElementsAttr>(constant.getValue());
  if (!elements || elements.isSplat() || !elements.getElementType().isIntOrFloat())
    return false;
  int64_t bytes = llvm::divideCeil(elements.getElementType().getIntOrFloatBitWidth(), 8);
  return elements.getNumElements() * bytes <= kLargestInKernels;
}

/// Returns true if IREE may move a slice of the result to the operands.
bool letsSlicesPass(Operation *op) {
  bool isReshape = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op);
  if (isReshape || OpTrait::hasElementwiseMappableTraits(op))
    return true;
  auto computation = dyn_cast<linalg::LinalgOp>(op);
  return computation && computation.getNumLoops() == computation.getNumParallelLoops();
}

/// Returns true if a slice of the tensor is taken, or of what it becomes on the way to one.
bool isSliced(Value tensor) {
  llvm::SetVector<Value> reached;
  reached.insert(tensor);
  for (size_t next = 0; next < reached.size(); ++next)
    for (Operation *reader : reached[next].getUsers()) {
      if (isa<tensor::ExtractSliceOp>(reader))
        return true;
      if (letsSlicesPass(reader))
        reached.insert_range(reader->getResults());
    }
  return false;
}

void hide(Value constant) {
  OpBuilder builder(constant.getContext());
  builder.setInsertionPointAfterValue(constant);
  OperationState state(constant.getLoc(), "util.optimization_barrier");
  state.addOperands(constant);
  state.addTypes(constant.getType());
  Operation *barrier = builder.create(state);
  constant.replaceAllUsesExcept(barrier->getResult(0), barrier);
}

struct HideConstants : tilewright::impl::HideConstantsBase<HideConstants> {
  void runOnOperation() override {
    SmallVector<Value> found;
    getOperation().walk([&](arith::ConstantOp constant) {
      if (isPutIntoKernels(constant) && isSliced(constant.getResult()))
        found.push_back(constant.getResult());
    });
    llvm::for_each(found, hide);
    numHidden += found.size();
  }
};
} // namespace

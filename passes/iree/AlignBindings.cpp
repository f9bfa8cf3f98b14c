// Kernels read and write whole vectors, so what they are given begins where these may. IREE aligns what it allocates,
// but binds a contiguous slice of a tensor, or a result's place in a larger one, as it lies. There it is made to copy.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {
#define GEN_PASS_DEF_ALIGNBINDINGS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr int64_t kGpuAccess = 16;    ///< bytes of a thread's widest access, and of an asynchronous copy
constexpr int64_t kCpuStreaming = 64; ///< bytes of the widest store past the caches, which traps elsewhere

bool isReshape(Operation *op) { return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op); }

/// Whether elements of the slice lie one after another in the tensor: otherwise IREE copies anyway.
bool isContiguous(ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  bool isInner = true; // all dims behind are whole
  for (size_t dim = shape.size(); dim-- > 0;) {
    if ((!isInner && sizes[dim] != 1) || (sizes[dim] != 1 && strides[dim] != 1))
      return false;
    isInner &= sizes[dim] == shape[dim];
  }
  return true;
}

/// Where bytes of a slice begin in its tensor; nothing if that is known at run time alone.
std::optional<int64_t> beginOf(RankedTensorType tensor, ArrayRef<int64_t> offsets) {
  int64_t elements = 0;
  for (auto [extent, offset] : llvm::zip(tensor.getShape(), offsets)) {
    if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(offset))
      return std::nullopt;
    elements = elements * extent + offset;
  }
  return elements * elementBytes(tensor.getElementType());
}

bool isAligned(std::optional<int64_t> begin, int64_t alignment) { return begin && *begin % alignment == 0; }

/// Whether IREE may bind the tensor at a place in another one that is not so aligned.
bool beginsUnaligned(Value tensor, int64_t alignment) {
  std::optional<int64_t> begin = 0;
  for (Operation *op = tensor.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      RankedTensorType source = slice.getSourceType();
      if (!isContiguous(source.getShape(), slice.getStaticSizes(), slice.getStaticStrides()))
        break;
      std::optional<int64_t> own = beginOf(source, slice.getStaticOffsets());
      begin = begin && own ? std::optional<int64_t>(*begin + *own) : std::nullopt;
    } else if (!isReshape(op)) {
      break;
    }
  }
  return !isAligned(begin, alignment);
}

/// Whether IREE may have the tensor made at a place of the op's result that is not so aligned.
bool endsUnaligned(OpOperand &use, int64_t alignment) {
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(use.getOwner())) {
    RankedTensorType whole = insert.getDestType();
    return use.get() == insert.getSource() &&
           isContiguous(whole.getShape(), insert.getStaticSizes(), insert.getStaticStrides()) &&
           !isAligned(beginOf(whole, insert.getStaticOffsets()), alignment);
  }
  auto concat = dyn_cast<tensor::ConcatOp>(use.getOwner());
  if (!concat)
    return false;
  ArrayRef<int64_t> piece = cast<RankedTensorType>(use.get().getType()).getShape();
  SmallVector<int64_t> offsets(piece.size(), 0), strides(piece.size(), 1);
  for (Value before : concat.getInputs().take_front(use.getOperandNumber()))
    offsets[concat.getDim()] += cast<RankedTensorType>(before.getType()).getDimSize(concat.getDim());
  return isContiguous(concat.getResultType().getShape(), piece, strides) &&
         !isAligned(beginOf(concat.getResultType(), offsets), alignment);
}

/// The tensor, where IREE does not see through to where it comes from or goes to.
Value behindBarrier(OpBuilder &builder, Value tensor) {
  OperationState state(tensor.getLoc(), "util.optimization_barrier");
  state.addOperands(tensor);
  state.addTypes(tensor.getType());
  return builder.create(state)->getResult(0);
}

struct AlignBindings : tilewright::impl::AlignBindingsBase<AlignBindings> {
  using AlignBindingsBase::AlignBindingsBase;

  void alignInputs(LaunchOp launch, int64_t alignment) {
    OpBuilder builder(launch);
    for (OpOperand &input : launch->getOpOperands())
      if (beginsUnaligned(input.get(), alignment)) {
        input.set(behindBarrier(builder, input.get()));
        ++numCopied;
      }
  }

  void alignResult(Value result, int64_t alignment) {
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      Operation *reader = use.getOwner();
      if (isReshape(reader)) {
        alignResult(reader->getResult(0), alignment);
      } else if (endsUnaligned(use, alignment)) {
        OpBuilder builder(reader);
        use.set(behindBarrier(builder, result));
        ++numCopied;
      }
    }
  }

  /// Any of the kernels: entry points only call what does.
  static bool storesPastCaches(ModuleOp kernels) {
    return kernels
        .walk([](LLVM::StoreOp store) {
          return store.getNontemporal() ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  void runOnOperation() override {
    auto kernels = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    if (!kernels)
      return;
    bool isGpu = kernels.lookupSymbol<gpu::GPUModuleOp>(kGpuModule) != nullptr;
    if (!isGpu && !storesPastCaches(kernels))
      return;
    getOperation().walk([&](LaunchOp launch) {
      if (isGpu)
        alignInputs(launch, kGpuAccess);
      for (Value result : launch.getResults())
        alignResult(result, isGpu ? kGpuAccess : kCpuStreaming);
    });
  }
};
} // namespace

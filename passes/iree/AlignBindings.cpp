// Aligns the bindings of kernels, which read and write whole vectors. IREE aligns its allocations, but it binds a
// contiguous slice of a tensor, or the region of a larger tensor that a result becomes, without a copy. An optimization
// barrier makes IREE copy wherever that region may be unaligned.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/target/AccessBytes.h"

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
constexpr int64_t kCpuStreaming = 64; ///< bytes of the widest store past the caches, which traps elsewhere

bool isReshape(Operation *op) { return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op); }

/// Returns true if the slice is contiguous in its tensor. If it is not, IREE copies anyway.
bool isContiguous(ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  bool isInner = true; // all dims behind are whole
  for (size_t dim = shape.size(); dim-- > 0;) {
    if ((!isInner && sizes[dim] != 1) || (sizes[dim] != 1 && strides[dim] != 1))
      return false;
    isInner &= sizes[dim] == shape[dim];
  }
  return true;
}

/// Returns the byte offset of a slice in its tensor up to multiples of `alignment`, or nothing if it is known only at
/// run time. An offset along a dim whose points are such multiples apart, such as the step of a sequence, may be any.
std::optional<int64_t> beginOf(RankedTensorType tensor, ArrayRef<int64_t> offsets, int64_t alignment) {
  int64_t bytes = 0, apart = elementBytes(tensor.getElementType());
  for (auto [extent, offset] : llvm::zip(llvm::reverse(tensor.getShape()), llvm::reverse(offsets))) {
    if (ShapedType::isDynamic(extent) || (ShapedType::isDynamic(offset) && apart % alignment != 0))
      return std::nullopt;
    bytes += ShapedType::isDynamic(offset) ? 0 : apart * offset;
    apart *= extent;
  }
  return bytes;
}

bool isAligned(std::optional<int64_t> begin, int64_t alignment) { return begin && *begin % alignment == 0; }

/// Returns true if IREE may bind the tensor at an unaligned offset of another tensor.
bool beginsUnaligned(Value tensor, int64_t alignment) {
  std::optional<int64_t> begin = 0;
  for (Operation *op = tensor.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      RankedTensorType source = slice.getSourceType();
      if (!isContiguous(source.getShape(), slice.getStaticSizes(), slice.getStaticStrides()))
        break;
      std::optional<int64_t> own = beginOf(source, slice.getStaticOffsets(), alignment);
      begin = begin && own ? std::optional<int64_t>(*begin + *own) : std::nullopt;
    } else if (!isReshape(op)) {
      break;
    }
  }
  return !isAligned(begin, alignment);
}

/// Returns true if IREE may compute the tensor in place at an unaligned offset of the op's result.
bool endsUnaligned(OpOperand &use, int64_t alignment) {
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(use.getOwner())) {
    RankedTensorType whole = insert.getDestType();
    return use.get() == insert.getSource() &&
           isContiguous(whole.getShape(), insert.getStaticSizes(), insert.getStaticStrides()) &&
           !isAligned(beginOf(whole, insert.getStaticOffsets(), alignment), alignment);
  }
  auto concat = dyn_cast<tensor::ConcatOp>(use.getOwner());
  if (!concat)
    return false;
  ArrayRef<int64_t> piece = cast<RankedTensorType>(use.get().getType()).getShape();
  SmallVector<int64_t> offsets(piece.size(), 0), strides(piece.size(), 1);
  for (Value before : concat.getInputs().take_front(use.getOperandNumber()))
    offsets[concat.getDim()] += cast<RankedTensorType>(before.getType()).getDimSize(concat.getDim());
  return isContiguous(concat.getResultType().getShape(), piece, strides) &&
         !isAligned(beginOf(concat.getResultType(), offsets, alignment), alignment);
}

/// Returns the tensor behind an optimization barrier, which hides its producer from its readers and the reverse.
Value behindBarrier(OpBuilder &builder, Value tensor) {
  OperationState state(tensor.getLoc(), "util.optimization_barrier");
  state.addOperands(tensor);
  state.addTypes(tensor.getType());
  return builder.create(state)->getResult(0);
}

struct AlignBindings : tilewright::impl::AlignBindingsBase<AlignBindings> {
  using AlignBindingsBase::AlignBindingsBase;

  /// Returns the number of inputs that are copied.
  static int64_t alignInputs(LaunchOp launch, int64_t alignment) {
    OpBuilder builder(launch);
    int64_t copied = 0;
    for (OpOperand &input : launch->getOpOperands())
      if (beginsUnaligned(input.get(), alignment)) {
        input.set(behindBarrier(builder, input.get()));
        ++copied;
      }
    return copied;
  }

  /// Returns the number of uses for which the result is copied.
  static int64_t alignResult(Value result, int64_t alignment) {
    int64_t copied = 0;
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      Operation *reader = use.getOwner();
      if (isReshape(reader)) {
        copied += alignResult(reader->getResult(0), alignment);
      } else if (endsUnaligned(use, alignment)) {
        OpBuilder builder(reader);
        use.set(behindBarrier(builder, result));
        ++copied;
      }
    }
    return copied;
  }

  /// Returns true if any function of the kernel module has non-temporal stores. All functions are searched, because
  /// entry points only call those that store.
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
      return markAllAnalysesPreserved();
    bool isOnDevice = kernels.lookupSymbol<gpu::GPUModuleOp>(kGpuModule) != nullptr;
    if (!isOnDevice && !storesPastCaches(kernels))
      return markAllAnalysesPreserved();
    int64_t copied = 0;
    getOperation().walk([&](LaunchOp launch) {
      if (isOnDevice)
        copied += alignInputs(launch, kAccessBytes);
      for (Value result : launch.getResults())
        copied += alignResult(result, isOnDevice ? kAccessBytes : kCpuStreaming);
    });
    numCopied += copied;
    if (copied == 0)
      markAllAnalysesPreserved();
  }
};
} // namespace

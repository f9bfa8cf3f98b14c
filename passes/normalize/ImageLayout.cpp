#include "passes/normalize/ImageLayout.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

/// Most ops that a prediction looks at.
static constexpr unsigned kMostOps = 64;

bool tilewright::keepsAnyLayout(Operation *op) {
  return isa_and_nonnull<linalg::LinalgOp, tensor::PadOp, tensor::ConcatOp, tensor::InsertSliceOp,
                         tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

bool tilewright::hasChannelsLast(Value image, ArrayRef<Value> results) {
  llvm::SetVector<Value> open;
  open.insert(image);
  for (unsigned next = 0; next < open.size() && next < kMostOps; ++next) {
    if (llvm::is_contained(results, open[next]))
      return true;
    if (Operation *made = open[next].getDefiningOp(); keepsAnyLayout(made))
      open.insert_range(made->getOperands());
  }
  return false;
}

/// Returns true if a convolution or a pool reads a value, possibly behind ops that keep its layout.
static bool reachesConvolution(Value value) {
  llvm::SetVector<Value> open;
  open.insert(value);
  for (unsigned next = 0; next < open.size() && next < kMostOps; ++next)
    for (Operation *user : open[next].getUsers()) {
      auto reader = dyn_cast<linalg::LinalgOp>(user);
      if (reader && linalg::isaConvolutionOpInterface(reader))
        return true;
      if (keepsAnyLayout(user))
        open.insert_range(user->getResults());
    }
  return open.size() >= kMostOps;
}

/// Name of the attribute of named convolutions that holds their strides.
static constexpr StringRef kStrides = "strides";

static bool hasStride(const linalg::ConvolutionDimensions &dims) {
  return !llvm::all_of(dims.strides, [](int64_t stride) { return stride == 1; });
}

bool tilewright::isMatmulOfImage(linalg::LinalgOp op, const CpuCosts &costs) {
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (failed(dims) || dims->inputChannel.size() != 1 || dims->outputChannel.size() != 1 || !dims->depth.empty() ||
      dims->outputImage.empty() || !llvm::all_of(dims->filterLoop, [&](unsigned dim) { return sizes[dim] == 1; }) ||
      (hasStride(*dims) && !op->hasAttr(kStrides)))
    return false;
  int64_t points = 1;
  for (unsigned dim : dims->outputImage)
    points *= sizes[dim];
  AffineExpr last = op.getIndexingMapsArray()[2].getResults().back();
  return points >= costs.pointsInLanes && last == getAffineDimExpr(dims->outputImage.back(), op.getContext());
}

linalg::LinalgOp tilewright::withoutStride(linalg::LinalgOp op) {
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  if (failed(dims) || !hasStride(*dims))
    return op;
  OpBuilder builder(op);
  Value image = op->getOperand(0);
  auto type = cast<RankedTensorType>(image.getType());
  SmallVector<int64_t> loops = op.getStaticLoopRanges(), sizes(type.getShape()), steps(type.getRank(), 1);
  for (auto [position, index] : llvm::enumerate(op.getIndexingMapsArray()[0].getResults()))
    for (auto [dim, stride] : llvm::zip(dims->outputImage, dims->strides))
      if (index.isFunctionOfDim(dim))
        std::tie(sizes[position], steps[position]) = std::pair(loops[dim], stride);
  SmallVector<OpFoldResult> from(type.getRank(), builder.getIndexAttr(0));
  Value slice = tensor::ExtractSliceOp::create(builder, op.getLoc(), image, from,
                                               getAsIndexOpFoldResult(op.getContext(), sizes),
                                               getAsIndexOpFoldResult(op.getContext(), steps));
  auto plain = cast<linalg::LinalgOp>(builder.clone(*op));
  plain->setOperand(0, slice);
  plain->removeAttr(linalg::LinalgDialect::kMemoizedIndexingMapsAttrName); // they have the stride
  auto old = op->getAttrOfType<DenseIntElementsAttr>(kStrides);
  plain->setAttr(kStrides, DenseIntElementsAttr::get(old.getType(), APInt(64, 1)));
  return plain;
}

bool tilewright::joinsConvolutions(linalg::LinalgOp op, ArrayRef<Value> results) {
  return hasChannelsLast(op->getOperand(0), results) || reachesConvolution(op->getResult(0));
}

bool tilewright::sumsOverChannels(linalg::LinalgOp op) {
  if (!linalg::isaConvolutionOpInterface(op) || op.hasDynamicShape())
    return false;
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  return succeeded(dims) && !dims->inputChannel.empty();
}

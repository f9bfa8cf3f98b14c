#include "passes/normalize/ImageRegions.h"

#include "passes/normalize/ImageLayout.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

/// Returns true if an image lies as what the op reads: it is not summed up with weights.
static bool followsLayout(Operation &op) {
  if (!keepsAnyLayout(&op))
    return false;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return !structured || structured.getNumReductionLoops() == 0 || structured.getNumDpsInputs() == 1 ||
         linalg::isaConvolutionOpInterface(structured); // depthwise, or a pool
}

static bool isViewOrPad(Operation *op) {
  return isa_and_nonnull<tensor::PadOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op);
}

/// Returns the dims, those of `isChannel` behind the others.
static SmallVector<int64_t> lastOf(ArrayRef<bool> isChannel) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, isChannel.size()));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return !isChannel[a] && isChannel[b]; });
  return order;
}

/// Returns for each dim of a tensor whether one of the loops runs along it.
static SmallVector<bool> dimsAlong(AffineMap map, ArrayRef<unsigned> loops) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr index) {
    return llvm::any_of(loops, [&](unsigned loop) { return index.isFunctionOfDim(loop); });
  });
}

/// Returns for each dim of an op's source whether it is one of channels, given that of its result.
static SmallVector<bool> inSourceOf(Operation *op, SmallVector<bool> isChannel) {
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return llvm::map_to_vector(expand.getReassociationIndices(), [&](const ReassociationIndices &group) {
      return llvm::all_of(group, [&](int64_t dim) -> bool { return isChannel[dim]; });
    });
  auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
  if (!collapse)
    return isChannel;
  SmallVector<bool> source(collapse.getSrcType().getRank());
  for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices()))
    for (int64_t each : group)
      source[each] = isChannel[dim];
  return source;
}

SmallVector<int64_t> ImageRead::channelsLast() const {
  linalg::ConvolutionDimensions dims = *linalg::inferConvolutionDims(reader);
  SmallVector<unsigned, 2> loops(dims.inputChannel);
  loops.append(dims.depth.begin(), dims.depth.end());
  SmallVector<bool> isChannel = dimsAlong(linalg::LinalgOp(reader).getIndexingMapsArray()[0], loops);
  for (Operation *op : llvm::reverse(behind))
    isChannel = inSourceOf(op, isChannel);
  return lastOf(isChannel);
}

SmallVector<int64_t> tilewright::channelsLastInResult(linalg::LinalgOp convolution) {
  linalg::ConvolutionDimensions dims = *linalg::inferConvolutionDims(convolution);
  SmallVector<unsigned, 2> loops(dims.outputChannel);
  loops.append(dims.depth.begin(), dims.depth.end());
  return lastOf(dimsAlong(convolution.getIndexingMapsArray()[2], loops));
}

/// Returns the image that a convolution reads. Its regions are set later.
static ImageRead readOf(linalg::LinalgOp convolution) {
  ImageRead read{convolution, 0, convolution->getOperand(0), {}, std::nullopt};
  for (Operation *made = read.image.getDefiningOp(); isViewOrPad(made); made = read.image.getDefiningOp()) {
    read.behind.insert(read.behind.begin(), made);
    read.image = made->getOperand(0);
  }
  return read;
}

ImageRegions tilewright::findImageRegions(Block &block) {
  SmallVector<Operation *> ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  llvm::DenseMap<Operation *, unsigned> number;
  llvm::IntEqClasses classes(ops.size());
  SmallVector<linalg::LinalgOp> convolutions;
  llvm::DenseMap<Operation *, bool> isJoined;
  SmallVector<Value> results;
  auto isOfImages = [&](Operation *op) { return op && number.contains(op); };
  for (auto [id, op] : llvm::enumerate(ops)) {
    if (auto structured = dyn_cast<linalg::LinalgOp>(op); structured && sumsOverChannels(structured)) {
      number[op] = id;
      isJoined[op] = joinsConvolutions(structured, results);
      convolutions.push_back(structured);
      results.push_back(op->getResult(0));
      continue;
    }
    if (!followsLayout(*op))
      continue;
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    for (Value value : read)
      if (Operation *made = value.getDefiningOp(); isOfImages(made)) {
        number[op] = id;
        classes.join(id, number[made]);
      }
  }
  classes.compress();

  ImageRegions found;
  llvm::DenseMap<unsigned, unsigned> regionOfClass;
  for (auto [id, op] : llvm::enumerate(ops))
    if (isOfImages(op)) {
      auto [known, isNew] = regionOfClass.try_emplace(classes[id], found.regions.size());
      if (isNew)
        found.regions.emplace_back();
      found.regionOf[op] = known->second;
    }
  for (linalg::LinalgOp convolution : convolutions) {
    ImageRead &read = found.reads.emplace_back(readOf(convolution));
    read.into = found.regionOf.lookup(convolution);
    if (auto from = found.regionOf.find(read.image.getDefiningOp()); from != found.regionOf.end())
      read.from = from->second;
    found.regions[read.into].convolutions.push_back(convolution);
    if (isJoined.lookup(convolution))
      found.regions[read.into].joined.push_back(convolution);
  }
  return found;
}

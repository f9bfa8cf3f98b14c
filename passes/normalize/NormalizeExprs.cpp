// What upstream's folding knows and a fused kernel would otherwise carry along: results nobody reads (the index half of
// an argmax-style reduction) and operands no body reads. Assertions inside bodies go too: a kernel has no way to report
// them, and IREE drops them in its dispatches as well. An operation without points, such as a product along a dim of
// length zero, gives what its results begin with: IREE's compiler divides by the length.
// Batch dims that a front end laid together for a matmul are kept apart (BatchDims.h), and reductions that it takes dim
// by dim are one (MergeReductions.h). Slices of a reshaped tensor are reshaped slices of the tensor. Copies that add
// dims of length one are reshapes.
#include "passes/Passes.h"
#include "passes/graph/TensorExpr.h"
#include "passes/normalize/BatchDims.h"
#include "passes/normalize/MergeReductions.h"
#include "passes/normalize/ExtractedScalars.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_NORMALIZEEXPRS
#include "passes/Passes.h.inc"

namespace {
class NormalizeExprs : public impl::NormalizeExprsBase<NormalizeExprs> {
  void dropAssertions() {
    getOperation()->walk([](cf::AssertOp op) {
      if (isa<linalg::GenericOp>(op->getParentOp()))
        op->erase();
    });
  }

  void foldWithoutPoints() {
    SmallVector<linalg::LinalgOp> found;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureTensorSemantics() && llvm::is_contained(op.getStaticLoopRanges(), 0))
        found.push_back(op);
    });
    for (linalg::LinalgOp op : found) {
      op->replaceAllUsesWith(op.getDpsInits());
      op->erase();
    }
  }

  /// Constants that are rounded outside of any body, such as the double that pads a pool of floats: IREE, which keeps
  /// them, cannot compute the rounding.
  void foldScalars() {
    getOperation().walk([](arith::TruncFOp op) {
      FloatAttr constant;
      auto type = dyn_cast<FloatType>(op.getType());
      if (!type || !matchPattern(op.getIn(), m_Constant(&constant)))
        return;
      APFloat value = constant.getValue();
      bool losesInfo;
      value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      OpBuilder builder(op);
      op.replaceAllUsesWith(arith::ConstantOp::create(builder, op.getLoc(), FloatAttr::get(type, value)).getResult());
      op.erase();
    });
  }

  /// Copies that only add dims of length one, such as those of a weight for a product of one matrix, are reshapes: then
  /// a parameter stays one.
  void expandInsteadOfCopying() {
    SmallVector<linalg::GenericOp> copies;
    getOperation()->walk([&](linalg::GenericOp op) { copies.push_back(op); });
    for (linalg::GenericOp copy : copies) {
      std::optional<SmallVector<ReassociationIndices>> groups = addedOnes(copy);
      if (!groups)
        continue;
      OpBuilder builder(copy);
      copy.replaceAllUsesWith(
          ValueRange{tensor::ExpandShapeOp::create(builder, copy.getLoc(), copy.getResult(0).getType(),
                                                   copy.getInputs()[0], *groups)
                         .getResult()});
      copy.erase();
    }
  }

  /// The dims of the copy that each dim of what it copies becomes, with the ones beside it. Nothing if it does more.
  static std::optional<SmallVector<ReassociationIndices>> addedOnes(linalg::GenericOp op) {
    if (op.getInputs().size() != 1 || op.getOutputs().size() != 1 || op.getNumReductionLoops() > 0 ||
        !op.hasPureTensorSemantics())
      return std::nullopt;
    auto from = dyn_cast<RankedTensorType>(op.getInputs()[0].getType());
    auto to = cast<RankedTensorType>(op.getResult(0).getType());
    auto yielded = dyn_cast<BlockArgument>(op.getBody()->getTerminator()->getOperand(0));
    AffineMap map = op.getIndexingMapsArray()[0];
    if (!from || !from.hasStaticShape() || !to.hasStaticShape() || from.getRank() == to.getRank() ||
        from.getNumElements() != to.getNumElements() || !yielded || yielded.getArgNumber() != 0 ||
        !op.getIndexingMapsArray()[1].isIdentity() || !map.isProjectedPermutation())
      return std::nullopt;
    SmallVector<ReassociationIndices> groups;
    int64_t next = 0;
    for (unsigned i = 0; i < map.getNumResults(); ++i) {
      int64_t last = map.getDimPosition(i);
      if (last < next)
        return std::nullopt;
      ReassociationIndices &group = groups.emplace_back();
      for (; next <= last; ++next)
        group.push_back(next);
    }
    for (; next < to.getRank() && !groups.empty(); ++next)
      groups.back().push_back(next);
    return groups;
  }

  /// In front of a reshape, a slice reads what was computed: a kernel that computes it can write the slices, too. Where
  /// movement is reshaped, readers compose indices in either order.
  void sliceBeforeReshapes() {
    SmallVector<tensor::ExtractSliceOp> slices;
    getOperation()->walk([&](tensor::ExtractSliceOp op) { slices.push_back(op); });
    for (tensor::ExtractSliceOp slice : slices) {
      auto expand = slice.getSource().getDefiningOp<tensor::ExpandShapeOp>();
      if (!expand || slice.getType().getRank() != slice.getSourceType().getRank() ||
          !isa_and_nonnull<linalg::LinalgOp>(expand.getSrc().getDefiningOp()) ||
          expand.getSrc().getDefiningOp<linalg::TransposeOp>())
        continue;
      if (std::optional<SmallVector<Range>> ranges = rangesBefore(expand, slice)) {
        OpBuilder builder(slice);
        auto before = tensor::ExtractSliceOp::create(builder, slice.getLoc(), expand.getSrc(), *ranges);
        slice.replaceAllUsesWith(tensor::ExpandShapeOp::create(builder, expand.getLoc(), slice.getType(), before,
                                                               expand.getReassociationIndices())
                                     .getResult());
        slice.erase();
        if (expand->use_empty())
          expand.erase();
      }
    }
  }

  /// What the slice takes of the tensor before it is expanded. Nothing unless it takes all of every dim that is cut
  /// into several, dims of length one aside.
  static std::optional<SmallVector<Range>> rangesBefore(tensor::ExpandShapeOp expand, tensor::ExtractSliceOp slice) {
    ArrayRef<int64_t> offsets = slice.getStaticOffsets(), sizes = slice.getStaticSizes();
    ArrayRef<int64_t> shape = expand.getType().getShape();
    if (!slice.hasUnitStride() || llvm::any_of(offsets, ShapedType::isDynamic) || !slice.getType().hasStaticShape() ||
        !expand.getType().hasStaticShape())
      return std::nullopt;
    Builder builder(expand.getContext());
    auto attr = [&](int64_t value) { return builder.getIndexAttr(value); };
    SmallVector<Range> ranges;
    for (const ReassociationIndices &dims : expand.getReassociationIndices()) {
      int64_t offset = 0, size = 1, longer = 0;
      bool isWhole = true;
      for (int64_t dim : dims) {
        size *= sizes[dim];
        isWhole &= sizes[dim] == shape[dim];
        longer += shape[dim] != 1;
        offset = shape[dim] != 1 ? offsets[dim] : offset;
      }
      if (!isWhole && longer > 1)
        return std::nullopt;
      ranges.push_back({attr(isWhole ? 0 : offset), attr(size), attr(1)});
    }
    return ranges;
  }

  void runOnOperation() override {
    dropAssertions();
    foldScalars();
    foldWithoutPoints();
    expandInsteadOfCopying();
    keepBatchDimsApart(getOperation());
    takeScalarsInside(getOperation());
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    GreedyRewriteConfig config;
    // Only what the patterns match: ops we do not know are not ours to simplify or to order anew.
    config.enableFolding(false).enableConstantCSE(false).setRegionSimplificationLevel(
        GreedySimplifyRegionLevel::Disabled);
    SmallVector<Operation *> generics;
    getOperation()->walk([&](linalg::GenericOp op) {
      FailureOr<TensorExpr> expr = describe(op);
      if (failed(expr) || expr->kind != ExprKind::contraction)
        generics.push_back(op);
    });
    config.setScope(&getOperation().getBody()).setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    if (getOperation().getBody().empty())
      return;
    if (failed(applyOpPatternsGreedily(generics, std::move(patterns), config)))
      return signalPassFailure();
    sliceBeforeReshapes();
    mergeReductions(getOperation());
  }
};
} // namespace
} // namespace tilewright

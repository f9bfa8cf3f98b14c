// Simplifies expressions where the simpler form is always right. Upstream patterns erase results that nobody reads (the
// index half of an argmax-style reduction) and operands that no body reads, which a fused kernel would otherwise carry
// along. Assertions inside bodies are erased, because a kernel cannot report them; IREE drops them in its dispatches as
// well. An op without points, such as a matmul with K = 0, is replaced by its init, because IREE's compiler divides by
// the length. Elements that a body extracts at known places become operands (KnownExtracts.h), and running sums, sorts
// and scatters become reductions (ExpandScans.h, ExpandSorts.h, ExpandScatters.h). Collapsed batch dims of matmuls are
// restored (BatchDims.h), and reductions of one dim after another are merged (MergeReductions.h).
#include "passes/Passes.h"
#include "passes/graph/TensorExpr.h"
#include "passes/normalize/BatchDims.h"
#include "passes/normalize/ExpandScans.h"
#include "passes/normalize/ExpandScatters.h"
#include "passes/normalize/ExpandSorts.h"
#include "passes/normalize/ExtractedScalars.h"
#include "passes/normalize/KnownExtracts.h"
#include "passes/normalize/MergeReductions.h"
#include "passes/normalize/SplitResults.h"
#include "passes/target/TargetOrError.h"

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
  using NormalizeExprsBase::NormalizeExprsBase;

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

  /// Folds roundings of constants outside of any body, such as the double that pads a pool of floats. They stay with
  /// IREE, which cannot compute the rounding.
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

  /// Replaces copies that only add unit dims, such as that of a weight for a batched matmul of one matrix, by reshapes,
  /// so that a parameter stays a parameter.
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

  /// Returns, for each source dim of a copy, the dims of the result that it becomes: itself and neighbouring unit dims.
  /// Returns nothing if the op does more than add unit dims.
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

  /// Moves slices in front of reshapes of computed tensors, so that the kernel that computes the tensor can write the
  /// slices, too. If the reshaped tensor is movement, readers compose the indices in either order.
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

  /// Returns the slice of the tensor before it is expanded, or nothing. A dim that is expanded into several non-unit
  /// dims must be taken as a whole.
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

  /// Moves constant tensors out of bodies. Upstream patterns move those that a body extracts elements from into it, where
  /// they would be no operands of the expression.
  void moveTablesOutside() {
    getOperation()->walk([](arith::ConstantOp op) {
      if (isa<TensorType>(op.getType()) && isa<linalg::GenericOp>(op->getParentOp()))
        op->moveBefore(op->getParentOp());
    });
  }

  void runOnOperation() override {
    CommonCosts costs;
    if (!target.empty()) {
      FailureOr<Target> known = targetOrError(getOperation(), target);
      if (failed(known))
        return signalPassFailure();
      costs = known->costs.common;
    }
    dropAssertions();
    foldScalars();
    foldWithoutPoints();
    expandInsteadOfCopying();
    splitResults(getOperation());
    keepBatchDimsApart(getOperation());
    takeScalarsInside(getOperation());
    readKnownExtracts(getOperation());
    expandScans(getOperation(), costs);
    expandSorts(getOperation());
    expandScatters(getOperation(), costs);
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    GreedyRewriteConfig config;
    // Change only what the patterns match, and neither simplify nor reorder ops that we do not know.
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
    moveTablesOutside();
    sliceBeforeReshapes();
    mergeReductions(getOperation());
  }
};
} // namespace
} // namespace tilewright

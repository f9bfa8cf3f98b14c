// Horizontal transformation (Souffle 6.1): merges independent contractions of the same tensor into one with
// concatenated weights, together with the elementwise ops that follow all of them alike. Readers get their part as a
// slice, which a kernel reads through an index map. HorizontalMerge.h decides what is merged.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Form.h"
#include "passes/graph/FormPass.h"
#include "passes/graph/GraphPass.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/normalize/forms/HorizontalMerge.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_MERGECONTRACTIONS
#include "passes/Passes.h.inc"

namespace {

/// Replaces a dim of columns by heads (if there are several), slots and width.
class ColumnSplit {
public:
  explicit ColumnSplit(const ColumnLayout &columns) : columns(columns) {}

  bool hasHeads() const { return columns.heads > 1; }
  unsigned numDims() const { return hasHeads() ? 3 : 2; }
  int64_t slotDim() const { return hasHeads() ? 1 : 0; }

  /// Returns the shape with dim `axis` split into heads, `slots` slots and width.
  SmallVector<int64_t> shape(ArrayRef<int64_t> shape, int64_t axis, int64_t slots) const {
    SmallVector<int64_t> split(shape.take_front(axis));
    if (hasHeads())
      split.push_back(columns.heads);
    split.append({slots, columns.width});
    llvm::append_range(split, shape.drop_front(axis + 1));
    return split;
  }

  /// Returns the map over the domain with dim `loop` split, into a tensor that is split wherever it has the dim as
  /// index.
  AffineMap map(AffineMap map, int64_t loop) const {
    MLIRContext *context = map.getContext();
    auto shifted = [&](int64_t dim) { return getAffineDimExpr(dim < loop ? dim : dim + numDims() - 1, context); };
    SmallVector<AffineExpr> indices;
    for (AffineExpr index : map.getResults()) {
      int64_t dim = pureDim(index);
      if (dim == loop)
        for (unsigned i = 0; i < numDims(); ++i)
          indices.push_back(getAffineDimExpr(loop + i, context));
      else
        indices.push_back(dim < 0 ? index : shifted(dim));
    }
    return AffineMap::get(map.getNumDims() + numDims() - 1, 0, indices, context);
  }

  /// Returns, for each dim of a tensor of `rank` dims, its dims in the split tensor.
  SmallVector<ReassociationIndices> reassociation(int64_t rank, int64_t axis) const {
    SmallVector<ReassociationIndices> groups(rank);
    int64_t next = 0;
    for (auto [dim, group] : llvm::enumerate(groups))
      for (unsigned i = 0, n = static_cast<int64_t>(dim) == axis ? numDims() : 1; i < n; ++i)
        group.push_back(next++);
    return groups;
  }

private:
  const ColumnLayout &columns;
};

class Merger {
public:
  Merger(const TensorGraph &graph, const HorizontalMerge &merge)
      : graph(graph), merge(merge), split(merge.columns), first(opOf(merge.contractions.front())), builder(first) {}

  void apply() {
    const TensorExpr &expr = graph.exprs()[merge.contractions.front()];
    ContractionRoles roles = *contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
    SmallVector<Value> parts;
    for (unsigned id : merge.contractions)
      parts.push_back(opOf(id)->getResult(0));
    Value merged = mergeContractions(roles);
    int64_t axis = resultAxis(first, roles.n);
    for (ArrayRef<unsigned> step : merge.epilogue) {
      StepInput input = *stepInput(opOf(step.front()), parts.front(), axis);
      merged = mergeStep(step, input, merged);
      axis = resultAxis(opOf(step.front()), input.loop);
      for (auto [part, id] : llvm::zip(parts, step))
        part = opOf(id)->getResult(0);
    }
    int64_t slot = 0;
    for (auto [part, slots] : llvm::zip(parts, merge.columns.slots)) {
      part.replaceAllUsesWith(slice(merged, cast<RankedTensorType>(part.getType()), axis, slot, slots));
      slot += slots;
    }
    eraseParts();
  }

private:
  linalg::LinalgOp opOf(unsigned id) const { return cast<linalg::LinalgOp>(graph.exprs()[id].op); }

  Value mergeContractions(const ContractionRoles &roles) {
    SmallVector<Value> weights;
    AffineMap weightMap;
    for (unsigned id : merge.contractions) {
      TensorAccess access = throughCopies(graph.exprs()[id].inputs[roles.rhsInput]);
      weights.push_back(access.tensor);
      weightMap = access.map;
    }
    int64_t axis = llvm::find_if(weightMap.getResults(), [&](AffineExpr index) { return pureDim(index) == roles.n; }) -
                   weightMap.getResults().begin();
    const TensorExpr &expr = graph.exprs()[merge.contractions.front()];
    SmallVector<Value> inputs = first.getDpsInputs();
    SmallVector<AffineMap> maps = first.getIndexingMapsArray();
    unsigned operand = expr.inputs[roles.rhsInput].operand;
    inputs[operand] = sideBySide(first.getLoc(), weights, axis);
    maps[operand] = weightMap;
    return rebuild(first, inputs, maps, roles.n);
  }

  Value mergeStep(ArrayRef<unsigned> step, StepInput input, Value merged) {
    linalg::LinalgOp op = opOf(step.front());
    SmallVector<Value> inputs = op.getDpsInputs();
    for (auto [operand, value] : llvm::enumerate(inputs)) {
      AffineMap map = op.getIndexingMapsArray()[operand];
      auto axis = llvm::find_if(map.getResults(), [&](AffineExpr index) { return pureDim(index) == input.loop; });
      if (operand == input.operand) {
        value = merged;
      } else if (axis != map.getResults().end()) {
        SmallVector<Value> pieces;
        for (unsigned id : step)
          pieces.push_back(opOf(id)->getOperand(operand));
        value = sideBySide(op.getLoc(), pieces, axis - map.getResults().begin());
        // tile-pack-weights lays out and marks operands of contractions only. This operand already has its final
        // layout.
        value.getDefiningOp()->setAttr(kPackedWeightAttr, builder.getUnitAttr());
      } else {
        moveUp(value);
      }
    }
    return rebuild(op, inputs, op.getIndexingMapsArray(), input.loop);
  }

  /// Concatenates the columns, along `axis`, of tensors that are known at load.
  Value sideBySide(Location loc, ArrayRef<Value> tensors, int64_t axis) {
    SmallVector<Value> pieces;
    for (auto [tensor, slots] : llvm::zip(tensors, merge.columns.slots)) {
      moveUp(tensor);
      auto type = cast<RankedTensorType>(tensor.getType());
      pieces.push_back(tensor::ExpandShapeOp::create(builder, tensor.getLoc(),
                                                     type.clone(split.shape(type.getShape(), axis, slots)), tensor,
                                                     split.reassociation(type.getRank(), axis)));
    }
    return tensor::ConcatOp::create(builder, loc, axis + split.slotDim(), pieces);
  }

  /// Rebuilds an op as a linalg.generic in which the columns, at `loop`, are split.
  Value rebuild(linalg::LinalgOp op, ArrayRef<Value> inputs, ArrayRef<AffineMap> maps, int64_t loop) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto shape = split.shape(type.getShape(), resultAxis(op, loop), merge.columns.allSlots());
    SmallVector<AffineMap> splitMaps = llvm::map_to_vector(maps, [&](AffineMap map) { return split.map(map, loop); });
    SmallVector<utils::IteratorType> loops = op.getIteratorTypesArray();
    loops.insert(loops.begin() + loop, split.numDims() - 1, utils::IteratorType::parallel);
    Value init = tensor::EmptyOp::create(builder, op.getLoc(), shape, type.getElementType());
    if (op.getNumReductionLoops() > 0) {
      Value element = arith::ConstantOp::create(builder, op.getLoc(), constantElement(op.getDpsInits()[0]));
      init = linalg::FillOp::create(builder, op.getLoc(), element, init).getResult(0);
    }
    auto generic = linalg::GenericOp::create(builder, op.getLoc(), init.getType(), inputs, init, splitMaps, loops);
    IRMapping mapping;
    op->getRegion(0).cloneInto(&generic.getRegion(), mapping);
    if (Attribute form = op->getAttr(kFormAttr))
      generic->setAttr(kFormAttr, form);
    return generic.getResult(0);
  }

  /// Returns the columns of one contraction in the shape of its result.
  Value slice(Value merged, RankedTensorType type, int64_t axis, int64_t slot, int64_t slots) {
    auto from = cast<RankedTensorType>(merged.getType());
    SmallVector<OpFoldResult> offsets(from.getRank(), builder.getIndexAttr(0)),
        strides(from.getRank(), builder.getIndexAttr(1)),
        sizes = llvm::map_to_vector(from.getShape(),
                                    [&](int64_t size) -> OpFoldResult { return builder.getIndexAttr(size); });
    offsets[axis + split.slotDim()] = builder.getIndexAttr(slot);
    sizes[axis + split.slotDim()] = builder.getIndexAttr(slots);
    SmallVector<int64_t> shape = split.shape(type.getShape(), axis, slots);
    Value piece =
        tensor::ExtractSliceOp::create(builder, merged.getLoc(), from.clone(shape), merged, offsets, sizes, strides);
    return tensor::CollapseShapeOp::create(builder, merged.getLoc(), type, piece,
                                           split.reassociation(type.getRank(), axis));
  }

  /// Moves ops that compute a value known at load in front of the first contraction, where the merged op is created.
  void moveUp(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != first->getBlock() || op->isBeforeInBlock(first))
      return;
    for (Value operand : op->getOperands())
      moveUp(operand);
    op->moveBefore(first);
  }

  void eraseParts() {
    for (ArrayRef<unsigned> step : llvm::reverse(merge.epilogue))
      for (unsigned id : step)
        opOf(id).erase();
    for (unsigned id : merge.contractions) {
      SmallVector<Value> inputs = opOf(id).getDpsInputs();
      opOf(id).erase();
      for (Value input : inputs)
        eraseUnusedProducers(input);
    }
  }

  const TensorGraph &graph;
  const HorizontalMerge &merge;
  ColumnSplit split;
  linalg::LinalgOp first;
  OpBuilder builder;
};

class MergeContractions : public GraphPass<FormPass<impl::MergeContractionsBase<MergeContractions>>> {
  using GraphPass::GraphPass;

  void run(const TensorGraph &graph, const Target &target) override {
    auto opOf = [&](unsigned id) { return graph.exprs()[id].op; };
    auto [offers, apart] = findHorizontalMerges(graph, target);
    for (const ApartContractions &pair : apart)
      leave(opOf(pair.second), llvm::formatv("contractions {0} and {1} share an input and stay apart: {2}", pair.first,
                                             pair.second, pair.reason)
                                   .str());
    std::vector<HorizontalMerge> taken;
    for (HorizontalMerge &merge : offers) {
      FailureOr<FormChoice> choice =
          settle(merge.byRule(), llvm::map_to_vector(merge.contractions, opOf),
                 [&](const FormChoice &choice) { return merge.layOut(graph, choice); });
      if (failed(choice))
        return;
      if (choice->taken)
        taken.push_back(std::move(merge));
    }
    for (const HorizontalMerge &merge : taken)
      Merger(graph, merge).apply();
  }
};
} // namespace
} // namespace tilewright

// Carries out the plan of a block. First the ops of the block are reordered so that the ops of each kernel are
// neighbours. Then each fusion group is raised into a tile.subprogram in their place.
#include "passes/plan/apply/CarryOut.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Form.h"
#include "passes/graph/Rounding.h"
#include "passes/normalize/Roundings.h"
#include "passes/plan/apply/ExprRewriter.h"
#include "passes/plan/apply/UnitDims.h"
#include "passes/plan/ir/Partition.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/tiling/gpu/SwizzledOperands.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Builds the subprogram of one fusion group at the builder's insertion point.
class SubprogramBuilder {
public:
  /// `made` maps values of the graph to the results of subprograms that replace them. It has those of earlier
  /// subprograms, and this one adds its own.
  SubprogramBuilder(const TensorGraph &graph, const Plan &plan, const KernelPlan &kernel, const GroupPlan &part,
              llvm::DenseMap<Value, Value> &made)
      : graph(graph), plan(plan), kernel(kernel), part(part), made(made) {
    for (const OpPlan &op : part.ops)
      choice.exprs.push_back(op.id);
  }

  LogicalResult build(OpBuilder &builder) {
    std::vector<Value> inputs = groupInputs(graph, choice), outputs = groupOutputs(graph, choice);
    SmallVector<Value> operands = llvm::map_to_vector(inputs, [&](Value input) {
      Value replaced = made.lookup(input);
      return replaced ? replaced : input;
    });
    Location loc = builder.getFusedLoc(
        llvm::map_to_vector(part.ops, [&](const OpPlan &op) { return Location(graph.exprs()[op.id].op->getLoc()); }));
    auto subprogram = tile::SubprogramOp::create(
        builder, loc, TypeRange(ValueRange(outputs)), operands, kernel.name, part.extents, part.tiles, part.grid,
        part.vector, part.workgroups, tile::TargetAttr::get(builder.getContext(), plan.target, DictionaryAttr()),
        streamed(builder, outputs), numerics(builder));
    if (part.threads > 0) {
      subprogram->setAttr(kThreadsAttr, builder.getI64IntegerAttr(part.threads));
      subprogram->setAttr(kGroupAttr, builder.getI64IntegerAttr(part.group));
    }
    if (kernel.residentBlocks)
      subprogram->setAttr(kResidentBlocksAttr, builder.getI64IntegerAttr(*kernel.residentBlocks));
    if (part.steps > 0)
      subprogram->setAttr(kStepsAttr, builder.getI64IntegerAttr(part.steps));
    if (part.cluster > 1)
      subprogram->setAttr(kClusterAttr, builder.getI64IntegerAttr(part.cluster));
    if (ArrayAttr own = accesses(builder, inputs.size(), outputs))
      subprogram->setAttr(kAccessesAttr, own);
    if (ArrayAttr own = staged(builder, inputs.size()))
      subprogram->setAttr(kStagedAttr, own);
    if (SmallVector<int64_t> keeps = residentTiles(inputs.size()); !keeps.empty())
      subprogram->setAttr(kResidentAttr, builder.getDenseI64ArrayAttr(keeps));
    if (AffineMapAttr end = counted())
      subprogram->setAttr(kCountedAttr, end);
    Block &body = subprogram.getBody().emplaceBlock();
    for (Value input : inputs)
      values[input] = body.addArgument(input.getType(), input.getLoc());
    OpBuilder inside = OpBuilder::atBlockEnd(&body);
    for (const OpPlan &op : part.ops)
      if (failed(buildExpr(inside, op)))
        return failure();
    tile::YieldOp::create(inside, loc, llvm::map_to_vector(outputs, [&](Value value) { return values[value]; }));
    for (tile::ConnectOp connect : llvm::make_early_inc_range(body.getOps<tile::ConnectOp>()))
      if (connect->use_empty())
        connect.erase();
    for (auto [output, result] : llvm::zip(outputs, subprogram.getResults())) {
      output.replaceAllUsesWith(result);
      made[output] = result;
    }
    return success();
  }

private:
  DenseI64ArrayAttr streamed(OpBuilder &builder, ArrayRef<Value> outputs) const {
    SmallVector<int64_t> results;
    for (auto [i, output] : llvm::enumerate(outputs))
      for (const TensorPlan &tensor : part.tensors)
        if (tensor.lifetime == tile::Lifetime::stream && tensor.tensor == resultName(graph, cast<OpResult>(output)))
          results.push_back(i);
    return results.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(results);
  }

  /// Returns the names of the group's inputs in the plan, which numbers the inputs of all groups of a kernel.
  SmallVector<std::string> inputNames(size_t inputs) const {
    unsigned first = firstInputOf(plan, graph, kernel, part);
    SmallVector<std::string> names;
    for (size_t input = 0; input < inputs; ++input)
      names.push_back("in" + std::to_string(first + input));
    return names;
  }

  /// Returns how long blocks hold each input, or null if they read all of them where they are.
  ArrayAttr staged(OpBuilder &builder, size_t inputs) const {
    bool isAny = false;
    SmallVector<Attribute> lifetimes;
    for (StringRef name : inputNames(inputs)) {
      auto tensor = llvm::find_if(part.tensors, [&](const TensorPlan &own) { return own.tensor == name; });
      bool isListed = tensor != part.tensors.end();
      tile::Lifetime lifetime = isListed ? tensor->lifetime : tile::Lifetime::kernel;
      isAny |= lifetime != tile::Lifetime::kernel;
      lifetimes.push_back(tile::LifetimeAttr::get(builder.getContext(), lifetime));
    }
    return isAny ? builder.getArrayAttr(lifetimes) : ArrayAttr();
  }

  /// Returns how blocks access each input and each result, or null if all of that is derived.
  ArrayAttr accesses(OpBuilder &builder, size_t inputs, ArrayRef<Value> outputs) const {
    SmallVector<std::string> names = inputNames(inputs);
    for (Value output : outputs)
      names.push_back(resultName(graph, cast<OpResult>(output)));
    bool isStated = false;
    SmallVector<Attribute> found;
    for (StringRef name : names) {
      tile::Access access = tile::Access::derived;
      for (const TensorPlan &tensor : part.tensors)
        if (tensor.tensor == name && tensor.access != tile::Access::derived)
          access = tensor.access;
      isStated |= access != tile::Access::derived;
      found.push_back(tile::AccessAttr::get(builder.getContext(), access));
    }
    return isStated ? builder.getArrayAttr(found) : ArrayAttr();
  }

  /// Returns pairs of the number of a resident tile and the tensor of the group that it is a tile of, both for tiles
  /// that the group leaves resident and for those that it finds. A group's results are numbered behind its inputs.
  SmallVector<int64_t> residentTiles(int64_t inputs) const {
    SmallVector<int64_t> keeps;
    unsigned own = &part - kernel.groups.data();
    for (auto [place, resident] : llvm::enumerate(kernel.residentTiles)) {
      if (resident.writer != own && resident.reader != own)
        continue;
      auto isSame = [&resident = resident](const ResidentTile &other) { return other.isSameTile(resident); };
      int64_t number = llvm::find_if(kernel.residentTiles, isSame) - kernel.residentTiles.begin();
      bool isFirst = number == static_cast<int64_t>(place);
      if (resident.writer == own && isFirst)
        keeps.append({number, resident.writerResult < 0 ? resident.writerInput : inputs + resident.writerResult});
      if (resident.reader == own)
        keeps.append({number, resident.readerInput});
    }
    return keeps;
  }

  tile::NumericsAttr numerics(OpBuilder &builder) const {
    bool strict = plan.numerics == NumericsMode::strict;
    llvm::SetVector<StringAttr> forms;
    for (const OpPlan &op : part.ops)
      if (op.form != tile::Form::asIs)
        forms.insert(builder.getStringAttr(tile::stringifyForm(op.form)));
    return tile::NumericsAttr::get(builder.getContext(), strict ? tile::Roundings::kept : tile::Roundings::relaxed,
                                   strict ? tile::Math::accurate : tile::Math::fast, forms.getArrayRef());
  }

  bool isWalked(const OpPlan &op) const {
    return op.dims[graph.exprs()[op.id].reductions.front()] == walkedDim(part.extents, part.tiles, part.grid);
  }

  /// Returns the end of the counting points along the walked dim, or null.
  AffineMapAttr counted() const {
    for (const OpPlan &op : part.ops)
      if (op.form == tile::Form::onlineSoftmaxWithBound && isWalked(op)) {
        auto end = graph.exprs()[op.id].op->getAttrOfType<AffineMapAttr>(kCountedAttr);
        return AffineMapAttr::get(AffineMap::get(part.extents.size(), 0, inSpace(end.getValue(), op.dims)));
      }
    return {};
  }

  /// Gives accumulators the type, and reductions the order, that the plan states.
  static void applyNumerics(tile::ExprOp expr, const OpPlan &op, const TensorExpr &original) {
    for (auto [i, type] : llvm::enumerate(accumulationTypes(op.numerics)))
      if (isNarrowFloat(getElementTypeOrSelf(expr.getResult(i).getType())) && type == "f32")
        widenAccumulator(expr, i, Float32Type::get(expr.getContext()));
    expr.setInOrder(!op.numerics.reassociates && llvm::any_of(combiningKinds(original), isSumOrProduct));
  }

  /// Returns the swizzled layout of the rhs of a contraction, or null. A group with such a contraction has no other.
  DenseI64ArrayAttr swizzledLayoutOf(OpBuilder &builder, const OpPlan &op) const {
    for (const TensorPlan &tensor : part.tensors)
      for (const LayoutStep &step : tensor.layout)
        if (step.kind == tile::LayoutKind::split && !op.microKernel.empty())
          return builder.getDenseI64ArrayAttr({step.arguments.front(), step.arguments.back()});
    return {};
  }

  LogicalResult buildExpr(OpBuilder &builder, const OpPlan &op) {
    const TensorExpr &expr = graph.exprs()[op.id];
    SmallVector<Value> tensors;
    for (unsigned input = 0; input < expr.inputs.size(); ++input)
      tensors.push_back(valueFor(builder, op.id, input));
    std::string reason;
    FailureOr<tile::ExprOp> raised = raise(builder, expr, tensors, &reason);
    if (failed(raised))
      return expr.op->emitError("tile: cannot be raised into kernel '") << kernel.name << "': " << reason;
    dropUnitDims(*raised, expr);
    if (raised->isReduction())
      applyNumerics(*raised, op, expr);
    if (!op.microKernel.empty())
      raised->setMicroKernel(op.microKernel);
    if (op.gemm)
      raised->setGemmAttr(attrOf(*op.gemm, builder.getContext()));
    if (op.blocking)
      (*raised)->setAttr(kBlockingAttr, attrOf(*op.blocking, builder.getContext()));
    if (DenseI64ArrayAttr layout = swizzledLayoutOf(builder, op))
      (*raised)->setAttr(kSwizzledAttr, layout);
    if (Attribute factors = expr.op->getAttr(kFactorsAttr))
      (*raised)->setAttr(kFactorsAttr, factors);
    if (op.form == tile::Form::twoMomentVariance && formOf(expr) != op.form)
      setForm(*raised, op.form); // blocks share its rows
    if (op.root)
      raised->setDims(llvm::to_vector(llvm::make_filter_range(op.dims, [](int64_t place) { return place >= 0; })));
    for (auto [before, after] : llvm::zip(expr.op->getResults(), raised->getResults()))
      values[before] = after;
    return success();
  }

  /// Returns the value to use for an input: a block argument, or the producer's result through a connect with the
  /// edge's scope. One connect serves all inputs of an expression that read the same result at the same scope.
  Value valueFor(OpBuilder &builder, unsigned consumer, unsigned input) {
    Value tensor = graph.exprs()[consumer].inputs[input].tensor;
    Value value = values.lookup(tensor);
    const EdgePlan *edge = plan.edge(consumer, input);
    if (!edge || !choice.contains(edge->producer))
      return value ? value : tensor; // a splat constant becomes a scalar of the body
    auto key = std::tuple(consumer, value, edge->scope, edge->recompute, edge->unrounded);
    Value &connected = connects[key];
    if (!connected)
      connected = tile::ConnectOp::create(builder, graph.exprs()[consumer].op->getLoc(), value.getType(), value,
                                          tile::ScopeAttr::get(builder.getContext(), edge->scope),
                                          edge->recompute ? builder.getUnitAttr() : UnitAttr(),
                                          edge->unrounded ? builder.getUnitAttr() : UnitAttr());
    return connected;
  }

  struct KeyLess {
    template <typename Key> bool operator()(const Key &a, const Key &b) const {
      auto plain = [](const Key &key) {
        return std::tuple(std::get<0>(key), std::get<1>(key).getAsOpaquePointer(), std::get<2>(key), std::get<3>(key),
                          std::get<4>(key));
      };
      return plain(a) < plain(b);
    }
  };

  const TensorGraph &graph;
  const Plan &plan;
  const KernelPlan &kernel;
  const GroupPlan &part;
  llvm::DenseMap<Value, Value> &made;
  GroupChoice choice;
  llvm::DenseMap<Value, Value> values;
  std::map<std::tuple<unsigned, Value, tile::Scope, bool, bool>, Value, KeyLess> connects;
};

/// Reorders the block so that the ops of each kernel are neighbours. Fails if the kernels depend on each other in a
/// circle, which a verified plan excludes.
LogicalResult orderBlock(const TensorGraph &graph, const Plan &plan, Block &block) {
  Partition partition(graph, block);
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &part : kernel.groups)
      for (const OpPlan &op : part.ops)
        partition.join({kernel.groups[0].ops[0].id, op.id});
  auto sequence = partition.order();
  if (!sequence)
    return block.getParentOp()->emitError("the kernels of the plan depend on each other in a circle");
  for (const std::vector<Operation *> &ops : *sequence)
    for (Operation *op : ops)
      op->moveBefore(&block, block.end());
  return success();
}

Operation *firstOf(const TensorGraph &graph, const KernelPlan &kernel) {
  Operation *first = nullptr;
  for (const GroupPlan &part : kernel.groups)
    for (const OpPlan &op : part.ops)
      if (Operation *candidate = graph.exprs()[op.id].op; !first || candidate->isBeforeInBlock(first))
        first = candidate;
  return first;
}

} // namespace

LogicalResult tilewright::carryOut(const TensorGraph &graph, const Plan &plan, Block &block) {
  if (failed(orderBlock(graph, plan, block)))
    return failure();
  SmallVector<Operation *> replaced;
  llvm::DenseMap<Value, Value> made;
  for (const KernelPlan &kernel : plan.kernels) {
    OpBuilder builder(firstOf(graph, kernel));
    for (const GroupPlan &part : kernel.groups) {
      if (failed(SubprogramBuilder(graph, plan, kernel, part, made).build(builder)))
        return failure();
      for (const OpPlan &op : part.ops)
        replaced.push_back(graph.exprs()[op.id].op);
    }
  }
  llvm::sort(replaced, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  return success();
}

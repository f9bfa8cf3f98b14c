// Carries out a plan, from level 1 to level 2 of the IR. The plan is made by the planner, or read from a file, and
// verified; the rewrite decides nothing. First the ops of the block are reordered so that the ops of each kernel are
// neighbours. Then each fusion group is raised into a tile.subprogram in their place.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/backend/Backend.h"
#include "passes/graph/Rounding.h"
#include "passes/normalize/Roundings.h"
#include "passes/plan/apply/ExprRewriter.h"
#include "passes/plan/apply/PlanForTarget.h"
#include "passes/plan/apply/PlanReport.h"
#include "passes/plan/apply/UnitDims.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/ir/Partition.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/tiling/gpu/SwizzledOperands.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/JsonFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_FORMSUBPROGRAMS
#include "passes/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Carrying out a plan
//===----------------------------------------------------------------------===//

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
    if (part.steps > 0)
      subprogram->setAttr(kStepsAttr, builder.getI64IntegerAttr(part.steps));
    if (SmallVector<int64_t> keeps = residentInputs(); !keeps.empty())
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
        if (tensor.lifetime == "stream" && tensor.tensor == resultName(graph, cast<OpResult>(output)))
          results.push_back(i);
    return results.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(results);
  }

  /// Returns pairs of the number of a resident tile and the group's input that it is a tile of, both for tiles that the
  /// group leaves resident and for those that it finds.
  SmallVector<int64_t> residentInputs() const {
    SmallVector<int64_t> keeps;
    unsigned own = &part - kernel.groups.data();
    for (auto [number, resident] : llvm::enumerate(kernel.residentTiles)) {
      if (resident.writer == own)
        keeps.append({static_cast<int64_t>(number), resident.writerInput});
      if (resident.reader == own)
        keeps.append({static_cast<int64_t>(number), resident.readerInput});
    }
    return keeps;
  }

  tile::NumericsAttr numerics(OpBuilder &builder) const {
    bool strict = plan.numerics == NumericsMode::strict;
    llvm::SetVector<StringAttr> forms;
    for (const OpPlan &op : part.ops)
      if (op.form != "as-is")
        forms.insert(builder.getStringAttr(op.form));
    return tile::NumericsAttr::get(builder.getContext(), strict ? tile::Roundings::kept : tile::Roundings::relaxed,
                                   strict ? tile::Math::accurate : tile::Math::fast, forms.getArrayRef());
  }

  bool isWalked(const OpPlan &op) const {
    return op.dims[graph.exprs()[op.id].reductions.front()] == walkedDim(part.extents, part.tiles, part.grid);
  }

  /// Returns the end of the counting points along the walked dim, or null.
  AffineMapAttr counted() const {
    for (const OpPlan &op : part.ops)
      if (op.form == kMaximumOfCounted && isWalked(op)) {
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
        if (step.kind == kSplitStep && !op.microKernel.empty())
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
    if (DenseI64ArrayAttr layout = swizzledLayoutOf(builder, op))
      (*raised)->setAttr(kSwizzledAttr, layout);
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

/// Reorders the block so that the ops of each kernel are neighbours.
void orderBlock(const TensorGraph &graph, const Plan &plan, Block &block) {
  Partition partition(graph, block);
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &part : kernel.groups)
      for (const OpPlan &op : part.ops)
        partition.merge(partition.groupOf(kernel.groups[0].ops[0].id), partition.groupOf(op.id));
  auto sequence = partition.order();
  assert(sequence && "a verified plan is acyclic");
  for (const std::vector<Operation *> &ops : *sequence)
    for (Operation *op : ops)
      op->moveBefore(&block, block.end());
}

Operation *firstOf(const TensorGraph &graph, const KernelPlan &kernel) {
  Operation *first = nullptr;
  for (const GroupPlan &part : kernel.groups)
    for (const OpPlan &op : part.ops)
      if (Operation *candidate = graph.exprs()[op.id].op; !first || candidate->isBeforeInBlock(first))
        first = candidate;
  return first;
}

LogicalResult carryOut(const TensorGraph &graph, const Plan &plan, Block &block) {
  orderBlock(graph, plan, block);
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

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class FormSubprograms : public impl::FormSubprogramsBase<FormSubprograms> {
public:
  using FormSubprogramsBase::FormSubprogramsBase;
  FormSubprograms(const FormSubprograms &other) : FormSubprogramsBase(other) {} // options copy themselves

private:
  Option<bool> fuse{*this, "fuse", llvm::cl::init(true), llvm::cl::desc("let ops share kernels")};
  ListOption<int64_t> unfused{*this, "unfused", llvm::cl::desc("numbers in the plan of ops that share no kernel")};
  ListOption<int64_t> left{*this, "left", llvm::cl::desc("numbers in the plan of ops that stay with IREE")};

  /// Returns the functions that can be planned, each with its graph. Nested modules are skipped, as by the passes that
  /// follow.
  std::vector<std::pair<func::FuncOp, TensorGraph>> collect() {
    std::vector<std::pair<func::FuncOp, TensorGraph>> functions;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.getBody().hasOneBlock())
        continue;
      TensorGraph graph = TensorGraph::build(function.getBody().front());
      if (!graph.exprs().empty())
        functions.emplace_back(function, std::move(graph));
    }
    return functions;
  }

  FailureOr<Plan> readPlanFor(func::FuncOp function, const FusionProblem &problem) {
    llvm::Expected<Plan> plan = readPlan(planIn);
    if (!plan)
      return function.emitError(llvm::toString(plan.takeError()));
    if (plan->numerics != problem.options.numerics)
      return function.emitError("illegal plan: made with numerics '")
             << stringify(plan->numerics) << "', carried out with '" << numerics << "'";
    return std::move(*plan);
  }

  /// Returns the plan of the file, or the policy's if there is no file or if it states forms only.
  FailureOr<Plan> obtain(func::FuncOp function, const FusionProblem &problem) {
    if (!planIn.empty()) {
      FailureOr<Plan> given = readPlanFor(function, problem);
      if (failed(given) || !given->statesFormsOnly())
        return given;
      std::string why = whyNotRecorded(given->forms, problem.forms);
      if (why.empty())
        why = whyNotFor(*given, problem.graph, problem.machine);
      if (!why.empty())
        return function.emitError("illegal plan: ") << why;
    }
    OrDeclined<Plan> made = solve(problem);
    if (!made)
      return function.emitError("no plan by policy '") << policy << "': " << made.why().reason;
    return std::move(*made);
  }

  FailureOr<Plan> decide(func::FuncOp function, const TensorGraph &graph, const Target &planned) {
    PlanOptions options;
    options.policy = policy;
    options.planSeconds = planSeconds;
    options.takeSingles = takeSingles;
    options.pack = pack;
    options.gridSync = gridSync;
    options.numerics = *symbolizeNumericsMode(numerics);
    PlanRestrictions restrictions{fuse, {unfused.begin(), unfused.end()}, {left.begin(), left.end()}};
    FusionProblem problem(graph, planned, options, restrictions);
    FailureOr<Plan> plan = obtain(function, problem);
    if (failed(plan))
      return failure();
    if (std::string why = whyIllegal(problem, *plan); !why.empty()) {
      // An illegal plan is written, too, so that it can be inspected.
      if (!planOut.empty() && failed(writeJson(function, planOut, toJson(*plan))))
        return failure();
      return function.emitError("illegal plan: ") << why;
    }
    return plan;
  }

  /// Returns why the plan cannot be carried out, or an empty string. Adds what the plan leaves open.
  std::string whyIllegal(const FusionProblem &problem, Plan &plan) {
    const TensorGraph &graph = problem.graph;
    const Target &planned = problem.machine;
    if (std::string why = plan.verify(graph); !why.empty())
      return why;
    plan.forms = problem.forms; // those of a file have no locations
    if (std::string why = whyNotFor(plan, graph, planned); !why.empty())
      return why;
    followTiles(plan);
    if (std::string why = settle(graph, planned, plan); !why.empty())
      return why;
    return whyNotCoResident(plan, graph, planned, gridSync);
  }

  /// Adds what the plan leaves open, so that the report states what code generation does, and remarks on what differs
  /// from the plan. Returns why the plan cannot be carried out, or an empty string.
  static std::string settle(const TensorGraph &graph, const Target &planned, Plan &plan) {
    std::vector<PlanRemark> remarks;
    std::string why = backendOf(planned).settlePlan(plan, graph, planned, remarks);
    for (const PlanRemark &remark : remarks)
      remark::missed(graph.exprs()[remark.op].op->getLoc(),
                     remark::RemarkOpts::name(remark.name).category("tile-form-subprograms"))
          << remark.text;
    return why;
  }

  void explain(const TensorGraph &graph, const Plan &plan) {
    auto options = [](StringRef name) { return remark::RemarkOpts::name(name).category("tile-form-subprograms"); };
    for (const LeftOp &op : plan.left)
      remark::missed(graph.exprs()[op.id].op->getLoc(), options("left"))
          << llvm::formatv("tile: op {0} ({1}) is left to IREE: {2}", op.id, op.op, op.reason).str();
    for (const OpaqueOp &opaque : graph.opaque())
      remark::missed(opaque.op->getLoc(), options("left"))
          << llvm::formatv("tile: {0} is left to IREE: {1}", opaque.op->getName(), opaque.reason).str();
    for (const EdgePlan &edge : plan.edges)
      if (edge.scope >= tile::Scope::launch) {
        remark::missed(graph.exprs()[edge.consumer].op->getLoc(), options("launch"))
            << llvm::formatv("tile: the edge from op {0} to op {1} stays at scope {2}: {3}", edge.producer,
                             edge.consumer, tile::stringifyScope(edge.scope), edge.reason)
                   .str();
        ++numLaunch;
      }
    numKernels += plan.kernels.size();
    numLeft += plan.left.size();
    numTaken += graph.exprs().size() - plan.left.size();
  }

  LogicalResult run() {
    if (std::string why = whyUnknownPolicy(policy); !why.empty())
      return getOperation().emitError(why);
    if (!symbolizeNumericsMode(numerics))
      return getOperation().emitError("unknown numerics '") << numerics << "'; choose default, strict or tf32";
    llvm::Expected<Target> found = lookupTarget(target);
    if (!found)
      return getOperation().emitError(llvm::toString(found.takeError()));
    Target planned = cores > 0 ? withCores(*found, cores) : *found;
    if (blockBytes > 0)
      planned.blockBytes = std::min<int64_t>(planned.blockBytes, blockBytes);
    if (std::string why = whyNotNumerics(*symbolizeNumericsMode(numerics), planned); !why.empty())
      return getOperation().emitError(why);
    auto functions = collect();
    bool files = !planIn.empty() || !planOut.empty() || !report.empty();
    if (files && functions.size() > 1)
      return functions[1].first.emitError("plan-in, plan-out and report take a module with one function that holds "
                                          "tensor expressions; this is the second");
    if (functions.empty()) {
      warnIfNotImported();
      return writeEmpty();
    }
    for (auto &[function, graph] : functions) {
      FailureOr<Plan> plan = decide(function, graph, planned);
      if (failed(plan) || failed(write(function, graph, *plan)))
        return failure();
      explain(graph, *plan);
      if (failed(carryOut(graph, *plan, function.getBody().front())))
        return failure();
      dropRequestedForms(function);
    }
    return success();
  }

  /// Warns about functions of IREE that the pass does not see, because they have not become func.func.
  void warnIfNotImported() {
    for (Operation &op : getOperation().getBody()->getOperations())
      if (op.getName().getStringRef() == "util.func" && op.getNumRegions() && !op.getRegion(0).empty()) {
        op.emitWarning("is not planned, because only func.func is: run tile-import-iree first");
        return;
      }
  }

  /// Writes an empty plan and a report that says why there is nothing to plan.
  LogicalResult writeEmpty() {
    Block none;
    Block *block = &none;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.getBody().hasOneBlock() && block == &none)
        block = &function.getBody().front();
    Plan plan{target, policy, *symbolizeNumericsMode(numerics), {}, {}, {}, {}, {}};
    TensorGraph graph = TensorGraph::build(*block);
    explain(graph, plan);
    return write(getOperation(), graph, plan);
  }

  LogicalResult write(Operation *op, const TensorGraph &graph, const Plan &plan) {
    if (!planOut.empty() && failed(writeJson(op, planOut, toJson(plan))))
      return failure();
    return report.empty() ? success() : writeJson(op, report, reportPlan(graph, plan));
  }

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace tilewright

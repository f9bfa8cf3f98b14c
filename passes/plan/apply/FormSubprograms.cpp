// Plans functions and carries the plan out. The plan is made by the planner, or read from a file, and verified. The
// function's block and the bodies of its loops are planned one by one; their plans are parts of one.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/backend/Backend.h"
#include "passes/graph/LoopBodies.h"
#include "passes/normalize/layers/LayersAtOnce.h"
#include "passes/plan/apply/CarryOut.h"
#include "passes/plan/apply/LoopForm.h"
#include "passes/plan/apply/PlanForTarget.h"
#include "passes/plan/apply/PlanReport.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/ir/Phases.h"
#include "passes/plan/ir/PlanLoops.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/support/JsonFile.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Threading.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_FORMSUBPROGRAMS
#include "passes/Passes.h.inc"

namespace {

/// A function with tensor expressions, and the blocks that are planned.
struct PlannedFunction {
  func::FuncOp function;
  std::vector<BlockGraph> blocks;
};

class FormSubprograms : public impl::FormSubprogramsBase<FormSubprograms> {
public:
  using FormSubprogramsBase::FormSubprogramsBase;
  FormSubprograms(const FormSubprograms &other) : FormSubprogramsBase(other) {} // options copy themselves

private:
  Option<bool> fuse{*this, "fuse", llvm::cl::init(true), llvm::cl::desc("let ops share kernels")};
  ListOption<int64_t> unfused{*this, "unfused", llvm::cl::desc("numbers in the plan of ops that share no kernel")};
  ListOption<int64_t> left{*this, "left", llvm::cl::desc("numbers in the plan of ops that stay with IREE")};

  /// Returns the functions that can be planned. Nested modules are skipped, as by the passes that follow.
  std::vector<PlannedFunction> collect() {
    std::vector<PlannedFunction> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (std::vector<BlockGraph> blocks = graphsOf(function); !blocks.empty())
        functions.push_back({function, std::move(blocks)});
    return functions;
  }

  FailureOr<Plan> readPlanFor(func::FuncOp function) {
    llvm::Expected<Plan> plan = readPlan(planIn);
    if (!plan)
      return function.emitError(llvm::toString(plan.takeError()));
    if (plan->numerics != *symbolizeNumericsMode(numerics))
      return function.emitError("illegal plan: made with numerics '")
             << stringify(plan->numerics) << "', carried out with '" << numerics << "'";
    return std::move(*plan);
  }

  /// Returns the given plan of a block, or the policy's if none is given or if it states forms only.
  FailureOr<Plan> obtain(func::FuncOp function, const FusionProblem &problem, const Plan *given) {
    if (given && !given->statesFormsOnly())
      return *given;
    if (given) {
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

  /// Returns the restrictions on the ops of a block, in the numbers of the block.
  PlanRestrictions restrictionsOf(const BlockGraph &block) const {
    PlanRestrictions restrictions{fuse, {}, {}};
    auto add = [&](ArrayRef<int64_t> ops, llvm::DenseSet<unsigned> &own) {
      for (int64_t op : ops)
        if (op >= block.firstOp && op - block.firstOp < static_cast<int64_t>(block.graph.exprs().size()))
          own.insert(op - block.firstOp);
    };
    add(unfused, restrictions.unfused);
    add(left, restrictions.left);
    return restrictions;
  }

  FailureOr<Plan> decide(func::FuncOp function, const BlockGraph &block, const Target &planned, const Plan *given) {
    PlanOptions options;
    options.policy = policy;
    options.planSeconds = planSeconds;
    options.takeSingles = takeSingles;
    options.pack = pack;
    options.gridSync = gridSync;
    options.numerics = *symbolizeNumericsMode(numerics);
    FusionProblem problem(block.graph, planned, options, restrictionsOf(block));
    FailureOr<Plan> plan = obtain(function, problem, given);
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

  /// Plans all blocks of a function. A plan from a file that does not have a loop leaves its body to the policy.
  FailureOr<Plan> decide(const PlannedFunction &planned, const Target &machine) {
    std::optional<Plan> given;
    if (!planIn.empty()) {
      FailureOr<Plan> read = readPlanFor(planned.function);
      if (failed(read))
        return failure();
      given = std::move(*read);
      std::string why = given->statesFormsOnly() ? "" : whyNotOfLoops(*given, planned.blocks);
      if (why.empty() && planned.blocks.size() > 1 && !given->statesFormsOnly()) // verify() of an only block says it
        why = whyNotOfBlocks(*given, planned.blocks);
      if (!why.empty())
        return func::FuncOp(planned.function).emitError("illegal plan: ") << why;
    }
    Plan whole = emptyPlan();
    whole.isGiven = given && !given->statesFormsOnly();
    for (const BlockGraph &block : planned.blocks) {
      if (block.graph.exprs().empty())
        continue;
      std::optional<Plan> own;
      if (given && (!block.loop || loopAt(*given, block.firstOp) || given->statesFormsOnly()))
        own = planned.blocks.size() == 1 ? *given : planOfBlock(*given, block.firstOp, block.graph.exprs().size());
      FailureOr<Plan> plan = decide(planned.function, block, machine, own ? &*own : nullptr);
      if (failed(plan))
        return failure();
      if (block.loop) {
        const LoopPlan *entry = given && !given->statesFormsOnly() ? loopAt(*given, block.firstOp) : nullptr;
        FailureOr<LoopPlan> loop = decideLoop(block, *plan, machine, entry);
        if (failed(loop))
          return failure();
        bool isStated = own && !own->kernels.empty() && own->kernels.front().residentBlocks;
        if (*loop->oneKernel && !isStated)
          for (KernelPlan &kernel : plan->kernels) // whose blocks wait for each other in every step
            kernel.residentBlocks = blocksPerSm(*plan, kernel, machine.gpu.guaranteedSms);
        whole.loops.push_back(*loop);
      }
      whole.forms = plan->forms; // those of the whole function
      whole.policy = plan->policy;
      whole.target = plan->target;
      addPlanOfBlock(whole, std::move(*plan), block.firstOp);
    }
    return whole;
  }

  /// Decides whether one kernel runs all steps of a loop, as the given entry says, or wherever that is possible if there
  /// is none. `plan` is that of the body.
  FailureOr<LoopPlan> decideLoop(const BlockGraph &block, const Plan &plan, const Target &machine,
                                 const LoopPlan *given) {
    LoopPlan loop = loopPlanOf(block);
    loop.reason = whyNotOneKernel(block, plan, machine, gridSync);
    bool isGiven = given && given->oneKernel;
    loop.oneKernel = isGiven ? *given->oneKernel : loop.reason.empty();
    if (isGiven && *loop.oneKernel)
      block.loop->setAttr(kGivenAttr, UnitAttr::get(&getContext()));
    if (*loop.oneKernel && !loop.reason.empty())
      return block.loop->emitError("illegal plan: loop ")
             << block.firstOp << ": one kernel cannot run all steps (oneKernel): " << loop.reason;
    if (!*loop.oneKernel && loop.reason.empty())
      loop.reason = "the given plan says so";
    return loop;
  }

  Plan emptyPlan() const { return {target, policy, *symbolizeNumericsMode(numerics), {}, {}, {}, {}, {}, {}}; }

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

  /// Adds what the plan leaves open, so that the report states what code generation does, and remarks on what could be
  /// quicker. Returns why the plan cannot be carried out, or an empty string.
  static std::string settle(const TensorGraph &graph, const Target &planned, Plan &plan) {
    std::vector<PlanRemark> remarks;
    std::string why = backendOf(planned).settlePlan(plan, graph, planned, remarks);
    for (const PlanRemark &remark : remarks)
      remark::missed(graph.exprs()[remark.op].op->getLoc(),
                     remark::RemarkOpts::name(remark.name).category("tile-form-subprograms"))
          << remark.text;
    return why;
  }

  void explain(const BlockGraph &block, const Plan &plan) {
    auto options = [](StringRef name) { return remark::RemarkOpts::name(name).category("tile-form-subprograms"); };
    ArrayRef<TensorExpr> exprs = block.graph.exprs();
    for (const LeftOp &op : plan.left)
      remark::missed(exprs[op.id].op->getLoc(), options("left"))
          << llvm::formatv("tile: op {0} ({1}) is left to IREE: {2}", block.firstOp + op.id, op.op, op.reason).str();
    for (const OpaqueOp &opaque : block.graph.opaque())
      remark::missed(opaque.op->getLoc(), options("left"))
          << llvm::formatv("tile: {0} is left to IREE: {1}", opaque.op->getName(), opaque.reason).str();
    for (const EdgePlan &edge : plan.edges)
      if (edge.scope >= tile::Scope::launch) {
        remark::missed(exprs[edge.consumer].op->getLoc(), options("launch"))
            << llvm::formatv("tile: the edge from op {0} to op {1} stays at scope {2}: {3}",
                             block.firstOp + edge.producer, block.firstOp + edge.consumer,
                             tile::stringifyScope(edge.scope), edge.reason)
                   .str();
        ++numLaunch;
      }
    numKernels += plan.kernels.size();
    numLeft += plan.left.size();
    numTaken += exprs.size() - plan.left.size();
  }

  LogicalResult run() {
    if (std::string why = whyUnknownPolicy(policy); !why.empty())
      return getOperation().emitError(why);
    if (!symbolizeNumericsMode(numerics))
      return getOperation().emitError("unknown numerics '") << numerics << "'; choose default, strict or tf32";
    FailureOr<Target> machine = targetOrError(getOperation(), target, cores, blockBytes);
    if (failed(machine))
      return failure();
    if (std::string why = whyNotNumerics(*symbolizeNumericsMode(numerics), *machine); !why.empty())
      return getOperation().emitError(why);
    if (machine->hasGridBarriers() && gridSync)
      for (auto function : getOperation().getOps<func::FuncOp>())
        if (failed(runLayersAtOnce(function, *machine, *symbolizeNumericsMode(numerics))))
          return failure();
    std::vector<PlannedFunction> functions = collect();
    bool files = !planIn.empty() || !planOut.empty() || !report.empty();
    if (files && functions.size() > 1)
      return functions[1].function.emitError("plan-in, plan-out and report take a module with one function that holds "
                                             "tensor expressions; this is the second");
    if (functions.empty()) {
      warnIfNotImported();
      return writeEmpty();
    }
    for (PlannedFunction &planned : functions)
      if (failed(carryOutFor(planned, *machine)))
        return failure();
    return success();
  }

  LogicalResult carryOutFor(const PlannedFunction &planned, const Target &machine) {
    FailureOr<Plan> plan = decide(planned, machine);
    if (failed(plan))
      return failure();
    if (failed(write(planned.function, planned.blocks, *plan)))
      return failure();
    auto planOf = [&](const BlockGraph &block) {
      return planOfBlock(*plan, block.firstOp, block.graph.exprs().size());
    };
    for (const BlockGraph &block : planned.blocks)
      explain(block, planOf(block));
    for (const BlockGraph &block : planned.blocks)
      if (const LoopPlan *loop = block.loop ? loopAt(*plan, block.firstOp) : nullptr;
          loop && loop->oneKernel.value_or(false))
        block.loop->setAttr(kOneKernelAttr, UnitAttr::get(&getContext()));
    // A body may read what an op outside it computes, so that op stays until the body is done.
    for (const BlockGraph &block : llvm::reverse(planned.blocks))
      if (failed(carryOut(block.graph, planOf(block), *block.block)))
        return failure();
    if (plan->isGiven)
      func::FuncOp(planned.function).walk(
          [&](tile::SubprogramOp kernel) { kernel->setAttr(kGivenAttr, UnitAttr::get(&getContext())); });
    dropRequestedForms(planned.function);
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
    std::vector<BlockGraph> blocks;
    blocks.push_back({block, nullptr, TensorGraph::build(*block), 0});
    explain(blocks.front(), emptyPlan());
    return write(getOperation(), blocks, emptyPlan());
  }

  /// Writes the plan and the report, both of which state every op, at once.
  LogicalResult write(Operation *op, ArrayRef<BlockGraph> blocks, const Plan &plan) {
    auto writePlan = [&] { return planOut.empty() ? success() : writeJson(op, planOut, toJson(plan)); };
    auto writeReport = [&] { return report.empty() ? success() : writeJson(op, report, reportPlan(blocks, plan)); };
    return failableParallelForEachN(&getContext(), 0, 2,
                                    [&](size_t file) { return file == 0 ? writePlan() : writeReport(); });
  }

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace tilewright

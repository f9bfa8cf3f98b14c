// Prints as JSON what planning makes of a function: for tuning, the plan with an outlined function for each of its
// groups, and the candidate plans for such a function; and a comparison of the policies.
#include "passes/Passes.h"
#include "passes/plan/apply/PlanReport.h"
#include "passes/plan/fusion/Candidates.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/Outline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTSUBPROGRAMS
#define GEN_PASS_DEF_PRINTCANDIDATES
#define GEN_PASS_DEF_PRINTPOLICIES
#include "passes/Passes.h.inc"

namespace {
LogicalResult print(Operation *op, StringRef path, const llvm::json::Value &value) {
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &message);
  if (!file)
    return op->emitError(message);
  file->os() << llvm::formatv("{0:2}\n", value);
  file->keep();
  return success();
}

/// Returns the only function of a module that holds tensor expressions, or null if there is none.
FailureOr<func::FuncOp> functionWithExprs(ModuleOp module) {
  func::FuncOp found;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.getBody().hasOneBlock() || TensorGraph::build(function.getBody().front()).exprs().empty())
      continue;
    if (found)
      return function.emitError("subprograms are printed for a module with one function that holds tensor expressions; "
                                "this is the second");
    found = function;
  }
  return found;
}

/// The target and options that both passes plan with.
struct Planning {
  Target target;
  PlanOptions options;

  template <typename Pass> static FailureOr<Planning> of(ModuleOp module, const Pass &pass) {
    std::optional<NumericsMode> mode = symbolizeNumericsMode(pass.numerics);
    if (!mode)
      return module.emitError("unknown numerics '") << pass.numerics << "'; choose default, strict or tf32";
    llvm::Expected<Target> found = lookupTarget(pass.target);
    if (!found)
      return module.emitError(llvm::toString(found.takeError()));
    Planning planning{pass.cores > 0 ? withCores(*found, pass.cores) : *found, {}};
    planning.options.numerics = *mode;
    return planning;
  }
};

class PrintSubprograms : public impl::PrintSubprogramsBase<PrintSubprograms> {
public:
  using PrintSubprogramsBase::PrintSubprogramsBase;
  friend struct Planning;

private:
  static llvm::json::Array subprograms(const TensorGraph &graph, const Plan &plan) {
    llvm::json::Array found;
    for (auto [k, kernel] : llvm::enumerate(plan.kernels))
      for (auto [p, part] : llvm::enumerate(kernel.groups)) {
        std::string text;
        llvm::raw_string_ostream stream(text);
        outlineGroup(graph, part)->print(stream);
        found.push_back(
            llvm::json::Object{{"kernel", static_cast<int64_t>(k)}, {"part", static_cast<int64_t>(p)}, {"form", text}});
      }
    return found;
  }

  LogicalResult run() {
    FailureOr<Planning> planning = Planning::of(getOperation(), *this);
    FailureOr<func::FuncOp> function = functionWithExprs(getOperation());
    if (failed(planning) || failed(function))
      return failure();
    if (!*function)
      return print(getOperation(), output,
                   llvm::json::Object{
                       {"plan", nullptr}, {"report", llvm::json::Object()}, {"subprograms", llvm::json::Array()}});
    Block &body = function->getBody().front();
    BlockGraph block{&body, nullptr, TensorGraph::build(body), 0};
    const TensorGraph &graph = block.graph;
    OrDeclined<Plan> plan = makePlan(graph, planning->target, planning->options);
    if (!plan)
      return function->emitError("no plan: ") << plan.why().reason;
    return print(*function, output,
                 llvm::json::Object{{"plan", toJson(*plan)},
                                    {"report", reportPlan(block, *plan)},
                                    {"subprograms", subprograms(graph, *plan)}});
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(run()))
      signalPassFailure();
  }
};

class PrintCandidates : public impl::PrintCandidatesBase<PrintCandidates> {
public:
  using PrintCandidatesBase::PrintCandidatesBase;
  friend struct Planning;

private:
  LogicalResult run() {
    FailureOr<Planning> planning = Planning::of(getOperation(), *this);
    FailureOr<func::FuncOp> function = functionWithExprs(getOperation());
    if (failed(planning) || failed(function))
      return failure();
    llvm::json::Array plans;
    if (*function) {
      TensorGraph graph = TensorGraph::build(function->getBody().front());
      for (const Plan &plan : planCandidates(graph, planning->target, planning->options, count))
        plans.push_back(toJson(plan));
    }
    return print(getOperation(), output, std::move(plans));
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(run()))
      signalPassFailure();
  }
};

class PrintPolicies : public impl::PrintPoliciesBase<PrintPolicies> {
public:
  using PrintPoliciesBase::PrintPoliciesBase;
  friend struct Planning;

private:
  /// Adds the number of kernels without contractions, and the bytes that they move.
  static void addMemoryIntensive(llvm::json::Object &entry, const FusionProblem &problem, const Decisions &decisions) {
    int64_t kernels = 0;
    double bytes = 0;
    for (ArrayRef<unsigned> kernel : decisions.kernels) {
      auto contracts = [&](unsigned expr) { return problem.graph.exprs()[expr].kind == ExprKind::contraction; };
      if (llvm::any_of(
              kernel, [&](unsigned group) { return llvm::any_of(decisions.parts[group]->choice.exprs, contracts); }))
        continue;
      ++kernels;
      bytes += predictionOf(problem.graph, decisions, kernel, problem.machine).bytes;
    }
    entry["memory_intensive_kernels"] = kernels;
    entry["memory_intensive_bytes"] = bytes;
  }

  /// Plans by a policy without what others have found out, and returns its predictions.
  static llvm::json::Object planBy(StringRef policy, const TensorGraph &graph, const Planning &planning) {
    PlanOptions options = planning.options;
    options.policy = policy.str();
    GroupMemo memo;
    FusionProblem problem(graph, planning.target, options, {}, memo);
    auto started = std::chrono::steady_clock::now();
    OrDeclined<PlanDraft> plan = explore(problem);
    if (plan)
      writePlan(problem, *plan);
    std::chrono::duration<double> planned = std::chrono::steady_clock::now() - started;
    llvm::json::Object entry{{"policy", policy}, {"planning_seconds", planned.count()}};
    if (!plan) {
      entry["declined"] = plan.why().reason;
      return entry;
    }
    entry["kernels"] = static_cast<int64_t>(plan->decisions.kernels.size());
    addMemoryIntensive(entry, problem, plan->decisions);
    PlanScore score = GroupSearch(problem).scored(std::move(*plan)).score;
    entry["seconds"] = score.seconds;
    entry["bytes"] = score.bytes;
    entry["launches"] = score.launches;
    return entry;
  }

  LogicalResult run() {
    FailureOr<Planning> planning = Planning::of(getOperation(), *this);
    FailureOr<func::FuncOp> function = functionWithExprs(getOperation());
    if (failed(planning) || failed(function))
      return failure();
    planning->options.gridSync = gridSync;
    planning->options.planSeconds = planSeconds;
    llvm::json::Array policies;
    if (*function) {
      TensorGraph graph = TensorGraph::build(function->getBody().front());
      for (const Explorer &explorer : explorers())
        policies.push_back(planBy(explorer.policy, graph, *planning));
    }
    return print(getOperation(), output, std::move(policies));
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace tilewright

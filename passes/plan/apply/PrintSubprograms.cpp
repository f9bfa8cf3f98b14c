// Prints as JSON what planning makes of a function: for tuning, the plan with an outlined function for each of its
// groups, and the candidate plans for such a function; and a comparison of the policies.
#include "passes/Passes.h"
#include "passes/plan/apply/PlanReport.h"
#include "passes/plan/fusion/Candidates.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/Outline.h"
#include "passes/support/JsonFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <chrono>

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTSUBPROGRAMS
#define GEN_PASS_DEF_PRINTCANDIDATES
#define GEN_PASS_DEF_PRINTPOLICIES
#include "passes/Passes.h.inc"

namespace {
/// The target and the options that the passes plan with.
struct Planning {
  Target target;
  PlanOptions options;
};

/// Base of the passes: finds the function of a module that holds tensor expressions and prints what is made of it.
template <typename PassBase> class PrintingPass : public PassBase {
public:
  using PassBase::PassBase;

private:
  /// Returns what to print about the block of the function, which is null if no function holds tensor expressions.
  virtual FailureOr<llvm::json::Value> describe(Block *body, const Planning &planning) = 0;

  FailureOr<Planning> planning() {
    std::optional<NumericsMode> mode = symbolizeNumericsMode(this->numerics);
    if (!mode)
      return this->getOperation().emitError("unknown numerics '")
             << this->numerics << "'; choose default, strict or tf32";
    llvm::Expected<Target> found = lookupTarget(this->target);
    if (!found)
      return this->getOperation().emitError(llvm::toString(found.takeError()));
    Planning planning{this->cores > 0 ? withCores(*found, this->cores) : *found, {}};
    planning.options.numerics = *mode;
    return planning;
  }

  FailureOr<Block *> blockWithExprs() {
    Block *found = nullptr;
    for (auto function : this->getOperation().template getOps<func::FuncOp>()) {
      if (!function.getBody().hasOneBlock() || TensorGraph::build(function.getBody().front()).exprs().empty())
        continue;
      if (found)
        return function.emitError("subprograms are printed for a module with one function that holds tensor "
                                  "expressions; this is the second");
      found = &function.getBody().front();
    }
    return found;
  }

  void runOnOperation() final {
    this->markAllAnalysesPreserved();
    FailureOr<Planning> known = planning();
    FailureOr<Block *> body = succeeded(known) ? blockWithExprs() : FailureOr<Block *>(failure());
    FailureOr<llvm::json::Value> value =
        succeeded(body) ? describe(*body, *known) : FailureOr<llvm::json::Value>(failure());
    if (failed(value) || failed(writeJson(this->getOperation(), this->output, *value)))
      this->signalPassFailure();
  }
};

class PrintSubprograms : public PrintingPass<impl::PrintSubprogramsBase<PrintSubprograms>> {
public:
  using PrintingPass::PrintingPass;

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

  FailureOr<llvm::json::Value> describe(Block *body, const Planning &planning) override {
    if (!body)
      return llvm::json::Value(llvm::json::Object{
          {"plan", nullptr}, {"report", llvm::json::Object()}, {"subprograms", llvm::json::Array()}});
    BlockGraph block{body, nullptr, TensorGraph::build(*body), 0};
    OrDeclined<Plan> plan = makePlan(block.graph, planning.target, planning.options);
    if (!plan)
      return body->getParentOp()->emitError("no plan: ") << plan.why().reason;
    return llvm::json::Value(llvm::json::Object{{"plan", toJson(*plan)},
                                                {"report", reportPlan(block, *plan)},
                                                {"subprograms", subprograms(block.graph, *plan)}});
  }
};

class PrintCandidates : public PrintingPass<impl::PrintCandidatesBase<PrintCandidates>> {
public:
  using PrintingPass::PrintingPass;

private:
  FailureOr<llvm::json::Value> describe(Block *body, const Planning &planning) override {
    llvm::json::Array plans;
    if (body)
      for (const Plan &plan : planCandidates(TensorGraph::build(*body), planning.target, planning.options, count))
        plans.push_back(toJson(plan));
    return llvm::json::Value(std::move(plans));
  }
};

class PrintPolicies : public PrintingPass<impl::PrintPoliciesBase<PrintPolicies>> {
public:
  using PrintingPass::PrintingPass;

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

  FailureOr<llvm::json::Value> describe(Block *body, const Planning &given) override {
    Planning planning = given;
    planning.options.gridSync = gridSync;
    planning.options.planSeconds = planSeconds;
    llvm::json::Array policies;
    if (body) {
      TensorGraph graph = TensorGraph::build(*body);
      for (const Explorer &explorer : explorers())
        policies.push_back(planBy(explorer.policy, graph, planning));
    }
    return llvm::json::Value(std::move(policies));
  }
};
} // namespace
} // namespace tilewright

// Prints as JSON what planning makes of a function: for tuning, the plan with an outlined function for each of its
// groups, the candidate plans for such a function, and the regions for which plans differ; for `explain`, a comparison
// of the policies, and the alternatives for every edge.
#include "passes/Passes.h"
#include "passes/plan/apply/PlanReport.h"
#include "passes/plan/fusion/Candidates.h"
#include "passes/plan/fusion/EdgeAlternatives.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/Outline.h"
#include "passes/plan/fusion/Regions.h"
#include "passes/support/JsonFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Timer.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTSUBPROGRAMS
#define GEN_PASS_DEF_PRINTCANDIDATES
#define GEN_PASS_DEF_PRINTPOLICIES
#define GEN_PASS_DEF_PRINTREGIONS
#define GEN_PASS_DEF_PRINTEDGES
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
        auto ops = llvm::map_to_vector(part.ops, [](const OpPlan &op) { return op.id; });
        found.push_back(llvm::json::Object{{"kernel", static_cast<int64_t>(k)},
                                           {"part", static_cast<int64_t>(p)},
                                           {"form", outlinedText(graph, ops)}});
      }
    return found;
  }

  /// Returns the plan from the file, or the policy's if none is given.
  FailureOr<Plan> obtain(const BlockGraph &block, const Planning &planning) {
    Operation *function = block.block->getParentOp();
    if (!planIn.empty()) {
      llvm::Expected<Plan> given = readPlan(planIn);
      if (!given)
        return function->emitError(llvm::toString(given.takeError()));
      if (std::string why = given->verify(block.graph); !why.empty())
        return function->emitError("illegal plan: ") << why;
      return std::move(*given);
    }
    OrDeclined<Plan> plan = makePlan(block.graph, planning.target, planning.options);
    if (!plan)
      return function->emitError("no plan: ") << plan.why().reason;
    return std::move(*plan);
  }

  FailureOr<llvm::json::Value> describe(Block *body, const Planning &planning) override {
    if (!body)
      return llvm::json::Value(llvm::json::Object{
          {"form", ""}, {"plan", nullptr}, {"report", llvm::json::Object()}, {"subprograms", llvm::json::Array()}});
    BlockGraph block{body, nullptr, TensorGraph::build(*body), 0};
    FailureOr<Plan> plan = obtain(block, planning);
    if (failed(plan))
      return failure();
    auto all = llvm::to_vector(llvm::seq<unsigned>(0, block.graph.exprs().size()));
    return llvm::json::Value(llvm::json::Object{{"form", outlinedText(block.graph, all)},
                                                {"plan", toJson(*plan)},
                                                {"report", reportPlan(block, *plan)},
                                                {"subprograms", subprograms(block.graph, *plan)}});
  }
};

class PrintRegions : public PrintingPass<impl::PrintRegionsBase<PrintRegions>> {
public:
  using PrintingPass::PrintingPass;

private:
  FailureOr<llvm::json::Value> describe(Block *body, const Planning &planning) override {
    llvm::json::Array regions;
    if (!body)
      return llvm::json::Value(std::move(regions));
    TensorGraph graph = TensorGraph::build(*body);
    OrDeclined<std::vector<PlanRegion>> found =
        regionsToMeasure(graph, planning.target, planning.options, std::max(2u, count.getValue()));
    if (!found)
      return body->getParentOp()->emitError("no plan: ") << found.why().reason;
    for (const PlanRegion &region : *found) {
      llvm::json::Array plans;
      for (const Plan &plan : region.plans)
        plans.push_back(toJson(plan));
      regions.push_back(llvm::json::Object{{"ops", llvm::json::Array(region.ops)},
                                           {"form", outlinedText(graph, region.ops)},
                                           {"plans", std::move(plans)}});
    }
    return llvm::json::Value(std::move(regions));
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

  /// Adds how many different sequences of ops with two or more reductions kernels have, and the most ops of a kernel.
  static void addPatterns(llvm::json::Object &entry, const TensorGraph &graph, const Decisions &decisions) {
    llvm::StringSet<> patterns;
    int64_t most = 0;
    for (ArrayRef<unsigned> kernel : decisions.kernels) {
      std::string pattern;
      int64_t ops = 0, reductions = 0;
      for (unsigned group : kernel)
        for (unsigned expr : decisions.parts[group]->choice.exprs) {
          pattern += graph.exprs()[expr].op->getName().getStringRef().str() + " ";
          ++ops;
          reductions += graph.exprs()[expr].oneReliesOnOne() ? 0 : 1;
        }
      most = std::max(most, ops);
      if (reductions > 1)
        patterns.insert(pattern);
    }
    entry["patterns"] = static_cast<int64_t>(patterns.size());
    entry["largest_kernel"] = most;
  }

  using Explore = OrDeclined<PlanDraft> (*)(const FusionProblem &problem);

  static double processorSeconds() { return llvm::TimeRecord::getCurrentTime().getProcessTime(); }

  /// Plans by a policy without what others have found out, and returns its predictions.
  static llvm::json::Object planBy(StringRef policy, Explore explore, const TensorGraph &graph,
                                   const Planning &planning) {
    PlanOptions options = planning.options;
    options.policy = policy.str();
    GroupMemo memo;
    FusionProblem problem(graph, planning.target, options, {}, memo);
    double started = processorSeconds();
    OrDeclined<PlanDraft> plan = explore(problem);
    if (plan)
      writePlan(problem, *plan);
    llvm::json::Object entry{{"policy", policy}, {"planning_seconds", processorSeconds() - started}};
    if (!plan) {
      entry["declined"] = plan.why().reason;
      return entry;
    }
    entry["kernels"] = static_cast<int64_t>(plan->decisions.kernels.size());
    addMemoryIntensive(entry, problem, plan->decisions);
    addPatterns(entry, graph, plan->decisions);
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
        if (only.empty() || llvm::is_contained(only, explorer.policy.str()))
          policies.push_back(planBy(explorer.policy, explore, graph, planning));
      for (const GroupingPolicy &step : souffleAblation())
        if (llvm::is_contained(only, step.name.str()))
          policies.push_back(planBy(step.name, exploreByGroupingPolicy, graph, planning));
    }
    return llvm::json::Value(std::move(policies));
  }
};

class PrintEdges : public PrintingPass<impl::PrintEdgesBase<PrintEdges>> {
public:
  using PrintingPass::PrintingPass;

private:
  static llvm::json::Object entry(const TensorGraph &graph, const EdgeAlternative &found) {
    const TensorEdge &edge = graph.edges()[found.edge];
    Operation *producer = graph.exprs()[edge.producer].op, *consumer = graph.exprs()[edge.consumer].op;
    AsmState names(producer->getContext());
    llvm::json::Object entry{{"producer", edge.producer},
                             {"consumer", edge.consumer},
                             {"from", producer->getName().getStringRef()},
                             {"to", consumer->getName().getStringRef()},
                             {"from_location", locationOf(producer, names)},
                             {"to_location", locationOf(consumer, names)},
                             {"scope", tile::stringifyScope(found.scope)},
                             {"seconds", found.seconds},
                             {"other", tile::stringifyScope(found.other)},
                             {"why_impossible", found.reason},
                             {"flip", found.flip}};
    if (found.otherSeconds)
      entry["other_seconds"] = *found.otherSeconds;
    return entry;
  }

  FailureOr<llvm::json::Value> describe(Block *body, const Planning &given) override {
    llvm::json::Array edges;
    if (!body)
      return llvm::json::Value(std::move(edges));
    PlanOptions options = given.options;
    options.policy = policy;
    options.gridSync = gridSync;
    options.planSeconds = planSeconds;
    TensorGraph graph = TensorGraph::build(*body);
    FusionProblem problem(graph, given.target, options);
    OrDeclined<PlanDraft> plan = explore(problem);
    if (!plan)
      return body->getParentOp()->emitError("no plan by policy '") << policy << "': " << plan.why().reason;
    for (const EdgeAlternative &found : alternativesOf(problem, *plan))
      edges.push_back(entry(graph, found));
    return llvm::json::Value(std::move(edges));
  }
};
} // namespace
} // namespace tilewright

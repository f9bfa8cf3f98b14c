// Passes of passes/plan/fusion, which print the planner's decisions.
#ifndef TILEWRIGHT_PLAN_FUSION_PASSES_TD
#define TILEWRIGHT_PLAN_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintPlan : Pass<"tile-print-plan", "::mlir::func::FuncOp"> {
  let summary = "Print the plan of each function as remarks, or as JSON";
  let description = [{
    Changes nothing. Emits a remark on the function for every kernel (its
    iteration space, tiles and prediction), on every tensor expression (its
    kernel and dims, or why it is left to IREE) and on the consumer of every edge
    (its scope and the reason). With `json` the plan of each function that has
    tensor expressions is printed to the standard output instead, where only
    `-o /dev/null` keeps the module from following it. See test/passes/plan/fusion/print-plan.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
                 Option<"policy", "policy", "std::string", "\"greedy\"", "planning policy (tile-print-policies lists them)">,
                 Option<"planSeconds", "plan-seconds", "double", "2", "about how long a search may take">,
                 Option<"json", "json", "bool", "false", "print JSON to the standard output">];
}

def PrintSchemes : Pass<"tile-print-schemes", "::mlir::func::FuncOp"> {
  let summary = "Print how thread blocks could compute each group of a kernel, and which scheme is chosen";
  let description = [{
    Changes nothing. Emits remarks on the last op of each group of the plan: the
    chosen composition scheme (thread, warp or block composition, or tiles of
    points; FusionStitching 4), and for every scheme its fastest launch dimensions
    with the latency evaluator's terms, or why it was discarded. With `all` every
    candidate is printed. See test/passes/plan/fusion/print-schemes.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"all", "all", "bool", "false", "print every candidate">];
}

def PrintBlockOrder : Pass<"tile-print-block-order", "::mlir::func::FuncOp"> {
  let summary = "Print chains of contractions, their best block order, and the bytes that it moves";
  let description = [{
    Changes nothing. Emits remarks on the last contraction of every chain (Chimera
    4): its loops and accesses; per memory level the loop order (outermost first)
    and tiles that move the fewest bytes, the bytes that they move into the level
    and hold in it, and which level is the bottleneck; the same for each
    contraction by itself; and why contractions that feed one another form no
    chain.
    See test/passes/plan/fusion/block-order.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
                 Option<"online", "online", "bool", "false",
                        "let reductions between contractions continue from block to block, as in online softmax">];
}

class PlanningPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  list<Option> planning = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "numerics that kernels may use: default, strict, tf32">,
    Option<"output", "output", "std::string", "\"-\"", "the file to write; -: the standard output">];
}

def PrintPolicies : PlanningPass<"tile-print-policies"> {
  let summary = "Print what each planning policy makes of a function, as JSON";
  let description = [{
    Changes nothing. The input is a module with one function that has tensor
    expressions. The output lists the policies with their predictions: seconds,
    bytes and kernels, what is left to IREE included, and the seconds that
    planning took. A policy that has no plan states the reason. Policies share no
    results, so the planning times can be compared. See
    test/passes/plan/fusion/print-policies.mlir.
  }];
  let options = planning # [Option<"gridSync", "grid-sync", "bool", "true",
                                   "join kernels by grid barriers, if the target has them">,
                            Option<"planSeconds", "plan-seconds", "double", "2", "about how long a search may take">,
                            ListOption<"only", "only", "std::string", "policies to compare; all if there are none">];
}

def PrintCandidates : PlanningPass<"tile-print-candidates"> {
  let summary = "Print the plans worth measuring for a function that is one kernel, as JSON";
  let description = [{
    Changes nothing. The input is a module with one function of tensor
    expressions that one kernel can compute, as `tile-print-subprograms` prints
    it. The first plan is the planner's own. It is followed by plans with other
    tiles, workgroups and scopes, the fastest prediction first, and by plans that
    cut the function into several kernels. The option `plan-in` carries any of
    them out. See test/passes/plan/fusion/print-candidates.mlir.
  }];
  let options = planning # [Option<"count", "count", "unsigned", "20", "maximum number of plans to print">];
}

def PrintRegions : PlanningPass<"tile-print-regions"> {
  let summary = "Print regions of a function for which the plans of the search differ, as JSON";
  let description = [{
    Changes nothing. The input is a module with one function that has tensor
    expressions. A region is a smallest set of ops for which two plans have other
    kernels: the planner's own, and one that the policy `unified` considers or
    the one that fuses nothing. For each region, the ops, a module with one
    function that computes them, and the plans for that function are printed, the
    planner's own first. See test/passes/plan/fusion/print-regions.mlir.
  }];
  let options = planning # [Option<"count", "count", "unsigned", "5", "maximum number of plans of a region, at least 2">];
}

def PrintEdges : PlanningPass<"tile-print-edges"> {
  let summary = "Print the scope of every edge of a plan and the best other one, as JSON";
  let description = [{
    Changes nothing. The input is a module with one function that has tensor
    expressions. For each edge between two of them in kernels of Tilewright, the
    scope that the policy chose is printed with the predicted time of the groups
    at its ends, the best other scope with its time or why it is impossible, and
    what would make it the better one: other sizes, memory, or costs. See
    test/passes/plan/fusion/print-edges.mlir.
  }];
  let options = planning # [Option<"policy", "policy", "std::string", "\"greedy\"", "planning policy">,
                            Option<"gridSync", "grid-sync", "bool", "true",
                                   "join kernels by grid barriers, if the target has them">,
                            Option<"planSeconds", "plan-seconds", "double", "2", "about how long a search may take">];
}

#endif

// Passes of passes/plan/fusion: printing what the planner decides.
#ifndef TILEWRIGHT_PLAN_FUSION_PASSES_TD
#define TILEWRIGHT_PLAN_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintPlan : Pass<"tile-print-plan", "::mlir::func::FuncOp"> {
  let summary = "Print the plan of each function as remarks, or as JSON";
  let description = [{
    Changes nothing. A remark on the function for every kernel (its index space,
    tiles and prediction), on every tensor expression (its place in a kernel, or
    why it is left to IREE) and on the consumer of every edge (its scope and
    why). With `json` the plan goes to the standard output instead.
    See test/passes/plan/fusion/print-plan.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
                 Option<"json", "json", "bool", "false", "print JSON to the standard output">];
}

def PrintSchemes : Pass<"tile-print-schemes", "::mlir::func::FuncOp"> {
  let summary = "Print how blocks of threads could compute each part of a kernel, and which way is chosen";
  let description = [{
    FusionStitching 4. Changes nothing. Remarks on the last op of each part of the
    plan: the scheme that is chosen (thread, warp or block composition, or tiles
    of points), and for every scheme its quickest launch dimensions with what the
    latency evaluator says of them term by term, or why it was discarded. With
    `all` every candidate is printed. See test/passes/plan/fusion/print-schemes.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"all", "all", "bool", "false", "print every candidate">];
}

def PrintBlockOrder : Pass<"tile-print-block-order", "::mlir::func::FuncOp"> {
  let summary = "Print chains of contractions, their best block order, and what it moves";
  let description = [{
    Chimera 4. Changes nothing. Remarks on the last contraction of every chain:
    its loops and accesses; per memory level the order and tiles that move least,
    outermost loop first, with what they move into the level and keep in it, and
    what bounds the whole; the same for each contraction by itself; and why
    contractions that feed one another form no chain.
    See test/passes/plan/fusion/block-order.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
                 Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
                 Option<"online", "online", "bool", "false",
                        "reductions between contractions go on from block to block, as an online softmax does">];
}

class PlanningPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  list<Option> planning = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "what kernels may do to numbers: default, strict">,
    Option<"output", "output", "std::string", "\"-\"", "the file to write; -: the standard output">];
}

def PrintCandidates : PlanningPass<"tile-print-candidates"> {
  let summary = "Print the plans worth measuring for a function that is one kernel, as JSON";
  let description = [{
    Changes nothing. Arrives: a module with one function that holds tensor
    expressions, all of which make one kernel, as `tile-print-subprograms`
    prints it. The first plan is the planner's own; then come those with other
    tiles, workgroups and scopes, the one that is predicted quickest first, and
    last those that cut the function into several kernels. Each of them can be
    carried out with `plan-in`. See test/passes/plan/fusion/print-candidates.mlir.
  }];
  let options = planning # [Option<"count", "count", "unsigned", "20", "the most plans to print">];
}

#endif

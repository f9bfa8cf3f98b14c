// Passes of passes/plan/apply, which carry out a plan as subprograms and verify the result.
#ifndef TILEWRIGHT_PLAN_APPLY_PASSES_TD
#define TILEWRIGHT_PLAN_APPLY_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/plan/fusion/Passes.td" // PlanningPass

def FormSubprograms : Pass<"tile-form-subprograms", "::mlir::ModuleOp"> {
  let summary = "Plan which ops share a kernel, and put each kernel into a tile.subprogram";
  let description = [{
    The input is `func.func`s of one block with linalg and tensor ops, and any
    other ops between them. The output has a `tile.subprogram` for each group of
    the plan. It holds the group's raised expressions, with a `tile.connect` on
    every edge between them that states its scope; domain dims of one point are
    removed. Groups that are packed into one kernel are neighbours with the same
    name. Ops of the block are reordered accordingly; ops with side effects,
    which include unregistered ops, keep their order. Bodies of `scf.for` and
    `scf.while` are planned and rewritten in the same way, each on its own.

    The plan is made for `target`, or read from `plan-in`, verified, and carried
    out as it is; an illegal plan is an error at the function. With `plan-in`,
    `plan-out` and `report` the module may hold one function with tensor
    expressions. Every edge that stays at scope `launch` and every op left to
    IREE gets a missed remark with the reason. After a pass has failed on a
    kernel, `unfused` (or `fuse=false`) and `left` name ops that the next plan
    keeps apart, or leaves to IREE.
    See test/passes/plan/apply/form-subprograms.mlir and
    test/passes/plan/apply/form-subprograms-loops.mlir.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"blockBytes", "block-bytes", "int64_t", "0",
           "memory of a block in bytes that plans may use, if code needed more than predicted; 0: the target's">,
    Option<"policy", "policy", "std::string", "\"greedy\"", "planning policy (tile-print-policies lists them)">,
    Option<"planSeconds", "plan-seconds", "double", "2", "about how long the search of the policy unified may take">,
    Option<"takeSingles", "take-singles", "bool", "true", "take groups that IREE would run as one dispatch, too">,
    Option<"pack", "pack", "bool", "true", "pack small independent groups into one kernel">,
    Option<"gridSync", "grid-sync", "bool", "true",
           "join kernels by grid barriers, if the target has them">,
    Option<"numerics", "numerics", "std::string", "\"default\"",
           "numerics that kernels may use: default, strict (every rounding as in the graph) or tf32 (GPUs only: "
           "products of f32 rounded to tf32)">,
    Option<"planIn", "plan-in", "std::string", "\"\"", "JSON plan to carry out instead of planning">,
    Option<"planOut", "plan-out", "std::string", "\"\"", "write the plan as JSON">,
    Option<"report", "report", "std::string", "\"\"", "write a report on the plan and its reasons as JSON">];
  let statistics = [Statistic<"numKernels", "kernels", "kernels formed">,
                    Statistic<"numTaken", "taken", "ops taken into kernels">,
                    Statistic<"numLeft", "declined", "ops left to IREE, each with a missed remark">,
                    Statistic<"numLaunch", "launch-edges", "edges left at scope launch, each with a missed remark">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def RaiseTensorExprs : Pass<"tile-raise", "::mlir::func::FuncOp"> {
  let summary = "Raise tensor ops to tile.expr";
  let description = [{
    The input is linalg and tensor ops. Every op that is a static tensor
    expression and no contraction becomes a `tile.expr`. Accumulators and padding
    values become constants, splat constants become scalars of the body, and
    reshapes, slices, pads and concats become maps and guards. All other ops are
    left unchanged, with a missed remark that states the reason. See
    test/passes/plan/apply/raise.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRaised", "raised", "ops raised">,
                    Statistic<"numLeft", "left", "ops left as they were, each with a missed remark">];
}

def ApplyNumerics : Pass<"tile-apply-numerics", "::mlir::func::FuncOp"> {
  let summary = "Make the roundings and freedoms of the numerics of subprograms explicit in their bodies";
  let description = [{
    The input is subprograms, also those in loops, with expressions whose bodies
    compute with bf16 and f16. Afterwards
    all arithmetic is in f32, with an `arith.truncf` after each operation that
    rounds and an `arith.extf` where a stored value is read. If `numerics` relaxes
    roundings, those that only arithmetic of the same body reads are removed
    (`tile-compose` carries out `unrounded` edges). If math is fast, divisions
    allow reciprocals (`arcp`). A subprogram without `numerics` counts as relaxed
    and fast. See test/passes/plan/apply/apply-numerics.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numLeftOut", "left-out", "roundings left out inside bodies">];
}

def CseSubprograms : Pass<"tile-cse-subprograms", "::mlir::func::FuncOp"> {
  let summary = "Compute what a subprogram computes twice only once";
  let description = [{
    Eliminates common subexpressions in every `tile.subprogram`, also in those of
    loops, which `cse` reaches only together with the ops around them. See
    test/passes/plan/apply/cse-subprograms.mlir.
  }];
}

def ComposeExprs : Pass<"tile-compose", "::mlir::func::FuncOp"> {
  let summary = "Fold producers into their consumers by composing index maps";
  let description = [{
    Implements Souffle's vertical transformation (section 6.2). Inside a
    `tile.subprogram` it carries out exactly the `tile.connect` edges of scope
    `thread`; a reduction behind such an edge is an error. Outside subprograms it
    folds every one-relies-on-one producer if that repeats no arithmetic: movement
    always, arithmetic if it has one reader that reads each element at most once.
    The result is always exact. See test/passes/plan/apply/compose.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numInlined", "inlined", "producers folded into a consumer">,
                    Statistic<"numKept", "kept", "producers kept, each with a missed remark">];
}

def VerifyPlanned : Pass<"tile-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the planned graph before it is lowered";
  let description = [{
    Changes nothing. Each violation in a `tile.subprogram` is an error at the op:
    (G1) an edge between two expressions without a connect; (G2) a scope that
    cannot be carried out, or `thread` out of a reduction; (G3) a root without
    `dims`; (G4) a grid dim that a root reduces, or that a reduced or yielded root
    lacks (other roots keep their values for the tiles along it, or are
    recomputed); (G5) a block edge that is read across tiles of the grid; (G6) a
    dim that cannot be walked in blocks; (G7) a bound on the blocks of a dim that
    cannot be skipped. See test/passes/plan/apply/verify-planned-errors.mlir.
  }];
}

def PrintSubprograms : PlanningPass<"tile-print-subprograms"> {
  let summary = "Print the plan, and each of its groups as a function of its own, as JSON";
  let description = [{
    Changes nothing. The input is a module with one function that holds tensor
    expressions. For every group of its plan a module with one function is
    printed, which computes the same from the group's inputs. Groups that differ
    only in names and locations, as those of repeated layers, give the same text.
    `form` is such a module for all tensor expressions of the function. The plan
    is made, or read from `plan-in`.
    See test/passes/plan/apply/print-subprograms.mlir.
  }];
  let options = planning # [Option<"planIn", "plan-in", "std::string", "\"\"", "JSON plan to print instead of planning">];
}

#endif

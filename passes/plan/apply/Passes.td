// Passes of passes/plan/apply: a plan carried out as subprograms, and what must hold behind it.
#ifndef TILEWRIGHT_PLAN_APPLY_PASSES_TD
#define TILEWRIGHT_PLAN_APPLY_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/plan/fusion/Passes.td" // PlanningPass

def FormSubprograms : Pass<"tile-form-subprograms", "::mlir::ModuleOp"> {
  let summary = "Plan which ops share a kernel, and put each kernel into a tile.subprogram";
  let description = [{
    Arrives: `func.func`s of one block with linalg and tensor ops, and any other
    ops between them. Leaves: per part of the plan a `tile.subprogram` that
    holds its expressions, raised, with a `tile.connect` on every edge between
    them that names its scope; domain dims of one point are gone. Parts packed
    into one kernel stand next to each other under one name. Ops of the block
    are put into an order that allows it; ops with effects, unregistered ones
    among them, keep theirs.

    The plan is made for `target`, or read from `plan-in`, checked, and carried
    out as it is; one that is not legal is an error at the function. With
    `plan-in`, `plan-out` and `report` the module may hold one function with
    tensor expressions. Every edge left at scope `launch` and every op left to
    IREE gets a missed remark with the reason. After a pass failed on a kernel,
    `unfused` (or `fuse=false`) and `left` name ops that the next plan keeps
    apart, or leaves to IREE.
    See test/passes/plan/apply/form-subprograms.mlir.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"blockBytes", "block-bytes", "int64_t", "0",
           "memory of a block that plans count on, where code took more than was counted; 0: the target's">,
    Option<"policy", "policy", "std::string", "\"greedy\"", "how to plan: greedy">,
    Option<"takeSingles", "take-singles", "bool", "true", "take what IREE would run as one dispatch too">,
    Option<"pack", "pack", "bool", "true", "pack small independent parts into one kernel">,
    Option<"gridSync", "grid-sync", "bool", "true",
           "join kernels by barriers of the grid, where the target has them">,
    Option<"numerics", "numerics", "std::string", "\"default\"",
           "what kernels may do to numbers: default, or strict: every rounding as in the graph">,
    Option<"planIn", "plan-in", "std::string", "\"\"", "JSON plan to carry out instead of planning">,
    Option<"planOut", "plan-out", "std::string", "\"\"", "write the plan as JSON">,
    Option<"report", "report", "std::string", "\"\"", "write what was built, and why, as JSON">];
  let statistics = [Statistic<"numKernels", "kernels", "kernels formed">,
                    Statistic<"numTaken", "taken", "ops taken into kernels">,
                    Statistic<"numLeft", "declined", "ops left to IREE, each with a missed remark">,
                    Statistic<"numLaunch", "launch-edges", "edges left at scope launch, each with a missed remark">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def RaiseTensorExprs : Pass<"tile-raise", "::mlir::func::FuncOp"> {
  let summary = "Raise tensor ops to tile.expr";
  let description = [{
    Arrives: linalg and tensor ops. Leaves: a `tile.expr` for each that is a
    static tensor expression and no contraction; accumulators and padding values
    are constants, splat constants are scalars of the body. Reshapes, slices,
    pads and concats become maps and guards. Others are left, with a missed
    remark that says why. See test/passes/plan/apply/raise.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRaised", "raised", "ops raised">,
                    Statistic<"numLeft", "left", "ops left as they were, each with a missed remark">];
}

def ApplyNumerics : Pass<"tile-apply-numerics", "::tilewright::tile::SubprogramOp"> {
  let summary = "Make the roundings and freedoms of a subprogram's numerics explicit in its bodies";
  let description = [{
    Arrives: expressions whose bodies compute with bf16 and f16 as such. Leaves:
    arithmetic in f32 alone, with an `arith.truncf` after each operation that
    rounds and an `arith.extf` where a stored value is read. Where `numerics`
    relaxes roundings, one that only arithmetic of the same body reads is gone;
    the `unrounded` edges are `tile-compose`'s to carry out. Where math is fast,
    divisions allow reciprocals (`arcp`). A subprogram without `numerics` is
    taken as relaxed and fast. See test/passes/plan/apply/apply-numerics.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numLeftOut", "left-out", "roundings left out inside bodies">];
}

def ComposeExprs : Pass<"tile-compose", "::mlir::func::FuncOp"> {
  let summary = "Fold producers into their consumers by composing index maps";
  let description = [{
    Souffle's vertical transformation (section 6.2). Inside a `tile.subprogram`
    it carries out exactly the `tile.connect` edges of scope `thread`; a
    reduction behind such an edge is an error. Outside subprograms it folds every
    one-relies-on-one producer whose folding repeats no arithmetic: movement
    always, arithmetic when its one reader reads each element at most once.
    Always exact. See test/passes/plan/apply/compose.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numInlined", "inlined", "producers folded into a consumer">,
                    Statistic<"numKept", "kept", "producers kept, each with a missed remark">];
}

def VerifyPlanned : Pass<"tile-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the planned graph before it is lowered";
  let description = [{
    Arrives and leaves: `tile.subprogram`s. Refuses, with an error at the op:
    (G1) an edge between two expressions without a connect; (G2) a scope that
    cannot be carried out, or `thread` out of a reduction; (G3) a root without
    `dims`; (G4) a grid dim that a root reduces, or that a root lacks which is
    reduced or yielded: others keep their values for the tiles along it, or
    compute them again; (G5) a block edge that is read across tiles of the grid. See test/passes/plan/apply/verify-planned-errors.mlir.
  }];
}

def PrintSubprograms : PlanningPass<"tile-print-subprograms"> {
  let summary = "Print the plan, and each part of it as a function of its own, as JSON";
  let description = [{
    Changes nothing. Arrives: a module with one function that holds tensor
    expressions. For every part of its plan there is a module with a function
    that computes the same from what the part reads: parts that are equal but
    for names and places, as those of repeated layers, give the same text. See
    test/passes/plan/apply/print-subprograms.mlir.
  }];
  let options = planning;
}

#endif

// Passes of passes/program/movement: rewriting of movement in tile programs.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_PASSES_TD
#define TILEWRIGHT_PROGRAM_MOVEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InsertSyncs : Pass<"tile-insert-syncs", "::tilewright::tile::ProgramOp"> {
  let summary = "Have the threads of a block meet where they must, no further out than they must";
  let description = [{
    PowerFusion 5.1, inside a tile. Arrives: tile programs for a GPU, whose parts
    may say how many threads a block has (`tile.threads`) and how many share a
    row (`tile.group`), with buffers that have places or do not; with syncs in
    their tiles, or without; those of a cluster stay. Leaves: a `tile.sync` in front of each op that
    touches what one before it wrote, or writes what one before it touched, if
    none stands between already, of the innermost scope at which those threads
    meet: `thread` where every element is its own thread's, which is no barrier
    at all, `warp`, else `block`. The last op of a tile of several is what its
    threads wait for before the next. Parts with buffers for all tiles, or with
    nests in loops, keep their syncs, with a missed remark.
    See test/passes/program/movement/insert-syncs.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
  let statistics = [Statistic<"numThread", "thread", "hand-overs that stay with their thread">,
                    Statistic<"numWarp", "warp", "syncs of a warp">,
                    Statistic<"numBlock", "block", "syncs of a block">,
                    Statistic<"numLeft", "left", "parts left as they are, each with a missed remark">];
}

def PrintMovement : Pass<"tile-print-movement", "::tilewright::tile::ProgramOp"> {
  let summary = "Print what each access of a tile moves, and which threads move it";
  let description = [{
    PowerFusion 4. Changes nothing. A remark on every load, store and nest that
    accumulates: what a tile touches of the slice, as `num x width by stride`
    (segments of neighbouring elements, in elements), and for each bit of the
    index of a thread, the lowest first, which index of an element decides it:
    `d1/4` is the lowest bit of the second index divided by 4, `0` threads
    without the bit alone, `*` both, `?` unknown.
    See test/passes/program/movement/movement.mlir.
  }];
}

def RewriteMovement : Pass<"tile-rewrite-movement", "::mlir::ModuleOp"> {
  let summary = "Rewrite movement between the phases of tile programs to a fixed point";
  let description = [{
    PowerFusion's Algorithm 1. Arrives: tile programs, next to their launches or
    in a module nested beside them, whose phases hand tensors over through
    outputs; an output that no launch's user reads is a *hand-over* and may go.
    Leaves: programs to which no rule applies any more. `sync` works out where
    the threads of two phases meet: where that is inside a block, one part does
    both, with no barrier of the grid between, and what they alone hand over is a
    buffer of the block, each if there is room beside the other buffers and the
    operands of contractions; where they do not meet at all, the barrier is gone.
    `swap` takes elementwise compute behind the movement that follows it. `merge`
    has a reader load what a hand-over was copied from (read after write), and
    loads one element once in a nest (read after read); what nobody reads then is
    neither stored nor computed, and its binding is gone. All are exact.

    Each rule can be run alone. A remark counts for each program how often which
    of them applied. A hand-over stays, with a missed remark that says
    why: a reduction writes it, its reader takes elements that are written in
    several ways, or more than once after arithmetic, and so on.
    See test/passes/program/movement/rewrite-movement.mlir.
  }];
  let options = [ListOption<"rules", "rules", "std::string", "of sync, swap and merge; none given: all">,
                 Option<"target", "target", "std::string", "\"sm_80\"",
                        "target name or JSON file, whose blocks have memory for buffers">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRounds", "rounds", "rounds until nothing merged">,
                    Statistic<"numJoined", "joined", "barriers of the grid that became syncs in a block">,
                    Statistic<"numDropped", "dropped", "barriers of the grid between what is independent">,
                    Statistic<"numRaised", "raised", "hand-overs that became buffers of a block">,
                    Statistic<"numSwapped", "swapped", "elementwise computes swapped with movement">,
                    Statistic<"numReadAfterWrite", "read-after-write", "loads merged with the movement before">,
                    Statistic<"numReadAfterRead", "read-after-read", "loads merged with an equal one">,
                    Statistic<"numKept", "kept", "hand-overs that stay, each with a missed remark">];
}

#endif

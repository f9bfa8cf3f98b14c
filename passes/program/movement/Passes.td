// Passes that analyse and rewrite movement in tile programs.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_PASSES_TD
#define TILEWRIGHT_PROGRAM_MOVEMENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InsertSyncs : Pass<"tile-insert-syncs", "::tilewright::tile::ProgramOp"> {
  let summary = "Insert the syncs that the threads of a block need, with the innermost scopes";
  let description = [{
    Implements PowerFusion 5.1 inside a tile. Input: tile programs for a GPU, with or
    without syncs and with or without offsets of buffers. A part may state the
    threads of a block (`tile.threads`) and how many of them share a row
    (`tile.group`). Output: a `tile.sync` in front of each op that accesses what an
    op before it wrote, or writes what an op before it accessed, unless a sync in
    between already orders them. Its scope is the innermost one that contains the
    threads involved: `thread` if every element stays with its thread, which takes no
    barrier at all, then `warp`, then `block`. The last op of a part with several
    tiles is the sync that its threads wait for before the next tile. Cluster syncs
    stay. Parts with buffers for all tiles, or with nests in loops, keep their syncs,
    with a missed remark. See test/passes/program/movement/insert-syncs.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
  let statistics = [Statistic<"numThread", "thread", "hand-overs within a thread, which need no sync">,
                    Statistic<"numWarp", "warp", "syncs of a warp">,
                    Statistic<"numBlock", "block", "syncs of a block">,
                    Statistic<"numLeft", "left", "parts that keep their syncs, each with a missed remark">];
}

def PrintMovement : Pass<"tile-print-movement", "::tilewright::tile::ProgramOp"> {
  let summary = "Print the movement of each access of a tile, and the threads that perform it";
  let description = [{
    Implements the analysis of PowerFusion 4; changes nothing. It emits a remark on
    every load, store and accumulating nest with two parts. The first is the pattern
    of the slice that a tile touches, as `num x width by stride`: segments of
    contiguous elements, with lengths in elements. The second tells, for each bit of
    a thread's index from the lowest up, which index of an element decides the bit:
    `d1/4` is the lowest bit of the second index divided by 4, `0` stands for threads
    with the bit clear, `*` for both values, `?` for unknown.
    See test/passes/program/movement/movement.mlir.
  }];
}

def RewriteMovement : Pass<"tile-rewrite-movement", "::mlir::ModuleOp"> {
  let summary = "Rewrite movement between the phases of tile programs until nothing changes";
  let description = [{
    Implements PowerFusion's Algorithm 1. Input: tile programs, next to their launches
    or in a module nested beside them, whose phases hand tensors over through
    outputs. An output that no user of a launch reads is a *hand-over* and may be
    removed. Output: programs to which no rule applies any more. All rules are exact.

    `sync` computes the scope at which the threads of two phases synchronise. If it
    is inside a block, the two parts become one, without a grid barrier in between,
    and a hand-over that only they use becomes a buffer of the block, if there is
    room for it beside the other buffers and the operands of contractions. If the
    phases are independent, the barrier is removed. `swap` moves elementwise compute
    behind the movement that follows it. `merge` lets a reader load the source from
    which a hand-over was copied (read after write), and loads an element only once
    per nest (read after read); values that nothing reads any more are neither stored
    nor computed, and their bindings are removed.

    Each rule can be run alone. A remark counts for each program how often each rule
    applied. A hand-over that stays gets a missed remark with the reason: a reduction
    writes it, its reader takes elements that are written in several ways, or more
    than once after arithmetic, and so on.
    See test/passes/program/movement/rewrite-movement.mlir.
  }];
  let options = [ListOption<"rules", "rules", "std::string", "rules to apply (sync, swap, merge); none means all">,
                 Option<"target", "target", "std::string", "\"sm_80\"",
                        "target name or JSON file; its blocks must have memory for the buffers">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRounds", "rounds", "rounds until nothing merged">,
                    Statistic<"numJoined", "joined", "grid barriers that became syncs inside a block">,
                    Statistic<"numDropped", "dropped", "grid barriers removed between independent phases">,
                    Statistic<"numRaised", "raised", "hand-overs that became buffers of a block">,
                    Statistic<"numSwapped", "swapped", "elementwise computes swapped with movement">,
                    Statistic<"numReadAfterWrite", "read-after-write", "loads merged with the movement before them">,
                    Statistic<"numReadAfterRead", "read-after-read", "loads merged with an equal one">,
                    Statistic<"numKept", "kept", "hand-overs that stay, each with a missed remark">];
}

#endif

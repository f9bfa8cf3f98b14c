// Models the contractions of a fusion group as a GPU block computes them with the present tiles of the space: how its
// threads share each contraction, the registers and shared memory it needs, and its predicted time.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKCONTRACTIONS_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKCONTRACTIONS_H

#include "passes/layout/GemmTiling.h"
#include "passes/cost/ProductCost.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"
#include "passes/target/Warpgroups.h"

namespace tilewright {

/// A contraction of the group, and its dims in the iteration space.
struct BlockContraction {
  const GroupRoot *root = nullptr;
  unsigned lhsInput = 0;
  MicroKernel kernel;
  std::optional<MicroKernel> warpgroupKernel; ///< micro kernel for warpgroups, if there is one
  int64_t m = -1, n = -1;                     ///< dims of the space that are M and N; -1: none
  double k = 1;                               ///< size of K, all reduced dims together
  int64_t longestK = 1;                       ///< extent of the reduced dim that is walked in steps
  int64_t lhsBytes = 1, rhsBytes = 1;
  double lhsCopies = 0, rhsCopies = 0;           ///< instructions of a thread per copied element of lhs and of rhs
  bool lhsResident = false, rhsResident = false; ///< true if another nest leaves the operand in shared memory
  bool lhsAlongK = true, rhsAlongK = true;       ///< true if K is contiguous in the operand
  bool lhsShifted = false, rhsShifted = false;   ///< true if lines begin inside a word
  bool alongK = true;                            ///< true if the same dim of K is innermost in both operands
  bool lhsWalked = false;                        ///< true if lhs differs between blocks of the walked dim
  bool inOrder = false; ///< true if strict numerics accumulate narrow floats in the graph's order
};

class BlockContractions {
public:
  /// A block with the present tiles, and how its threads share each contraction.
  struct Candidate {
    BlockWork work;
    llvm::SmallVector<GemmTiling> tilings;
    bool prefetches = false; ///< true if copies for a contraction start during the previous contraction
  };

  /// Keeps a reference to `space`. All queries refer to its tiles at the time of the query.
  BlockContractions(const TensorGraph &graph, const Target &target, const IterationSpace &space, int64_t walked,
                    llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), walked(walked), footprint(footprint) {}

  /// Collects the contractions. Returns why no block can compute them, or an empty string.
  std::string collect();
  /// Returns true if every contraction has more than half the rows that a warpgroup multiplies at once. With a single
  /// row, all other rows of the instruction would repeat it, and copying them would cost as much.
  bool haveRowsForWarpgroups() const;
  /// Switches all contractions to warpgroup micro kernels. Returns false and changes nothing if one of them cannot
  /// switch.
  bool takeWarpgroups();
  std::optional<Candidate> candidate(int64_t threads, int64_t kSlices);
  /// Returns the seconds in which `blocks` blocks, `together` of them on each SM, compute all tiles.
  double secondsOf(const Candidate &block, double blocks, double together) const;
  /// Returns the bytes of operands that all blocks request from the L2.
  double bytesOfBlocks() const;
  llvm::ArrayRef<BlockContraction> all() const { return contractions; }
  /// Returns true if a contraction or a reduction reads results of another nest in shared memory.
  bool readsBufferedResults() const { return readsBuffers; }
  /// Returns why the first tile does not fit a block; empty if every tile tried so far fits.
  const std::string &reason() const { return firstReason; }

  std::optional<BlockWork> workWith(int64_t threads);
  double secondsWith(int64_t threads, double blocks, double together);
  SharedTiles sharedWith(int64_t threads);
  /// Returns the seconds if workgroups share tiles (stream-K). Each workgroup finishes a tile that another one started
  /// and hands over its accumulators. Then it starts its last tile and adds the partials of the workgroups after it.
  double sharedSecondsWith(int64_t threads, double blocks, double together);

private:
  /// Shared memory for the operands of all contractions: with one contraction after another, and with prefetching
  /// across contractions (0: none can be prefetched).
  struct ScratchBytes {
    int64_t sequential = 0, prefetching = 0;
  };

  /// Returns a thread's copy instructions per element of an operand, address arithmetic included.
  double copyInstructions(const GroupRoot &root, unsigned operand, bool shifted) const;
  /// Returns the block that the space describes, but with `threads` threads.
  std::optional<Candidate> presentBlock(int64_t threads);
  /// Returns true if a tile is a single contraction in one loop of steps, whose accumulators are read by no other nest
  /// and may be added up in parts.
  bool isOneLoop() const;
  /// Returns true if each SM has at most one block and the block has a single contraction and no reduction.
  bool isAlone() const {
    return contractions.size() == 1 && !readsBuffers && walked < 0 &&
           space.numTiles() <= static_cast<int64_t>(target.cores);
  }
  static int64_t stepsOf(const BlockContraction &contraction, const GemmTiling &tiling) {
    return llvm::divideCeil(contraction.longestK, tiling.step);
  }
  /// Returns how often a tile computes the contraction: once for each point of its batch dims, and once for each block
  /// of a walked dim that the contraction does not reduce.
  double timesOf(const BlockContraction &contraction) const;
  int64_t tileOf(int64_t place) const { return place < 0 ? 1 : space.tiles[place]; }
  /// Facts about the present tiles that hold for any number of threads and any micro kernel. Each is computed when it is
  /// first needed, and forgotten when the tiles change.
  struct TileFacts {
    std::vector<int64_t> tiles;
    std::optional<int64_t> bufferBytes; ///< what `footprint` returns
    std::optional<GroupWork> work;      ///< of which only operations besides the products are used
  };
  TileFacts &tileFacts() const;
  ProductWork workOf(const BlockContraction &contraction) const;
  /// Returns true if the first steps can be prefetched while the previous contraction is multiplied.
  bool canPrefetch(const BlockContraction &contraction) const;
  /// Returns true if the first contraction of a block is prefetched during the last contraction of the previous block
  /// of the walked dim.
  bool isPrefetchedInBlockBefore() const { return walked >= 0 && contractions.size() > 1 && space.blocksPerTile() > 1; }
  /// Returns true if lhs is the same in all blocks of the walked dim and can stay resident in shared memory.
  bool keepsLhs(const BlockContraction &contraction) const;
  /// Returns true if K is a single dim.
  static bool hasOneK(const BlockContraction &contraction) {
    return contraction.k == static_cast<double>(contraction.longestK);
  }
  /// Returns true if each block reads a part of rhs that no other block reads, because one tile has all of M.
  bool streams(const BlockContraction &contraction) const {
    return !contraction.rhsResident &&
           (contraction.m < 0 || space.extents[contraction.m] <= space.tiles[contraction.m]);
  }
  /// Returns the seconds DRAM takes to deliver rhs for all tiles, if blocks stream it, else 0.
  double rhsStreamSeconds(const BlockContraction &contraction, const GemmTiling &tiling, double tiles,
                          double blocks) const;
  /// Returns the seconds in which blocks exchange the results of rows that they share: at each grid barrier, partial
  /// results go to the L2 and come back.
  double exchangeSeconds() const;
  /// Returns the bytes of operands that one block requests from the L2.
  double bytesOfBlock(const BlockContraction &contraction) const;
  /// Returns the seconds an SM spends on a block besides its contractions: shared memory traffic, special functions,
  /// and other instructions at the rate that `threads` threads issue them.
  double otherSeconds(double threads) const;
  /// Returns the cycles in which threads fill buffers from global memory. A thread loads one vector after another and
  /// waits for each.
  double fillCycles(double threads) const;
  /// Records a reason unless one is recorded. Tiles grow from candidate to candidate, so the first reason has the
  /// smallest requirement.
  void refuse(std::string why) {
    if (firstReason.empty())
      firstReason = std::move(why);
  }
  /// Returns the alignment of buffers for operands.
  int64_t alignment() const { return isOfWarpgroup(space.block) ? kWarpgroupAlignment : GemmTiling::kSlotAlignment; }
  /// Returns the shared memory for operands. Resident operands occupy it in addition to all others.
  ScratchBytes scratchBytes(llvm::ArrayRef<GemmTiling> tilings, int64_t threads) const;
  /// Returns the L2 traffic of all blocks, in whole sectors.
  double l2TrafficBytes(llvm::ArrayRef<GemmTiling> tilings) const;

  const TensorGraph &graph;
  const Target &target;
  const IterationSpace &space;
  int64_t walked;
  llvm::function_ref<int64_t()> footprint;
  std::vector<BlockContraction> contractions;
  bool readsBuffers = false; ///< true if a contraction or a reduction reads results of another nest in shared memory
  bool reduces = false;      ///< true if a reduction does so
  int64_t combinedBytes = 4; ///< bytes per combined row; narrower results are rounded after combining
  std::string firstReason;
  mutable TileFacts facts;
};

} // namespace tilewright

#endif

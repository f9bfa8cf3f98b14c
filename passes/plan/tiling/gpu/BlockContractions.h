// The contractions of a part as a block of a GPU computes them with the tiles that the space has: how its threads share
// each of them, what that takes, and the seconds that it is predicted to take.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKCONTRACTIONS_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKCONTRACTIONS_H

#include "passes/cost/GemmTiling.h"
#include "passes/cost/ProductCost.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"
#include "passes/target/Warpgroups.h"

namespace tilewright {

/// A contraction of the part, with the places of its dims in the space.
struct BlockContraction {
  const GroupRoot *root = nullptr;
  unsigned rowInput = 0;
  MicroKernel kernel;
  std::optional<MicroKernel> groupKernel; ///< of warpgroups
  int64_t row = -1, lane = -1;            ///< places; -1: none
  double terms = 1;                       ///< of a sum
  int64_t longest = 1;                    ///< the reduced dim that is walked in steps
  int64_t rowBytes = 1, laneBytes = 1;
  double rowCopies = 0, laneCopies = 0;             ///< instructions of a thread to copy an element of either operand
  bool rowsResident = false, lanesResident = false; ///< what another nest leaves in shared memory
  bool lhsAlongK = true, rhsAlongK = true;          ///< how the operands lie
  bool rowsShifted = false, lanesShifted = false;   ///< lines begin anywhere in a word
  bool alongK = true;                               ///< the same terms lie innermost in both
  bool rowsWalked = false;                          ///< blocks of the walked dim have rows of their own
  bool inOrder = false;                             ///< strict numerics add up narrow floats as the graph does
};

class BlockContractions {
public:
  static constexpr int64_t kMostAccumulators = 64; ///< of a thread that loads what it multiplies

  /// A block with the tiles as they are, and how its threads share each contraction.
  struct Candidate {
    BlockWork work;
    llvm::SmallVector<GemmTiling> tilings;
    bool ahead = false; ///< copies for a contraction begin while the one before it is multiplied
  };

  /// `space` may get other tiles later, of which the questions below are.
  BlockContractions(const TensorGraph &graph, const Target &target, const IterationSpace &space, int64_t walked,
                    llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), walked(walked), footprint(footprint) {}

  /// Finds the contractions. Returns why no block computes them, or nothing.
  std::string collect();
  /// More than half of those that the instruction multiplies: a single one, which all of them would repeat, would be
  /// copied as often.
  bool haveRowsForWarpgroups() const;
  /// Whether all contractions can be theirs.
  bool takeWarpgroups();
  std::optional<Candidate> candidate(int64_t threads, int64_t kSlices);
  /// In which so many blocks, `together` of them on an SM, compute all tiles.
  double secondsOf(const Candidate &block, double blocks, double together) const;
  /// Of the operands, past L1, in all blocks.
  double bytesOfBlocks() const;
  llvm::ArrayRef<BlockContraction> all() const { return products; }
  /// Whether a contraction or a reduction reads what another nest leaves in shared memory.
  bool handsResultsOver() const { return handsOver; }
  /// Why no tile so far fits a block; empty if none has been tried.
  const std::string &reason() const { return whyNone; }

  std::optional<BlockWork> workWith(int64_t threads);
  double secondsWith(int64_t threads, double blocks, double together);
  SharedTiles sharedWith(int64_t threads);
  /// Each workgroup begins with the rest of a tile, leaves its sums, and ends with a part of one, to which it adds what
  /// those behind it have left.
  double sharedSecondsWith(int64_t threads, double blocks, double together);

private:
  /// What the steps of all contractions take where one begins behind the other, and where copies begin ahead; 0: none
  /// do.
  struct ScratchBytes {
    int64_t apart = 0, ahead = 0;
  };

  /// Of a thread for each element of an operand, addresses included.
  double copyInstructions(const GroupRoot &root, unsigned operand, bool shifted) const;
  /// The block that the space says, but with so many threads.
  std::optional<Candidate> chosen(int64_t threads);
  /// Whether a tile is one contraction in one loop of steps, of sums that nothing else in the block waits for and that
  /// may be added up in parts.
  bool isOneLoop() const;
  /// Whether no SM has more than one of the blocks, and that no nest that sums but one.
  bool isAlone() const {
    return products.size() == 1 && !handsOver && walked < 0 && space.numTiles() <= static_cast<int64_t>(target.cores);
  }
  static int64_t stepsOf(const BlockContraction &product, const GemmTiling &tiling) {
    return llvm::divideCeil(product.longest, tiling.step);
  }
  /// How often a tile computes what the product has of it: for each point of its other dims, and once for each block of
  /// a dim that the product does not sum.
  double timesOf(const BlockContraction &product) const;
  int64_t tileOf(int64_t place) const { return place < 0 ? 1 : space.tiles[place]; }
  ProductWork workOf(const BlockContraction &product) const;
  /// Whether its first steps can be copied while the contraction before it is multiplied.
  bool beginsAhead(const BlockContraction &product) const;
  /// Where blocks of a dim are walked, copies for the first contraction of a block begin during the last one of the
  /// block before.
  bool isPrefetchedInBlockBefore() const { return walked >= 0 && products.size() > 1 && space.blocksPerTile() > 1; }
  /// Whether the rows are the same in all blocks of the walked dim, and may stay in shared memory meanwhile.
  bool keepsRows(const BlockContraction &product) const;
  /// Whether its terms are those of one dim.
  static bool isOneTerm(const BlockContraction &product) {
    return product.terms == static_cast<double>(product.longest);
  }
  /// Whether each block has lanes of its own: one tile has all rows.
  bool streams(const BlockContraction &product) const {
    return !product.lanesResident && (product.row < 0 || space.extents[product.row] <= space.tiles[product.row]);
  }
  /// In which DRAM gives the lane operand of all tiles, if they stream it.
  double streamed(const BlockContraction &product, const GemmTiling &tiling, double tiles, double blocks) const;
  /// Of the operands, past L1.
  double bytesOfBlock(const BlockContraction &product) const;
  /// The seconds in which an SM does what lies beside a block's contractions: shared memory, special functions, and
  /// the rest at the rate that so many threads reach.
  double besideSeconds(double threads) const;
  /// Threads that fill a buffer from global memory take one vector after another, and wait for each.
  double fillCycles(double threads) const;
  /// Tiles grow from candidate to candidate: the first one says what the least of them would need.
  void refuse(std::string why) {
    if (whyNone.empty())
      whyNone = std::move(why);
  }
  /// Of what operands pass through.
  int64_t alignment() const { return isOfWarpgroup(space.block) ? kWarpgroupAlignment : kSlotAlignment; }
  /// What a loop keeps is there beside the others.
  ScratchBytes scratchBytes(llvm::ArrayRef<GemmTiling> tilings, int64_t threads) const;
  /// Past L1, in all blocks, in whole sectors.
  double l2TrafficBytes(llvm::ArrayRef<GemmTiling> tilings) const;

  static constexpr int64_t kSlotAlignment = 128;

  const TensorGraph &graph;
  const Target &target;
  const IterationSpace &space;
  int64_t walked;
  llvm::function_ref<int64_t()> footprint;
  std::vector<BlockContraction> products;
  bool handsOver = false;    ///< a contraction or a reduction reads what another nest leaves in shared memory
  bool reduces = false;      ///< it is a reduction that does
  int64_t combinedBytes = 4; ///< of what rows of sums are combined to; narrower results are rounded behind it
  std::string whyNone;
};

} // namespace tilewright

#endif

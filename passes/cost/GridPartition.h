// Which ops of a subprogram share a kernel with barriers of the grid between them, and where it is cut into launches
// (Souffle 5.4): breadth first and greedily, an op joins the kernel as long as all blocks are sure to be resident at
// once and the kernel is predicted to take no longer than two launches. Pure.
//
// Souffle asks that the grid of every op fits; ops that walk their tiles are given a smaller grid here. It counts
// occupancy as measured; here launch bounds force the assembler to the registers that the proof counts on.
#ifndef TILEWRIGHT_COST_GRIDPARTITION_H
#define TILEWRIGHT_COST_GRIDPARTITION_H

#include "passes/cost/BlockLatency.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace tilewright {

/// Registers of a thread that are counted on where nobody has said how many it takes.
constexpr int64_t kUnknownRegisters = 64;

/// An op, as a kernel of its own would run it.
struct GridStage {
  std::string name;
  BlockWork work;                             ///< its grid, threads, shared memory and registers among it
  bool walks = true;                          ///< whether a block can take several of its tiles, one after another
  llvm::SmallVector<unsigned> producers = {}; ///< stages whose results it reads
  /// In which so many of its blocks, `together` of them and others on an SM, compute all its tiles; null: blockLatency
  /// of its work says it.
  std::function<double(double blocks, double together)> seconds = nullptr;
  int64_t steps = 0; ///< of a tile, if blocks can share tiles (stream-K); 0: they cannot
  /// As `seconds`, of blocks that share all tiles evenly; without the barrier at which they wait for each other.
  std::function<double(double blocks, double together)> sharedSeconds = nullptr;
};

/// The blocks that a stage gets in a kernel.
struct GridShare {
  unsigned stage;
  int64_t blocks;
  bool sharesTiles = false; ///< they share the steps of all tiles, with a barrier of their own
};

struct GridKernel {
  std::vector<std::vector<GridShare>> phases;                              ///< a barrier between two of them
  int64_t blocks = 0;                                                      ///< of its widest phase
  int64_t threads = 0, sharedBytes = 0, registers = 0, residentBlocks = 0; ///< of a block, thread, SM
  double seconds = 0;                                                      ///< launch and barriers included
};

/// Why a stage begins another kernel than the one before it.
struct GridCut {
  unsigned stage;
  std::string reason;
};

struct GridPartition {
  std::vector<GridKernel> kernels; ///< in launch order
  std::vector<GridCut> cuts;

  double seconds() const;
  /// Empty if every stage stands behind its producers, and all blocks of kernels with barriers are resident at once.
  std::string verify(llvm::ArrayRef<GridStage> stages, const Target &target) const;
  void print(llvm::ArrayRef<GridStage> stages, llvm::raw_ostream &os) const;
};

/// What decides whether a stage joins.
struct GridRules {
  bool allowed = true; ///< grid scope at all
  bool byCost = true;  ///< not where two launches are predicted faster
};

GridPartition partitionAtGridSync(llvm::ArrayRef<GridStage> stages, const Target &target, GridRules rules = {});

/// Blocks that are sure to be resident at once on every device that the target stands for.
int64_t coResidentBlocks(const Target &target, int64_t residentBlocks);

/// Whether blocks that take so many bytes of shared memory, for copies that begin ahead, are as many on an SM as there
/// are for it.
bool hasRoomForPrefetch(const Target &target, const BlockWork &block, int64_t sharedBytes, int64_t sms);

} // namespace tilewright

#endif

// Decides which ops of a subprogram share a kernel, with grid barriers between them, and where the subprogram is cut
// into launches (Souffle 5.4). Breadth first and greedily, an op joins the current kernel if all blocks are certain to
// be resident at once and the kernel is predicted to take no longer than two launches. Everything here is a pure
// function.
//
// Souffle requires the grid of every op to fit; here, ops that walk their tiles get a smaller grid. Souffle measures
// occupancy; here, launch bounds force the assembler to the register count that the proof relies on.
#ifndef TILEWRIGHT_COST_GRIDPARTITION_H
#define TILEWRIGHT_COST_GRIDPARTITION_H

#include "passes/cost/BlockLatency.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace tilewright {

/// Registers per thread that are assumed where the number is unknown.
constexpr int64_t kUnknownRegisters = 64;

/// An op as a kernel of its own would run it.
struct GridStage {
  std::string name;
  BlockWork work;                             ///< its grid, threads, shared memory and registers, among others
  bool walks = true;                          ///< true if a block can process several of the stage's tiles in turn
  llvm::SmallVector<unsigned> producers = {}; ///< stages whose results this one reads
  /// Predicts the seconds in which `blocks` of its blocks compute all tiles, with `together` blocks of the kernel per
  /// SM. If null, blockLatency of `work` predicts it.
  std::function<double(double blocks, double together)> seconds = nullptr;
  int64_t steps = 0; ///< steps along K per tile if blocks can share tiles (stream-K); 0: they cannot
  /// Predicts the seconds if the blocks share all tiles evenly, without the barrier at which they wait for each other.
  std::function<double(double blocks, double together)> sharedSeconds = nullptr;
};

/// The blocks that a stage gets in a kernel.
struct GridShare {
  unsigned stage;
  int64_t blocks;
  bool sharesTiles = false; ///< true if they share the steps of all tiles, with a barrier of their own
};

struct GridKernel {
  std::vector<std::vector<GridShare>> phases; ///< phases in order, with a grid barrier between two
  int64_t blocks = 0;                         ///< blocks of the widest phase
  int64_t threads = 0, sharedBytes = 0, registers = 0, residentBlocks = 0; ///< per block, block, thread and SM
  double seconds = 0;                                                      ///< launch and barriers included
};

/// The reason why a stage begins a new kernel.
struct GridCut {
  unsigned stage;
  std::string reason;
};

struct GridPartition {
  std::vector<GridKernel> kernels; ///< in launch order
  std::vector<GridCut> cuts;

  double seconds() const;
  /// Returns an empty string if every stage comes after its producers and all blocks of kernels with barriers are
  /// resident at once, else the error.
  std::string verify(llvm::ArrayRef<GridStage> stages, const Target &target) const;
  void print(llvm::ArrayRef<GridStage> stages, llvm::raw_ostream &os) const;
};

/// The rules for joining a stage to the current kernel.
struct GridRules {
  bool allowed = true; ///< true if grid scope may be used at all
  bool byCost = true;  ///< true if two launches that are predicted faster win
};

GridPartition partitionAtGridSync(llvm::ArrayRef<GridStage> stages, const Target &target, GridRules rules = {});

/// Returns how many blocks are certain to be resident at once on every device that the target stands for.
int64_t coResidentBlocks(const Target &target, int64_t residentBlocks);

/// Returns true if growing the shared memory of a block to `sharedBytes`, to prefetch into it, does not reduce the
/// number of blocks that run on an SM at once.
bool hasRoomForPrefetch(const Target &target, const BlockWork &block, int64_t sharedBytes, int64_t sms);

} // namespace tilewright

#endif

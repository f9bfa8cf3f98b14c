// The phases of a kernel on a GPU, with a grid barrier between two: which ops run in which phase, and how many blocks
// each op gets, so that all blocks are certain to be resident at once. Everything here is a pure function.
//
// Souffle 5.4 requires the grid of every op to fit; here, ops that walk their tiles get a smaller grid. Souffle
// measures occupancy; here, launch bounds force the assembler to the register count that the proof relies on.
#ifndef TILEWRIGHT_COST_GRIDPHASES_H
#define TILEWRIGHT_COST_GRIDPHASES_H

#include "passes/cost/BlockLatency.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>
#include <string>
#include <vector>

namespace tilewright {

/// An op as a kernel of its own would run it.
struct GridStage {
  std::string name;
  BlockWork work;                             ///< its grid, threads, shared memory and registers, among others
  bool walks = true;                          ///< true if a block can process several of the stage's tiles in turn
  bool waits = false; ///< true if blocks wait for each other within a tile, so that no other stage runs beside this one
  llvm::SmallVector<unsigned> producers = {}; ///< stages whose results this one reads
  /// Predicts the seconds in which `blocks` of its blocks compute all tiles, with `together` blocks of the kernel per
  /// SM. If null, blockLatency of `work` predicts it.
  std::function<double(double blocks, double together)> seconds = nullptr;
  int64_t steps = 0; ///< steps along K per tile if blocks can share tiles (stream-K); 0: they cannot
  /// Predicts the seconds if the blocks share all tiles evenly, without the barrier at which they wait for each other.
  std::function<double(double blocks, double together)> sharedSeconds = nullptr;
};

/// The blocks that an op gets in a kernel.
struct GridShare {
  unsigned stage;
  int64_t blocks;
  bool sharesTiles = false; ///< true if they share the steps of all tiles, with a barrier of their own
};

struct GridKernel {
  std::vector<std::vector<GridShare>> phases; ///< phases in order, with a grid barrier between two
  int64_t blocks = 0;                         ///< blocks of the widest phase
  int64_t threads = 0, sharedBytes = 0, registers = 0, residentBlocks = 0; ///< per block, block, thread and SM
  double seconds = 0; ///< predicted, launch and barriers included; 0: not predicted
};

/// Returns the stages such that producers precede consumers, level by level.
llvm::SmallVector<unsigned> breadthFirst(llvm::ArrayRef<GridStage> stages);

/// Returns a kernel with this stage alone.
GridKernel kernelOf(llvm::ArrayRef<GridStage> stages, unsigned stage, const Target &target);

/// Returns the kernel with one more stage, in the phase after its producers. No stage has its blocks yet.
GridKernel withStage(GridKernel kernel, llvm::ArrayRef<GridStage> stages, unsigned stage, const Target &target);

/// Assigns blocks to every stage of every phase. Returns an empty string, or why they cannot all be resident.
std::string shareOut(GridKernel &kernel, llvm::ArrayRef<GridStage> stages, const Target &target);

} // namespace tilewright

#endif

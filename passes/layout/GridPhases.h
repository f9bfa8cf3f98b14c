// The phases of a kernel on a GPU, with a grid barrier between two: which ops run in which phase, and how many blocks
// each op gets, so that all blocks are certain to be resident at once. The planner predicts with it, and the passes on
// programs prove with it that the plan can be carried out. Everything here is a pure function.
//
// Souffle 5.4 requires the grid of every op to fit; here, ops that walk their tiles get a smaller grid. Souffle
// measures occupancy; here, launch bounds force the assembler to the register count that the proof relies on.
#ifndef TILEWRIGHT_LAYOUT_GRIDPHASES_H
#define TILEWRIGHT_LAYOUT_GRIDPHASES_H

#include "passes/target/Occupancy.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <vector>

namespace tilewright {

/// An op of a kernel, with its grid and the resources of its blocks.
struct GridMember {
  std::string name;
  BlockResources block;
  bool walks = true;                          ///< true if a block can process several of the op's tiles in turn
  llvm::SmallVector<unsigned> producers = {}; ///< members whose results this one reads
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
  double seconds = 0; ///< as the planner predicts, launch and barriers included; 0: not predicted
};

/// The reason why an op begins a new kernel.
struct GridCut {
  unsigned stage;
  std::string reason;
};

struct GridKernels {
  std::vector<GridKernel> kernels; ///< in launch order
  std::vector<GridCut> cuts;

  /// Returns an empty string if every op comes after its producers and all blocks of kernels with barriers are resident
  /// at once, else the error.
  std::string verify(llvm::ArrayRef<GridMember> members, const Target &target) const;
};

/// Returns the members such that producers precede consumers, level by level.
llvm::SmallVector<unsigned> breadthFirst(llvm::ArrayRef<GridMember> members);

/// Returns a kernel with this member alone.
GridKernel kernelOf(llvm::ArrayRef<GridMember> members, unsigned member, const Target &target);

/// Returns the kernel with one more member, in the phase after its producers. No member has its blocks yet.
GridKernel withMember(GridKernel kernel, llvm::ArrayRef<GridMember> members, unsigned member, const Target &target);

/// Assigns blocks to every member of every phase. Returns an empty string, or why they cannot all be resident.
std::string shareOut(GridKernel &kernel, llvm::ArrayRef<GridMember> members, const Target &target);

/// Puts members into kernels breadth first and greedily: a member joins the current kernel if all blocks are certain to
/// be resident. Without `allowed`, each member gets a kernel of its own.
GridKernels joinWhileResident(llvm::ArrayRef<GridMember> members, const Target &target, bool allowed);

} // namespace tilewright

#endif

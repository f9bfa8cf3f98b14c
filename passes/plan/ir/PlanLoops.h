// The plan of a function with loops: one list of kernels, in which the ops of each loop's body have numbers of their
// own, behind those of the function's block. These functions take the plan of one block out of it, and put it in.
#ifndef TILEWRIGHT_PLAN_IR_PLANLOOPS_H
#define TILEWRIGHT_PLAN_IR_PLANLOOPS_H

#include "passes/graph/LoopBodies.h"
#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// The graph of a block that is planned on its own, and the number of its first op in the plan of the function.
struct BlockGraph {
  mlir::Block *block;
  mlir::Operation *loop; ///< null for the function's own block
  TensorGraph graph;
  unsigned firstOp;
};

/// Returns the graphs of the function's block, which comes first, and of the bodies of its loops that have tensor
/// expressions. Returns nothing if no block has any.
std::vector<BlockGraph> graphsOf(mlir::Operation *function);

/// Returns the entry for the body of a loop.
LoopPlan loopPlanOf(const BlockGraph &body);

/// Returns why the loops of a plan are not those of the function, or why a kernel is of a loop that the plan does not
/// list; or an empty string.
std::string whyNotOfLoops(const Plan &plan, llvm::ArrayRef<BlockGraph> blocks);

/// Returns why a plan cannot be divided into plans of the blocks, or an empty string: a kernel, an edge or an op that
/// is left names no op, or ops of several blocks.
std::string whyNotOfBlocks(const Plan &plan, llvm::ArrayRef<BlockGraph> blocks);

/// Returns the plan of the block whose ops have the numbers from `first` to `first + count - 1`, numbered from 0.
Plan planOfBlock(const Plan &plan, unsigned first, unsigned count);

/// Adds the plan of a block whose ops have the numbers from `first` on. Kernels whose names are taken get others.
void addPlanOfBlock(Plan &plan, Plan block, unsigned first);

/// Returns the entry of the loop whose ops begin at this number, or null.
const LoopPlan *loopAt(const Plan &plan, unsigned firstOp);

} // namespace tilewright

#endif

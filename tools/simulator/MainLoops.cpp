#include "tools/simulator/MainLoops.h"
#include "tools/simulator/KernelOps.h"

#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tilewright::simulator;

static bool isProduct(Operation &op) { return isa<NVVM::MmaOp, LLVM::FMAOp>(op) || isWarpgroupProduct(&op); }

/// Returns true if the loop carries accumulators: floats, containers of several, or many integers. Counters and
/// pointers are only a few integers.
static bool carriesAccumulators(Block &header) {
  constexpr unsigned integersOfOneProduct = 4;
  return header.getNumArguments() > integersOfOneProduct || llvm::any_of(header.getArgumentTypes(), [](Type type) {
           return isa<FloatType, VectorType, LLVM::LLVMStructType>(type);
         });
}

llvm::DenseSet<Block *> tilewright::simulator::findMainLoops(LLVM::LLVMFuncOp function) {
  llvm::DenseSet<Block *> found;
  if (function.getBody().hasOneBlock())
    return found;
  DominanceInfo dominance(function);
  CFGLoopInfo loops(dominance.getDomTree(&function.getBody()));
  for (CFGLoop *loop : loops.getLoopsInPreorder()) {
    auto multiplies = [](Block *block) { return llvm::any_of(*block, isProduct); };
    if (carriesAccumulators(*loop->getHeader()) && llvm::any_of(loop->getBlocks(), multiplies))
      found.insert_range(loop->getBlocks());
  }
  return found;
}

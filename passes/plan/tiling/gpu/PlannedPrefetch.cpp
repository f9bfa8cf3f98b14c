// Contractions are considered in the order in which a block computes them, so that earlier ones have room first.
#include "passes/plan/tiling/gpu/PlannedPrefetch.h"

#include "passes/plan/tiling/gpu/BlockMemory.h"

using namespace mlir;
using namespace tilewright;

void tilewright::settlePrefetches(Plan &plan, const TensorGraph &graph, const Target &target,
                                  llvm::function_ref<bool(unsigned op)> isGiven,
                                  llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) {
  for (KernelPlan &kernel : plan.kernels) {
    BlockMemory memory(plan, graph, kernel, target, groupOf);
    llvm::DenseMap<unsigned, tile::Operands> wanted;
    memory.forEachContraction([&](OpPlan &op) {
      if (!isGiven(op.id))
        wanted[op.id] = std::exchange(op.gemm->prefetch, tile::Operands::none);
    });
    int64_t bytes = memory.bytes();
    memory.forEachContraction([&](OpPlan &op) {
      auto own = wanted.find(op.id);
      if (own == wanted.end() || own->second == tile::Operands::none)
        return;
      op.gemm->prefetch = own->second;
      if (int64_t with = memory.bytes(); memory.hasRoom(bytes, with))
        bytes = with;
      else
        op.gemm->prefetch = tile::Operands::none;
    });
  }
}

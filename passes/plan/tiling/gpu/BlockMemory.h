// Adds up the shared memory of a kernel's blocks as the passes on programs allocate it: resident tiles, behind them the
// buffers of a group, and behind those the scratch of its contractions, each as long as it is live.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKMEMORY_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKMEMORY_H

#include "passes/plan/space/PlannedGroup.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "passes/target/Occupancy.h"

namespace tilewright {

/// Returns the bytes that a resident tile takes: it starts at the address of its tensor's tile modulo a vector.
int64_t residentTileBytes(int64_t bytes);

/// The memory of the blocks of one kernel. It refers to the plan, whose prefetches may change; all else stays.
class BlockMemory {
public:
  /// `groupOf` returns the group that the planner made of an op. If it is null, the plan is from a file, and buffers are
  /// taken to share no memory.
  BlockMemory(const Plan &plan, const TensorGraph &graph, KernelPlan &kernel, const Target &target,
              llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf);

  /// Returns the bytes of a block, which computes one group after another.
  int64_t bytes() const;
  /// Returns how many blocks an SM holds at once.
  int64_t residentBlocks() const;
  /// Returns true if a block that grows from `before` to `after` bytes leaves as many blocks on an SM as the kernel has.
  bool hasRoom(int64_t before, int64_t after) const;
  /// Calls `visit` for each contraction, in the order in which a block computes them.
  void forEachContraction(llvm::function_ref<void(OpPlan &op)> visit) const;

private:
  struct BlockOfGroup {
    GroupPlan *plan;
    std::vector<PlannedContraction> contractions; ///< in the order in which a block computes them
    int64_t bufferBytes = 0;
    int64_t combinedBytes = 0; ///< bytes of a value that threads combine with others' of its row; 0 if none do
  };
  static bool isPrefetched(const BlockOfGroup &group, const PlannedContraction &contraction);
  int64_t scratchBytes(const BlockOfGroup &group, int64_t alignment) const;

  const Target &target;
  std::vector<BlockOfGroup> groups;
  int64_t stagedBytes = 0; ///< of a block of a group without contractions, with the tiles that it copies as a whole
  int64_t emittedRegisters = kUnknownRegisters; ///< of a thread, as code generation counts them
  int64_t threads, registers, workgroups, sms;
};

} // namespace tilewright

#endif

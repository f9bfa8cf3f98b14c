// The interface of the runtime that rewritten kernels use: the names of its functions, and the numbers of registers and
// kinds of ops.
#ifndef TILEWRIGHT_SIMULATOR_COLLECTIVES_H
#define TILEWRIGHT_SIMULATOR_COLLECTIVES_H

#include <cstdint>

namespace tilewright::simulator {

namespace runtime {
constexpr const char *access = "tilewright_simulator_access", *visit = "tilewright_simulator_visit",
                     *shared = "tilewright_simulator_shared", *readRegister = "tilewright_simulator_register",
                     *shuffle = "tilewright_simulator_shuffle", *vote = "tilewright_simulator_vote",
                     *reduce = "tilewright_simulator_reduce", *warpBarrier = "tilewright_simulator_warp_barrier",
                     *blockBarrier = "tilewright_simulator_block_barrier",
                     *clusterArrive = "tilewright_simulator_cluster_arrive",
                     *clusterWait = "tilewright_simulator_cluster_wait",
                     *mapToRank = "tilewright_simulator_map_to_rank",
                     *gridBarrier = "tilewright_simulator_grid_barrier", *trap = "tilewright_simulator_trap",
                     *divide = "tilewright_simulator_divide", *startCopy = "tilewright_simulator_start_copy",
                     *commitCopies = "tilewright_simulator_commit_copies",
                     *waitForCopies = "tilewright_simulator_wait_for_copies",
                     *initBarrier = "tilewright_simulator_init_barrier",
                     *invalidateBarrier = "tilewright_simulator_invalidate_barrier",
                     *fenceBarriers = "tilewright_simulator_fence_barriers",
                     *arriveExpecting = "tilewright_simulator_arrive_expecting",
                     *startBulkCopy = "tilewright_simulator_start_bulk_copy",
                     *waitForPhase = "tilewright_simulator_wait_for_phase",
                     *loadMatrices = "tilewright_simulator_load_matrices",
                     *multiplyMatrices = "tilewright_simulator_multiply_matrices",
                     *fenceProxies = "tilewright_simulator_fence_proxies",
                     *fenceRegisters = "tilewright_simulator_fence_registers",
                     *startProduct = "tilewright_simulator_start_product",
                     *commitProducts = "tilewright_simulator_commit_products",
                     *waitForProducts = "tilewright_simulator_wait_for_products",
                     *touchAccumulators = "tilewright_simulator_touch_accumulators";
} // namespace runtime

enum class Register : uint32_t {
  tidX,
  tidY,
  tidZ,
  ntidX,
  ntidY,
  ntidZ,
  ctaidX,
  ctaidY,
  ctaidZ,
  nctaidX,
  nctaidY,
  nctaidZ,
  laneid,
  warpsize,
  warpid,
  nwarpid,
  lanemaskEq,
  lanemaskLt,
  lanemaskLe,
  lanemaskGe,
  lanemaskGt,
  clusterRank,
  clusterBlocks,
};

// The numbers are those of the NVVM dialect.
enum class ShuffleKind : uint32_t { butterfly, up, down, index };
enum class VoteKind : uint32_t { any, all, ballot, uniform };

enum class ReduceKind : uint32_t { add, bitAnd, bitOr, bitXor, unsignedMin, unsignedMax, signedMin, signedMax };

} // namespace tilewright::simulator

#endif

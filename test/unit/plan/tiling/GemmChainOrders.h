// The GEMM chain of Chimera's examples, for tests of block orders.
#ifndef TILEWRIGHT_UNIT_PLAN_TILING_GEMMCHAINORDERS_H
#define TILEWRIGHT_UNIT_PLAN_TILING_GEMMCHAINORDERS_H

#include "passes/plan/tiling/cpu/BlockSearch.h"

namespace tilewright {

enum { M, N, K, L }; // loops of the paper's chain
enum { A, B, C1, C2, D, E }; // tensors of its two operators, in order

inline BlockOrder mlkn(int64_t m, int64_t n, int64_t k, int64_t l) { return {{M, L, K, N}, {m, n, k, l}}; }

} // namespace tilewright

#endif

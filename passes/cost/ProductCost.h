// Cost model of a contraction on one SM. Each resource has its cycles and the slowest one decides; where the steps in
// flight do not cover the latency of their copies, the block waits. Everything here is a pure function.
#ifndef TILEWRIGHT_COST_PRODUCTCOST_H
#define TILEWRIGHT_COST_PRODUCTCOST_H

#include "passes/layout/GemmTiling.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A contraction as one block computes it.
struct ProductWork {
  MicroKernel kernel;
  double times = 1, k = 1;             ///< number of times it is computed; its K
  double bytes = 0;                    ///< bytes of both operands that bypass or miss L1
  int64_t lhsBytes = 1, rhsBytes = 1;  ///< bytes per element of lhs and of rhs
  double lhsCopies = 0, rhsCopies = 0; ///< instructions of a thread per copied element of lhs and of rhs
  bool prefetched = false;             ///< true if its first steps have been prefetched
  bool combinesRows = false;           ///< true if rows of accumulators are reduced across several warps
};

/// The blocks of a kernel, and how many of them an SM holds at once.
struct Occupancy {
  double blocks, together;
  int64_t threads; ///< threads per block
};

/// Returns the seconds one SM takes for its resident blocks.
double productSeconds(const ProductWork &work, const GemmTiling &tiling, const Occupancy &occupancy,
                      const Target &target);

/// Returns the seconds DRAM takes to deliver `bytes` of an operand of which each block streams its own share. The rate
/// is bounded by what the SMs can accept and by what they keep in flight.
double streamSeconds(double bytes, const GemmTiling &tiling, double blocks, const Target &target);

/// Returns how many light instructions of single threads an SM issues per cycle, given its number of threads.
double issuedLanes(double threads, const Target &target);

/// Returns the bandwidth in bytes per second of the L2, the innermost cache that all SMs share.
double l2Bandwidth(const Target &target);

} // namespace tilewright

#endif

// What a block's share of a contraction takes on an SM. Each resource has its cycles, the slowest decides, and where
// steps do not cover the latency of their copies they wait. The constants are fitted to the cycles that steps of an
// H200's kernels took. Pure.
#ifndef TILEWRIGHT_COST_PRODUCTCOST_H
#define TILEWRIGHT_COST_PRODUCTCOST_H

#include "passes/cost/GemmTiling.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A contraction as one block computes it.
struct ProductWork {
  MicroKernel kernel;
  double times = 1, terms = 1;          ///< that it is computed; of each sum
  double bytes = 0;                     ///< of both operands, past L1
  int64_t rowBytes = 1, laneBytes = 1;  ///< of an element
  double rowCopies = 0, laneCopies = 0; ///< instructions of a thread to copy an element of either operand
  bool begun = false;                   ///< its first steps are on their way before
  bool combinesRows = false;            ///< rows of its sums are reduced by all warps that have parts of them
};

/// The blocks of a kernel, and those of them that an SM has at a time.
struct Occupancy {
  double blocks, together;
  int64_t threads; ///< of a block
};

/// In which an SM does the work of the blocks that it has at a time.
double productSeconds(const ProductWork &work, const GemmTiling &tiling, const Occupancy &occupancy,
                      const Target &target);

/// In which DRAM gives `bytes` of an operand that blocks stream, each its own: as much as the SMs take in, and ask for
/// ahead.
double streamSeconds(double bytes, const GemmTiling &tiling, double blocks, const Target &target);

/// Light instructions of single threads that an SM issues in a cycle for so many.
double issuedLanes(double threads);

/// Instructions of a thread that copies lines asynchronously, addresses included; of lines that begin inside words.
constexpr double kCopyInstructions = 6, kShiftedCopyInstructions = 24;
/// Bytes that shared memory gives or takes in a cycle.
constexpr double kBankBytes = 128;

/// Of the level next to the SMs.
double l2Bandwidth(const Target &target);

} // namespace tilewright

#endif

// Register blocking of contractions on the CPU (Chimera 5.B). A pure function of the register file, shared by planning,
// packing and code generation.
#ifndef TILEWRIGHT_TARGET_MICROKERNEL_H
#define TILEWRIGHT_TARGET_MICROKERNEL_H

#include <cstdint>

namespace tilewright {

/// Rows and vectors of the block of sums that stays in registers.
struct RegisterBlock {
  int64_t rows, vectors;
};

/// The block that does most multiply-adds for each register loaded, and of those the one with fewest registers: rows x
/// vectors sums, the vectors of one operand, and two for the broadcast elements of the other, so that loads overlap
/// with arithmetic; rows are loaded in those pairs. 32 registers give 6 x 4, 16 give 6 x 2.
constexpr RegisterBlock registerBlock(int64_t registers) {
  constexpr int64_t kBroadcasts = 2;
  RegisterBlock best{1, 1};
  double most = 0;
  for (int64_t rows = kBroadcasts; rows < registers; rows += kBroadcasts)
    for (int64_t vectors = 1; rows * vectors + vectors + kBroadcasts <= registers; ++vectors) {
      double intensity = static_cast<double>(rows * vectors) / static_cast<double>(rows + vectors);
      bool smaller = rows * vectors + vectors < best.rows * best.vectors + best.vectors;
      if (intensity > most || (intensity == most && smaller)) {
        most = intensity;
        best = {rows, vectors};
      }
    }
  return best;
}

} // namespace tilewright

#endif

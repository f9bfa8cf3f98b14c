// The decisions of a plan about how a block of threads on a GPU computes a contraction. The planner makes them once
// (cost/ChooseGemm.h), the plan's JSON and `#tile.gemm` hold them, and the layout of shared memory and registers
// follows from them (GemmTiling.h).
#ifndef TILEWRIGHT_LAYOUT_GEMMCHOICE_H
#define TILEWRIGHT_LAYOUT_GEMMCHOICE_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// `#tile.gemm` says what each field means.
struct GemmChoice {
  int64_t m = 1, n = 1, kSlices = 1;
  int64_t step = 1, stages = 2;
  tile::Residency lhs = tile::Residency::step;
  tile::Operands prefetch = tile::Operands::none;
  int64_t lhsCopy = 16, rhsCopy = 16;
};

inline GemmChoice choiceOf(tile::GemmAttr attr) {
  return {attr.getM(),      attr.getN(),   attr.getKSlices(), attr.getStep(),
          attr.getStages(), attr.getLhs(), attr.getPrefetch(), attr.getLhsCopy(), attr.getRhsCopy()};
}

inline tile::GemmAttr attrOf(const GemmChoice &choice, mlir::MLIRContext *context) {
  return tile::GemmAttr::get(context, choice.m, choice.n, choice.kSlices, choice.step, choice.stages, choice.lhs,
                             choice.prefetch, choice.lhsCopy, choice.rhsCopy);
}

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const GemmChoice &choice) {
  os << choice.m << "x" << choice.n << " units";
  if (choice.kSlices > 1)
    os << " by " << choice.kSlices << " slices of K";
  os << ", steps of " << choice.step << " in " << choice.stages << " stages";
  if (choice.lhs == tile::Residency::walk)
    os << ", resident lhs";
  if (choice.prefetch != tile::Operands::none)
    os << ", prefetch " << tile::stringifyOperands(choice.prefetch);
  for (auto [name, bytes] : {std::pair("lhs", choice.lhsCopy), std::pair("rhs", choice.rhsCopy)})
    if (bytes > 0 && bytes < 16)
      os << ", " << name << " copied by " << bytes << " bytes";
  return os;
}

} // namespace tilewright

#endif

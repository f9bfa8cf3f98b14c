#include "passes/plan/scopes/ChooseScopes.h"
#include "passes/plan/grid/CutAtGrid.h"

#include "passes/plan/grid/BarrierCuts.h"
#include "passes/plan/grid/GridReasons.h"
#include "passes/plan/grid/PlannedKernel.h"
#include "passes/plan/grid/TrialGroups.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Of the time of a part in blocks as they are, for a cut: what crosses the barrier is written and read, and
/// contractions are predicted no closer than this.
constexpr double kWorthTheBytes = 0.9;

/// A part of a kernel in pieces, and the kernel with them.
struct PartCut {
  std::vector<PlannedGroup> pieces; ///< the one behind the barrier last
  SmallVector<unsigned> places;    ///< of the pieces among all parts: new ones, and last that of the part
  SmallVector<unsigned> kernel;    ///< its parts
  double bound = 0;                ///< below which the kernel was looked for
  double seconds = 0;              ///< of the kernel
};
} // namespace

/// Nothing if some piece is no part.
static std::optional<PartCut> cutInPieces(const GridContext &context, ArrayRef<unsigned> kernel, unsigned own,
                                          const BarrierCut &pieces) {
  PartCut cut{{}, {}, SmallVector<unsigned>(kernel)};
  for (ArrayRef<unsigned> exprs : pieces) {
    std::optional<PlannedGroup> planned = planGroup(context.graph, exprs, context.target);
    if (!planned)
      return std::nullopt;
    cut.pieces.push_back(std::move(*planned));
  }
  unsigned parts = context.decisions.parts.size();
  cut.places = llvm::to_vector(llvm::seq<unsigned>(parts, parts + pieces.size() - 1));
  llvm::append_range(cut.kernel, cut.places);
  cut.places.push_back(own);
  return cut;
}

/// Whatever else stands in the kernel.
static double secondsAtLeast(ArrayRef<PlannedGroup> pieces, const Target &target) {
  double slowest = 0;
  for (const PlannedGroup &piece : pieces)
    slowest = std::max(slowest, piece.predicted.seconds);
  return slowest + target.gpu.gridBarrierSeconds;
}

static void place(const PartCut &cut, TrialGroups &trial) {
  for (auto [index, piece] : llvm::zip(cut.places, cut.pieces))
    trial.place(index, piece);
}

/// Of the kernel; nothing if there is none below the bound.
static std::optional<double> secondsWith(const GridContext &context, const PartCut &cut, Decisions &decisions) {
  TrialGroups trial(context, decisions);
  place(cut, trial);
  if (countBindings(context.graph, decisions, cut.kernel, context.target) > context.target.maxBindings)
    return std::nullopt;
  std::optional<PlannedKernel> planned = planKernel(context, cut.kernel, cut.bound);
  return planned ? std::optional(planned->seconds()) : std::nullopt;
}

/// The cut with which the kernel takes least; nothing if none is predicted to take less than `bound`. Decisions change
/// meanwhile.
static std::optional<PartCut> bestCut(const GridContext &context, ArrayRef<unsigned> kernel, double bound,
                                      Decisions &decisions) {
  std::optional<PartCut> best;
  for (unsigned own : kernel) {
    if (!context.contracts(own))
      continue;
    for (const BarrierCut &pieces : barrierCuts(context.graph, context.part(own).choice.exprs)) {
      std::optional<PartCut> cut = cutInPieces(context, kernel, own, pieces);
      if (!cut || secondsAtLeast(cut->pieces, context.target) >= bound)
        continue;
      cut->bound = bound;
      cut->seconds = secondsWith(context, *cut, decisions).value_or(bound);
      if (cut->seconds >= bound)
        continue;
      bound = cut->seconds;
      best = std::move(cut);
    }
  }
  return best;
}

bool tilewright::cutOnePart(const GridContext &context, size_t kernel, Decisions &decisions) {
  SmallVector<unsigned> parts = decisions.kernels[kernel];
  double whole = predictedSeconds(context, parts);
  std::optional<PartCut> cut = bestCut(context, parts, kWorthTheBytes * whole, decisions);
  if (!cut)
    return false;
  TrialGroups chosen(context, decisions);
  place(*cut, chosen);
  chosen.keep();
  sayCut(cut->places, cut->seconds, whole, decisions);
  // Found again: stages refer to the parts where they stand now.
  carryOut(context, *planKernel(context, cut->kernel, cut->bound), kernel, decisions);
  return true;
}

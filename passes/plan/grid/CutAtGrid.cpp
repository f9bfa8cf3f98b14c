#include "passes/plan/grid/CutAtGrid.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/grid/BarrierCuts.h"
#include "passes/plan/grid/GridReasons.h"
#include "passes/plan/grid/KernelSignature.h"
#include "passes/plan/grid/PlannedKernel.h"
#include "passes/plan/grid/TrialGroups.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A group of a kernel cut into pieces, and the kernel with these pieces.
struct GroupCut {
  std::vector<PlannedGroup> pieces; ///< the last one is behind the barrier
  SmallVector<unsigned> indices;    ///< index of each piece among all groups; the last piece replaces the cut group
  SmallVector<unsigned> kernel;     ///< groups of the kernel, pieces included
  double bound = 0;                 ///< seconds that the kernel must undercut
  double seconds = 0;               ///< predicted seconds of the kernel
};
} // namespace

/// Returns nothing if some piece cannot be a group.
static std::optional<GroupCut> cutInPieces(const GridContext &context, ArrayRef<unsigned> kernel, unsigned own,
                                           const BarrierCut &pieces) {
  GroupCut cut{{}, {}, SmallVector<unsigned>(kernel)};
  for (ArrayRef<unsigned> exprs : pieces) {
    OrDeclined<PlannedGroup> planned = planGroup(context.groups, exprs);
    if (!planned)
      return std::nullopt;
    cut.pieces.push_back(std::move(*planned));
  }
  unsigned parts = context.decisions.parts.size();
  cut.indices = llvm::to_vector(llvm::seq<unsigned>(parts, parts + pieces.size() - 1));
  llvm::append_range(cut.kernel, cut.indices);
  cut.indices.push_back(own);
  return cut;
}

/// Returns a lower bound on the seconds of any kernel with these pieces.
static double secondsAtLeast(ArrayRef<PlannedGroup> pieces, const Target &target) {
  double slowest = 0;
  for (const PlannedGroup &piece : pieces)
    slowest = std::max(slowest, piece.predicted.seconds);
  return slowest + target.gpu.gridBarrierSeconds;
}

static void place(const GroupCut &cut, TrialGroups &trial) {
  for (auto [index, piece] : llvm::zip(cut.indices, cut.pieces))
    trial.place(index, piece);
}

/// Returns the seconds of the kernel with the cut, or nothing if they are not below the cut's bound.
static std::optional<double> secondsWith(const GridContext &context, const GroupCut &cut, Decisions &decisions) {
  TrialGroups trial(decisions);
  place(cut, trial);
  if (countBindings(context.graph, decisions, cut.kernel, context.target) > context.target.maxBindings)
    return std::nullopt;
  OrDeclined<PlannedKernel> planned = planKernel(context, cut.kernel, cut.bound);
  return planned ? std::optional(planned->seconds) : std::nullopt;
}

/// Returns the cut with which the kernel takes the least time, or nothing if no cut is predicted to take less than
/// `bound`. Decisions change temporarily.
static std::optional<GroupCut> bestCut(const GridContext &context, ArrayRef<unsigned> kernel, double bound,
                                       Decisions &decisions) {
  std::optional<GroupCut> best;
  for (unsigned own : kernel) {
    if (!context.contracts(own))
      continue;
    for (const BarrierCut &pieces : barrierCuts(context.graph, context.part(own).choice.exprs)) {
      std::optional<GroupCut> cut = cutInPieces(context, kernel, own, pieces);
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

namespace {
/// Where the first kernel with a signature is cut.
struct FirstCut {
  double whole = 0;                               ///< seconds without the cut
  std::optional<unsigned> own = {};               ///< place of the group that is cut, in the kernel; nothing: no cut
  std::vector<SmallVector<unsigned>> pieces = {}; ///< places of their expressions in the group
  double bound = 0, seconds = 0;                  ///< of the cut
};
} // namespace

static FirstCut cutAnew(const GridContext &context, ArrayRef<unsigned> parts, const KernelFrame &frame,
                        Decisions &decisions) {
  FirstCut first{predictedSeconds(context, parts)};
  std::optional<GroupCut> cut =
      bestCut(context, parts, leastFaster(first.whole, context.target.costs.confidence.barriers), decisions);
  if (!cut)
    return first;
  first.own = frame.placeOf(cut->indices.back());
  first.bound = cut->bound;
  first.seconds = cut->seconds;
  ArrayRef<unsigned> exprs = frame.groups[*first.own].exprs;
  for (const PlannedGroup &piece : cut->pieces)
    first.pieces.push_back(llvm::map_to_vector(piece.choice.exprs, [&](unsigned expr) {
      return static_cast<unsigned>(llvm::find(exprs, expr) - exprs.begin());
    }));
  return first;
}

bool tilewright::cutOnePart(const GridContext &context, size_t kernel, Decisions &decisions) {
  SmallVector<unsigned> parts = decisions.kernels[kernel];
  KernelFrame frame;
  MemoKey key = signatureOf(context, parts, frame);
  const FirstCut *first = context.groups.memo().find<FirstCut>(key);
  if (!first)
    first = &context.groups.memo().keep<FirstCut>(std::move(key), cutAnew(context, parts, frame, decisions));
  if (!first->own)
    return false;
  BarrierCut pieces;
  for (ArrayRef<unsigned> places : first->pieces)
    pieces.push_back(
        llvm::map_to_vector(places, [&](unsigned place) { return frame.groups[*first->own].exprs[place]; }));
  std::optional<GroupCut> cut = cutInPieces(context, parts, parts[*first->own], pieces);
  TrialGroups chosen(decisions);
  place(*cut, chosen);
  chosen.keep();
  sayCut(cut->indices, first->seconds, first->whole, decisions);
  carryOut(*planKernel(context, cut->kernel, first->bound), kernel, decisions);
  return true;
}

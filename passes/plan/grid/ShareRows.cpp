#include "passes/plan/grid/ShareRows.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/grid/GridReasons.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/grid/PlannedKernel.h"
#include "passes/plan/grid/TrialGroups.h"
#include "passes/plan/space/SharedRows.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Two groups of a kernel as one group, and the kernel with it.
struct SharingKernel {
  unsigned writer, reader; ///< indices among all groups; the new group takes the place of the reader
  PlannedGroup group;
  PlannedKernel kernel;
};
} // namespace

/// Returns true if a third group of the kernel reads results of the writer, and the reader depends on it.
static bool standsBetween(const GridContext &context, unsigned other, unsigned writer, unsigned reader) {
  auto depends = [&](unsigned later, unsigned earlier) {
    return llvm::any_of(context.part(later).choice.exprs, [&](unsigned to) {
      return llvm::any_of(context.part(earlier).choice.exprs,
                          [&](unsigned from) { return context.graph.dependsOn(to, from); });
    });
  };
  return other != writer && other != reader && depends(other, writer) && depends(reader, other);
}

/// Returns true if the groups are a contraction and ops without one that read its result.
static bool mayShare(const GridContext &context, ArrayRef<unsigned> parts, unsigned writer, unsigned reader) {
  return writer != reader && context.contracts(writer) && !context.contracts(reader) &&
         readsResultsOf(context.graph, context.part(reader).choice, context.part(writer).choice) &&
         llvm::none_of(parts, [&](unsigned other) { return standsBetween(context, other, writer, reader); });
}

/// Plans both groups as one whose blocks share rows, or says why its blocks would have whole rows.
static OrDeclined<PlannedGroup> planSharing(const GridContext &context, unsigned writer, unsigned reader) {
  SmallVector<unsigned> exprs(context.part(writer).choice.exprs);
  llvm::append_range(exprs, context.part(reader).choice.exprs);
  llvm::sort(exprs);
  OrDeclined<PlannedGroup> group = planGroupSharingRows(context.groups, exprs);
  if (group && rowExchanges(context.graph, group->space) == 0)
    return Declined{"no dim of the product may be cut into parts that blocks exchange results of", ""};
  return group;
}

/// Returns the kernel with both groups as one, or why it is not predicted to take less than `bound` seconds.
static OrDeclined<SharingKernel> kernelThatShares(const GridContext &context, ArrayRef<unsigned> parts, unsigned writer,
                                                  unsigned reader, double bound, Decisions &decisions) {
  OrDeclined<PlannedGroup> group = planSharing(context, writer, reader);
  if (!group)
    return group.why();
  SmallVector<unsigned> with(parts);
  llvm::erase(with, writer);
  TrialGroups trial(decisions);
  trial.place(reader, *group);
  trial.remove(writer);
  if (int64_t bindings = countBindings(context.graph, decisions, with, context.target);
      bindings > context.target.maxBindings)
    return tooManyBindings(bindings, context.target);
  OrDeclined<PlannedKernel> kernel = planKernel(context, with, bound);
  if (kernel && kernel->seconds < bound)
    return SharingKernel{writer, reader, std::move(*group), std::move(*kernel)};
  if (!kernel && !kernel.why().reason.empty())
    return kernel.why();
  double seconds = kernel ? kernel->seconds : predictedSeconds(context, with);
  if (seconds == 0)
    return Declined{"the other phases have blocks of another size", ""};
  return Declined{llvm::formatv("predicted to take {0:f2} us", seconds * 1e6), ""};
}

/// Returns the fastest kernel in which one of the writers and one of the readers are one group, if it takes less than
/// `bound` seconds. Otherwise records why no two are.
static std::optional<SharingKernel> fastestSharing(const GridContext &context, ArrayRef<unsigned> parts,
                                                   ArrayRef<unsigned> writers, ArrayRef<unsigned> readers, double bound,
                                                   Decisions &decisions) {
  std::optional<SharingKernel> best;
  std::map<std::pair<unsigned, unsigned>, Declined> declined;
  for (unsigned writer : writers)
    for (unsigned reader : readers) {
      if (context.groups.numerics == NumericsMode::strict || !mayShare(context, parts, writer, reader))
        continue;
      OrDeclined<SharingKernel> found = kernelThatShares(context, parts, writer, reader, bound, decisions);
      if (!found) {
        declined[{writer, reader}] = found.why();
        continue;
      }
      bound = found->kernel.seconds;
      best = std::move(*found);
    }
  if (!best)
    for (const auto &[edge, why] : declined)
      sayRowsWhole(edge, why, decisions);
  return best;
}

/// Says at the edges out of reductions why their rows are shared. With whole rows it would take `whole` seconds.
static void giveReason(const TensorGraph &graph, PlannedGroup &group, double seconds, double whole, StringRef where) {
  std::string reason = llvm::formatv("blocks that share its rows exchange their results: one kernel is predicted to "
                                     "take {0:f2} us, and {1:f2} us with whole rows {2}",
                                     seconds * 1e6, whole * 1e6, where);
  for (auto &[edge, choice] : group.edges)
    for (const GroupRoot &root : group.space.roots)
      if (root.expr == graph.edges()[edge].producer && reducesSharedRows(graph, group.space, root))
        choice.reason = reason;
}

bool tilewright::shareRows(const GridContext &context, size_t kernel, size_t other, Decisions &decisions) {
  bool isPair = kernel != other;
  SmallVector<unsigned> writers(decisions.kernels[kernel]), readers(decisions.kernels[other]), parts(writers);
  double whole = predictedSeconds(context, writers);
  if (isPair) {
    llvm::append_range(parts, readers);
    whole += predictedSeconds(context, readers);
  }
  double bound = leastFaster(whole, context.target.costs.confidence.tilings);
  std::optional<SharingKernel> best = fastestSharing(context, parts, writers, readers, bound, decisions);
  if (!best)
    return false;
  TrialGroups trial(decisions);
  trial.place(best->reader, best->group);
  trial.remove(best->writer);
  trial.keep();
  if (isPair)
    decisions.kernels.erase(decisions.kernels.begin() + std::max(kernel, other));
  carryOut(best->kernel, std::min(kernel, other), decisions);
  giveReason(context.graph, *decisions.parts[best->reader], best->kernel.seconds, whole,
             isPair ? "in a kernel of their own" : "behind a barrier");
  return true;
}

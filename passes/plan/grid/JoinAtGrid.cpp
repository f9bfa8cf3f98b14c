#include "passes/plan/grid/JoinAtGrid.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/grid/CutAtGrid.h"
#include "passes/plan/grid/GridReasons.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/grid/ResidentAtGrid.h"
#include "passes/plan/grid/ShareRows.h"
#include "passes/plan/grid/StreamK.h"
#include "passes/plan/grid/TrialGroups.h"
#include "passes/plan/grid/ViewsBetween.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Runs the steps one after another. This file decides which kernels are joined; the other steps have their own files.
class GridJoiner {
public:
  GridJoiner(const GroupProblem &groups, bool allowed, PlanDraft &plan)
      : partition(plan.partition), decisions(plan.decisions),
        context{groups, groups.graph, groups.target, decisions, allowed} {}

  void run() {
    llvm::sort(decisions.kernels, [&](ArrayRef<unsigned> a, ArrayRef<unsigned> b) { return first(a) < first(b); });
    if (context.allowed)
      cutKernels();
    joinKernels();
    if (context.allowed) {
      shareRowsOfKernels();
      keepTilesOfKernels();
    }
    shareTilesOfLone();
    countPartials(context, decisions);
  }

private:
  //===--------------------------------------------------------------------===//
  // Steps
  //===--------------------------------------------------------------------===//

  void cutKernels() {
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      while (cutOnePart(context, kernel, decisions))
        ;
  }

  void joinKernels() {
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      while (std::optional<size_t> reader = joinOneTo(kernel))
        kernel = std::min(kernel, *reader); // where the joined kernel is
  }

  void shareRowsOfKernels() {
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      while (shareRows(context, kernel, kernel, decisions))
        ;
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      while (std::optional<size_t> reader = shareRowsWithOne(kernel))
        kernel = std::min(kernel, *reader);
  }

  /// Joins a kernel with one that normalises what it writes, if blocks then share rows, and returns the place of that
  /// one. A reader with contractions would be as slow behind a barrier, which joinKernels has compared.
  std::optional<size_t> shareRowsWithOne(size_t kernel) {
    for (size_t reader = 0; reader < decisions.kernels.size(); ++reader) {
      if (reader == kernel || context.anyContracts(decisions.kernels[reader]) ||
          !reads(decisions.kernels[reader], decisions.kernels[kernel]))
        continue;
      unsigned writing = groupOf(decisions.kernels[kernel]), reading = groupOf(decisions.kernels[reader]);
      if (!partition.canMerge(writing, reading) || !shareRows(context, kernel, reader, decisions))
        continue;
      partition.merge(writing, reading);
      return reader;
    }
    return std::nullopt;
  }

  void keepTilesOfKernels() {
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      if (std::optional<PlannedKernel> keeping = keepTiles(context, decisions.kernels[kernel]))
        carryOut(*keeping, kernel, decisions);
  }

  /// Applies stream-K to kernels that were not joined. For a phase of a larger kernel, planning that kernel has decided
  /// it.
  void shareTilesOfLone() {
    for (ArrayRef<unsigned> parts : decisions.kernels)
      if (std::optional<PlannedGroup> shared = parts.size() == 1 ? inSharedTiles(context, parts.front()) : std::nullopt)
        decisions.parts[parts.front()] = std::move(*shared);
  }

  //===--------------------------------------------------------------------===//
  // Joining two kernels
  //===--------------------------------------------------------------------===//

  /// Joins a kernel with one that reads what it writes, and returns the place of that one. It may come before: a kernel
  /// that was joined is where its first part was, and what another part reads may be written by a kernel behind it.
  std::optional<size_t> joinOneTo(size_t kernel) {
    for (size_t reader = 0; reader < decisions.kernels.size(); ++reader)
      if (reader != kernel && tryJoinThroughViews(kernel, reader))
        return reader;
    return std::nullopt;
  }

  /// Tries to join two kernels with the reshapes between them. These were left to IREE as the border of two kernels; in
  /// one kernel they become part of the group that reads them.
  bool tryJoinThroughViews(size_t kernel, size_t reader) {
    std::map<unsigned, SmallVector<unsigned>> views; // by reading group
    for (unsigned own : decisions.kernels[reader])
      if (SmallVector<unsigned> between = viewsBetween(context, decisions.kernels[kernel], own); !between.empty())
        views[own] = between;
    if (views.empty() && !reads(decisions.kernels[reader], decisions.kernels[kernel]))
      return false;
    double apart =
        predictedSeconds(context, decisions.kernels[kernel]) + predictedSeconds(context, decisions.kernels[reader]);
    if (views.empty())
      return tryJoin(kernel, reader, apart);
    Partition before = partition;
    TrialGroups trial(decisions);
    if (llvm::all_of(views, [&](auto &own) { return takeViews(own.first, own.second, trial); }) &&
        tryJoin(kernel, reader, apart)) {
      trial.keep();
      return true;
    }
    partition = std::move(before);
    return false;
  }

  /// Adds the views to a group. Returns false if no such group can be planned.
  bool takeViews(unsigned own, ArrayRef<unsigned> views, TrialGroups &trial) {
    if (llvm::any_of(views, [&](unsigned view) { return partition.isApart(view); }))
      return false;
    SmallVector<unsigned> exprs(context.part(own).choice.exprs);
    llvm::append_range(exprs, views);
    llvm::sort(exprs);
    OrDeclined<PlannedGroup> with = planGroup(context.groups, exprs);
    if (!with)
      return false;
    with->apartSeconds = context.part(own).apartSeconds;
    for (unsigned view : views)
      partition.merge(groupOf({own}), partition.groupOf(view));
    trial.place(own, std::move(*with));
    return true;
  }

  /// Joins two kernels if one kernel is faster than the `apart` seconds that both take now.
  bool tryJoin(size_t kernel, size_t reader, double apart) {
    KernelPair pair{decisions.kernels[kernel], decisions.kernels[reader], apart};
    if (!partition.canMerge(groupOf(pair.producers), groupOf(pair.readers)))
      return false; // the recorded reason is more specific
    SmallVector<unsigned> both = pair.parts();
    if (int64_t bindings = countBindings(context.graph, decisions, both, context.target);
        bindings > context.target.maxBindings) {
      sayApart(context, pair, tooManyBindings(bindings, context.target), decisions);
      return false;
    }
    pair.repeats = repeats(pair.readers, pair.producers);
    OrDeclined<PlannedKernel> joined =
        planKernel(context, both, leastFaster(apart, pair.repeats ? context.target.costs.confidence.forms : 0));
    if (!joined) {
      sayApart(context, pair, notQuicker(context, pair, joined.why()), decisions);
      return false;
    }
    sayJoined(context, pair, joined->seconds, decisions);
    partition.merge(groupOf(pair.producers), groupOf(pair.readers));
    decisions.kernels.erase(decisions.kernels.begin() + std::max(kernel, reader));
    carryOut(*joined, std::min(kernel, reader), decisions);
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Queries
  //===--------------------------------------------------------------------===//

  unsigned first(ArrayRef<unsigned> kernel) const { return context.part(kernel.front()).choice.exprs.front(); }
  unsigned groupOf(ArrayRef<unsigned> kernel) const { return partition.groupOf(first(kernel)); }

  bool reads(ArrayRef<unsigned> reader, ArrayRef<unsigned> producer) const {
    return llvm::any_of(reader, [&](unsigned a) {
      return llvm::any_of(producer, [&](unsigned b) {
        return readsResultsOf(context.graph, context.part(a).choice, context.part(b).choice);
      });
    });
  }

  /// Returns true if each group of `reader` has an equal group in `producer`.
  bool repeats(ArrayRef<unsigned> reader, ArrayRef<unsigned> producer) const {
    return llvm::all_of(reader, [&](unsigned a) {
      return llvm::any_of(producer,
                          [&](unsigned b) { return areAlike(context.part(a).choice, context.part(b).choice); });
    });
  }

  /// Returns true if both groups have the same ops, apart from their operands.
  bool areAlike(const GroupChoice &a, const GroupChoice &b) const {
    auto opOf = [&](unsigned expr) { return context.graph.exprs()[expr].op; };
    return llvm::equal(a.exprs, b.exprs, [&](unsigned own, unsigned other) {
      return OperationEquivalence::isEquivalentTo(opOf(own), opOf(other), OperationEquivalence::ignoreValueEquivalence,
                                                  nullptr, OperationEquivalence::IgnoreLocations);
    });
  }

  Partition &partition;
  Decisions &decisions;
  GridContext context;
};
} // namespace

PlanDraft tilewright::joinAtGrid(const GroupProblem &groups, bool allowed, PlanDraft plan) {
  if (groups.target.gpu.guaranteedSms > 0)
    GridJoiner(groups, allowed, plan).run();
  return plan;
}

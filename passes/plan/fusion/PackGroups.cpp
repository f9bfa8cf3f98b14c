// Packs small independent fusion groups into one kernel, where they run side by side (FusionStitching 4.1: kernel
// packing), and puts kernels into launch order. Packing is greedy: a pair of kernels merges if one launch is predicted
// to take less time than two.
#include "passes/backend/Backend.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/PatternReduction.h"

using namespace mlir;
using namespace tilewright;

namespace {
class GroupPacker : PlannerStep {
public:
  using PlannerStep::PlannerStep;

  /// Builds the partition anew, without expressions that were trimmed or dropped since groups grew. Removing members at
  /// a border cannot make a cycle.
  void regroup() {
    partition = Partition(graph, block);
    keepApart();
    for (const std::optional<PlannedGroup> &group : decisions.parts)
      if (group)
        partition.join(group->choice.exprs);
  }

  void makeKernels() {
    for (unsigned index = 0; index < decisions.parts.size(); ++index)
      if (decisions.parts[index])
        decisions.kernels.push_back({index});
  }

  /// Merges pairs of kernels for which one launch is predicted to take less time than two.
  void pack() {
    for (unsigned a = 0; a < decisions.kernels.size(); ++a)
      for (unsigned b = a + 1; b < decisions.kernels.size();)
        if (mayPack(a) && mayPack(b) && savedBy({a, b}).value_or(0) > 0)
          packTogether({a, b});
        else
          ++b;
  }

  /// Packs the kernels that PatternReduction puts together under a virtual producer of all of them, until no further set
  /// of kernels takes less time in one launch.
  void packRemotely() {
    for (bool packed = true; packed;) {
      packed = false;
      size_t count = decisions.kernels.size();
      std::vector<std::vector<FusionPattern>> own;
      for (unsigned kernel = 0; kernel < count; ++kernel)
        if (mayPack(kernel))
          own.push_back({{ExprSet(count, {kernel}), 0}});
      std::vector<ArrayRef<FusionPattern>> consumers(own.begin(), own.end());
      auto make = [&](const ExprSet &kernels) -> std::optional<FusionPattern> {
        std::optional<double> saved = savedBy(kernels.members());
        return saved ? std::optional(FusionPattern{kernels, *saved}) : std::nullopt;
      };
      std::vector<FusionPattern> best = reducePatterns(ExprSet(count), consumers, make);
      if (!best.empty() && best.front().saved > 0) {
        packTogether(best.front().set.members());
        packed = true;
      }
    }
  }

  /// Orders kernels so that each follows those that it depends on.
  void orderKernels() {
    llvm::DenseMap<unsigned, SmallVector<unsigned>> byGroup;
    for (const SmallVector<unsigned> &kernel : decisions.kernels)
      byGroup[groupOf(kernel.front())] = kernel;
    decisions.kernels.clear();
    auto sequence = partition.order();
    assert(sequence && "merges keep the partition acyclic");
    for (const std::vector<Operation *> &ops : *sequence) {
      int64_t id = graph.indexOf(ops.front());
      auto kernel = id < 0 ? byGroup.end() : byGroup.find(partition.groupOf(id));
      if (kernel != byGroup.end())
        decisions.kernels.push_back(kernel->second);
    }
  }

private:
  using PlannerStep::secondsOf;

  /// Returns true if the group may be packed. A contraction may be small because a launch takes much of its
  /// time.
  bool isSmall(unsigned group) const {
    const PlannedGroup &planned = *decisions.parts[group];
    bool isShort = target.traits.packsContractions && contracts(planned) &&
                   planned.predicted.seconds < target.costs.confidence.packedLaunches * target.launchSeconds;
    return planned.work.globalBytes() <= static_cast<double>(target.costs.confidence.packedBytes) ||
           planned.space.workgroups == 1 || isShort;
  }

  bool mayPack(unsigned kernel) const {
    return llvm::all_of(decisions.kernels[kernel], [&](unsigned group) { return isSmall(group) && !isApart(group); });
  }

  /// Returns true if the groups can share a launch, whose blocks have one size. Tiles of a contraction are chosen for a
  /// block size, so it cannot be changed; other groups adapt.
  bool haveOneBlockSize(ArrayRef<unsigned> groups) const {
    bool anyContracts = llvm::any_of(groups, [&](unsigned group) { return contracts(*decisions.parts[group]); });
    return !anyContracts || llvm::all_of(groups, [&](unsigned group) {
      return decisions.parts[group]->space.threads == decisions.parts[groups.front()]->space.threads;
    });
  }

  double secondsOf(ArrayRef<unsigned> kernel, double workingSetBytes) const {
    auto workOf = [&](unsigned group) { return decisions.parts[group]->work; };
    return estimate(llvm::map_to_vector(kernel, workOf), target, workingSetBytes).seconds;
  }

  double bytesOf(ArrayRef<unsigned> kernel) const {
    double bytes = 0;
    for (unsigned group : kernel)
      bytes += decisions.parts[group]->predicted.bytes;
    return bytes;
  }

  /// Returns the seconds that packing the kernels saves, or nothing if they cannot share a launch.
  std::optional<double> savedBy(ArrayRef<unsigned> kernels) const {
    SmallVector<unsigned> groups;
    for (unsigned kernel : kernels)
      llvm::append_range(groups, decisions.kernels[kernel]);
    if (countBindings(graph, decisions, groups, target) > target.maxBindings || !haveOneBlockSize(groups))
      return std::nullopt;
    for (unsigned a : kernels)
      for (unsigned b : kernels)
        if (a != b && partition.reaches(groupOf(decisions.kernels[a].front()), groupOf(decisions.kernels[b].front())))
          return std::nullopt;
    double bytes = bytesOf(groups), apart = 0;
    for (unsigned kernel : kernels)
      apart += secondsOf(decisions.kernels[kernel], bytes);
    return apart - secondsOf(groups, bytes);
  }

  void packTogether(ArrayRef<unsigned> members) {
    unsigned into = members.front();
    for (unsigned kernel : llvm::reverse(members.drop_front())) {
      partition.merge(groupOf(decisions.kernels[into].front()), groupOf(decisions.kernels[kernel].front()));
      llvm::append_range(decisions.kernels[into], decisions.kernels[kernel]);
      decisions.kernels.erase(decisions.kernels.begin() + kernel);
    }
  }
};
} // namespace

PlanDraft tilewright::makeKernels(const FusionProblem &problem, PlanDraft plan) {
  GroupPacker packer(problem, plan);
  packer.regroup();
  packer.makeKernels();
  return plan;
}

PlanDraft tilewright::packKernels(const FusionProblem &problem, PlanDraft plan) {
  if (problem.options.pack)
    GroupPacker(problem, plan).pack();
  return plan;
}

PlanDraft tilewright::packRemotely(const FusionProblem &problem, PlanDraft plan) {
  if (problem.options.pack)
    GroupPacker(problem, plan).packRemotely();
  return plan;
}

PlanDraft tilewright::orderKernels(const FusionProblem &problem, PlanDraft plan) {
  GroupPacker(problem, plan).orderKernels();
  return plan;
}

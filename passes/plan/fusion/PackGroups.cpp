// Puts small independent fusion groups into one kernel (FusionStitching 4.1), and kernels into launch order.
#include "passes/plan/fusion/PlannerStep.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kSmallPart = 1024 * 1024; ///< bytes of traffic up to which parts are packed into one kernel

constexpr double kLaunchesOfSmall = 8; ///< the same for contractions on a GPU, in the time of a launch

class GroupPacker : PlannerStep {
public:
  using PlannerStep::PlannerStep;

  /// Groups without what was trimmed and dropped since they grew. Taking members at the border away makes no cycle.
  void regroup() {
    partition = Partition(graph, block);
    keepApart();
    for (const std::optional<PlannedGroup> &part : decisions.parts)
      if (part)
        for (unsigned expr : part->choice.exprs)
          partition.merge(partition.groupOf(part->choice.exprs.front()), partition.groupOf(expr));
  }

  /// Small independent parts run side by side in one launch (FusionStitching 4.1: kernel packing).
  void pack() {
    for (unsigned index = 0; index < decisions.parts.size(); ++index)
      if (decisions.parts[index])
        decisions.kernels.push_back({index});
    if (!options.pack)
      return;
    for (size_t a = 0; a < decisions.kernels.size(); ++a)
      for (size_t b = a + 1; b < decisions.kernels.size();) {
        if (!mayPack(decisions.kernels[a], decisions.kernels[b])) {
          ++b;
          continue;
        }
        partition.merge(groupOf(decisions.kernels[a].front()), groupOf(decisions.kernels[b].front()));
        llvm::append_range(decisions.kernels[a], decisions.kernels[b]);
        decisions.kernels.erase(decisions.kernels.begin() + b);
      }
  }

  /// Kernels in an order in which they can be launched.
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

  /// A contraction on a GPU is small while a launch takes as long as a good part of it.
  bool isSmall(unsigned part) const {
    const PlannedGroup &planned = *decisions.parts[part];
    bool isShort = target.backend == Backend::cuda && contracts(planned) &&
                   planned.predicted.seconds < kLaunchesOfSmall * target.launchSeconds;
    return planned.work.globalBytes() <= kSmallPart || planned.space.workgroups == 1 || isShort;
  }

  /// Blocks of one launch have one size, and the tiles of a contraction are chosen for theirs.
  bool haveOneBlockSize(ArrayRef<unsigned> parts) const {
    bool anyContracts = llvm::any_of(parts, [&](unsigned part) { return contracts(*decisions.parts[part]); });
    return !anyContracts || llvm::all_of(parts, [&](unsigned part) {
      return decisions.parts[part]->space.threads == decisions.parts[parts.front()]->space.threads;
    });
  }

  double secondsOf(ArrayRef<unsigned> kernel, double workingSetBytes) const {
    auto workOf = [&](unsigned part) { return decisions.parts[part]->work; };
    return predictKernel(llvm::map_to_vector(kernel, workOf), target, workingSetBytes).seconds;
  }

  double bytesOf(ArrayRef<unsigned> kernel) const {
    double bytes = 0;
    for (unsigned part : kernel)
      bytes += decisions.parts[part]->predicted.bytes;
    return bytes;
  }

  bool mayPack(ArrayRef<unsigned> a, ArrayRef<unsigned> b) const {
    if (!llvm::all_of(llvm::concat<const unsigned>(a, b),
                      [&](unsigned part) { return isSmall(part) && !isApart(part); }))
      return false;
    SmallVector<unsigned> both(a);
    llvm::append_range(both, b);
    if (countBindings(graph, decisions, both, target) > target.maxBindings)
      return false;
    unsigned left = groupOf(a.front()), right = groupOf(b.front());
    if (partition.reaches(left, right) || partition.reaches(right, left))
      return false;
    if (!haveOneBlockSize(both))
      return false;
    double bytes = bytesOf(both);
    return secondsOf(both, bytes) < secondsOf(a, bytes) + secondsOf(b, bytes);
  }
};
} // namespace

void tilewright::packGroups(PlannerState &state) {
  GroupPacker packer(state);
  packer.regroup();
  packer.pack();
}

void tilewright::orderKernels(PlannerState &state) { GroupPacker(state).orderKernels(); }

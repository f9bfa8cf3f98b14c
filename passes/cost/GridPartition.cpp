// A greedy search: each stage is tried in the current kernel, whose phases are given their blocks (GridPhases.h)
// and whose time is predicted (predict). If either speaks against it, the stage begins a new kernel.
#include "passes/cost/GridPartition.h"

#include "passes/cost/Confidence.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace tilewright;

namespace {
class Partitioner {
public:
  Partitioner(ArrayRef<GridStage> stages, const Target &target, GridRules rules)
      : stages(stages), target(target), guaranteed(target), rules(rules) {
    guaranteed.cores = target.gpu.guaranteedSms;
  }

  GridPartition run() {
    for (unsigned stage : breadthFirst(stages)) {
      std::string reason = partition.kernels.empty() ? "it is the first" : tryJoin(stage);
      if (reason.empty())
        continue;
      if (!partition.kernels.empty())
        partition.cuts.push_back({stage, reason});
      partition.kernels.push_back(alone(stage));
    }
    return std::move(partition);
  }

private:
  GridKernel alone(unsigned stage) const {
    const BlockWork &work = stages[stage].work;
    GridKernel kernel = kernelOf(stages, stage, target);
    if (target.gpu.guaranteedSms == 0)
      return kernel; // without a GPU nothing is predicted
    int64_t blocks = std::min(work.blocks, kernel.residentBlocks * target.cores);
    double least = secondsOf(stages[stage], target, blocks, blocks, 0);
    kernel.seconds = target.launchSeconds + least;
    least = leastFaster(least, target.costs.confidence.barriers); // blocks share tiles only if that is faster
    for (int64_t resident = 1; resident <= kernel.residentBlocks; ++resident) {
      int64_t sharing = coResidentBlocks(target, resident);
      double seconds = sharedSecondsOf(stage, sharing, target);
      if (seconds >= least)
        continue;
      least = seconds;
      kernel.phases = {{{stage, sharing, /*sharesTiles=*/true}}};
      kernel.blocks = sharing;
      kernel.seconds = target.launchSeconds + seconds;
    }
    return kernel;
  }

  /// Returns the seconds of a stage whose tiles `blocks` blocks share, with their barrier; infinity if they cannot
  /// share tiles, or get whole tiles anyway.
  double sharedSecondsOf(unsigned stage, int64_t blocks, const Target &device) const {
    const GridStage &own = stages[stage];
    int64_t tiles = own.work.blocks;
    if (!rules.allowed || own.steps == 0 || !own.sharedSeconds || tiles % blocks == 0 || blocks > tiles * own.steps)
      return std::numeric_limits<double>::infinity();
    return target.gpu.gridBarrierSeconds + own.sharedSeconds(blocks, llvm::divideCeil(blocks, device.cores));
  }

  /// Returns the seconds of a stage that has `blocks` of the `all` blocks of a phase, with at most `resident` of them
  /// per SM (0: unbounded).
  static double secondsOf(const GridStage &stage, const Target &device, int64_t blocks, int64_t all, int64_t resident) {
    if (stage.seconds)
      return stage.seconds(blocks, llvm::divideCeil(all, device.cores));
    BlockWork work = stage.work;
    work.mostResident = resident;
    return blockLatency(work, device).seconds;
  }

  /// Joins the stage to the current kernel and returns an empty string, or returns why it begins a new kernel.
  std::string tryJoin(unsigned stage) {
    if (!rules.allowed)
      return "grid scope is forbidden";
    if (target.gpu.guaranteedSms == 0)
      return "the target has no grid barrier";
    GridKernel &current = partition.kernels.back();
    GridKernel joined = withStage(current, stages, stage, target);
    if (std::string why = shareOut(joined, stages, target); !why.empty())
      return why;
    predict(joined);
    double apart = current.seconds + alone(stage).seconds;
    if (rules.byCost && joined.seconds > apart)
      return formatv("a barrier does not pay: one kernel is predicted to take {0:f2} us, two take {1:f2} us",
                     joined.seconds * 1e6, apart * 1e6);
    current = std::move(joined);
    return "";
  }

  /// Predicts the seconds of a kernel. The stages of a phase run side by side, and every phase waits for its slowest
  /// stage. A stage that is alone in its phase may have its tiles shared by all blocks of the kernel, because all of
  /// them synchronise.
  void predict(GridKernel &kernel) const {
    bool anyWaits = llvm::any_of(stages, [](const GridStage &stage) { return stage.waits; }); // for all blocks
    int64_t sharing = anyWaits ? kernel.blocks : std::max(kernel.blocks, target.gpu.guaranteedSms);
    kernel.seconds = target.launchSeconds + (kernel.phases.size() - 1) * target.gpu.gridBarrierSeconds;
    for (std::vector<GridShare> &phase : kernel.phases) {
      double slowest = 0, all = 0;
      int64_t wanted = 0, given = 0;
      for (const GridShare &share : phase)
        given += share.blocks;
      for (const GridShare &share : phase) {
        double seconds = secondsOf(stages[share.stage], guaranteed, share.blocks, given, kernel.residentBlocks);
        slowest = std::max(slowest, seconds);
        // Stages with a prediction of their own account for their number of blocks.
        all += stages[share.stage].seconds ? 0 : seconds;
        wanted += stages[share.stage].work.blocks;
      }
      double seconds = wanted > coResidentBlocks(target, kernel.residentBlocks) ? std::max(all, slowest) : slowest;
      double shared = sharedSecondsOf(phase.front().stage, sharing, guaranteed);
      if (phase.size() == 1 && isFaster(shared, seconds, target.costs.confidence.barriers)) {
        phase.front() = {phase.front().stage, sharing, /*sharesTiles=*/true};
        kernel.blocks = sharing;
        seconds = shared;
      }
      kernel.seconds += seconds;
    }
  }

  ArrayRef<GridStage> stages;
  const Target &target;
  Target guaranteed; ///< the target with the SMs of the smallest device it stands for
  GridRules rules;
  GridPartition partition;
};
} // namespace

GridPartition tilewright::partitionAtGridSync(ArrayRef<GridStage> stages, const Target &target, GridRules rules) {
  return Partitioner(stages, target, rules).run();
}

double GridPartition::seconds() const {
  double sum = 0;
  for (const GridKernel &kernel : kernels)
    sum += kernel.seconds;
  return sum;
}

std::string GridPartition::verify(ArrayRef<GridStage> stages, const Target &target) const {
  std::vector<int64_t> phaseOf(stages.size(), -1); // the phase of each stage, counted over all kernels
  int64_t next = 0;
  for (const GridKernel &kernel : kernels) {
    for (const std::vector<GridShare> &phase : kernel.phases) {
      for (const GridShare &share : phase) {
        if (phaseOf[share.stage] >= 0)
          return stages[share.stage].name + " is in two phases";
        for (unsigned producer : stages[share.stage].producers)
          if (phaseOf[producer] < 0 || phaseOf[producer] == next)
            return stages[share.stage].name + " does not come after " + stages[producer].name + ", which it reads";
        phaseOf[share.stage] = next;
      }
      ++next;
    }
    bool synchronises = kernel.phases.size() > 1 ||
                        llvm::any_of(kernel.phases.front(), [](const GridShare &share) { return share.sharesTiles; });
    if (synchronises && kernel.blocks > coResidentBlocks(target, kernel.residentBlocks))
      return formatv("{0} blocks wait for each other, but only {1} are certain to be resident", kernel.blocks,
                     coResidentBlocks(target, kernel.residentBlocks));
  }
  auto missing = find(phaseOf, -1);
  return missing == phaseOf.end() ? "" : stages[missing - phaseOf.begin()].name + " is in no phase";
}

void GridPartition::print(ArrayRef<GridStage> stages, raw_ostream &os) const {
  for (const GridKernel &kernel : kernels) {
    os << "kernel of " << kernel.blocks << " blocks, " << kernel.residentBlocks << " per SM, of " << kernel.threads
       << " threads, " << kernel.registers << " registers, " << kernel.sharedBytes << " bytes of shared memory"
       << format(", %.3g us\n", kernel.seconds * 1e6);
    for (auto [i, phase] : enumerate(kernel.phases)) {
      os << (i > 0 ? "  barrier\n" : "");
      for (const GridShare &share : phase)
        os << "  " << stages[share.stage].name << " on " << share.blocks
           << (share.sharesTiles ? ", which share its tiles" : "") << "\n";
    }
  }
  for (const GridCut &cut : cuts)
    os << "cut before " << stages[cut.stage].name << ": " << cut.reason << "\n";
}

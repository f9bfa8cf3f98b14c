// A greedy search: each stage is tried in the current kernel, whose phases are given their blocks (shareOut) and whose
// time is predicted (predict). If either speaks against it, the stage begins a new kernel.
#include "passes/cost/GridPartition.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>

using namespace llvm;
using namespace tilewright;

int64_t tilewright::coResidentBlocks(const Target &target, int64_t residentBlocks) {
  return residentBlocks * target.gpu.guaranteedSms;
}

bool tilewright::hasRoomForPrefetch(const Target &target, const BlockWork &block, int64_t sharedBytes, int64_t sms) {
  if (sharedBytes > target.blockBytes)
    return false;
  int64_t before = residentBlocks(target.gpu, block.threads, block.sharedBytes, block.registers);
  int64_t after = residentBlocks(target.gpu, block.threads, sharedBytes, block.registers);
  return after >= std::min<int64_t>(before, divideCeil(block.blocks, sms));
}

namespace {
constexpr double kClearly = 0.9; ///< blocks share tiles only below this share of the time that whole tiles take

class Partitioner {
public:
  Partitioner(ArrayRef<GridStage> stages, const Target &target, GridRules rules)
      : stages(stages), target(target), guaranteed(target), rules(rules) {
    guaranteed.cores = target.gpu.guaranteedSms;
  }

  GridPartition run() {
    for (unsigned stage : breadthFirst()) {
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
  /// Orders the stages so that producers precede consumers, level by level.
  SmallVector<unsigned> breadthFirst() const {
    SmallVector<unsigned> order, waiting(stages.size());
    std::deque<unsigned> ready;
    for (auto [i, stage] : enumerate(stages))
      if ((waiting[i] = stage.producers.size()) == 0)
        ready.push_back(i);
    while (!ready.empty()) {
      unsigned stage = ready.front();
      ready.pop_front();
      order.push_back(stage);
      for (auto [i, reader] : enumerate(stages))
        for (unsigned producer : reader.producers)
          if (producer == stage && --waiting[i] == 0)
            ready.push_back(i);
    }
    assert(order.size() == stages.size() && "stages do not depend on themselves");
    return order;
  }

  GridKernel alone(unsigned stage) const {
    const BlockWork &work = stages[stage].work;
    GridKernel kernel;
    kernel.phases = {{{stage, work.blocks}}};
    kernel.blocks = work.blocks;
    kernel.threads = work.threads;
    kernel.sharedBytes = work.sharedBytes;
    kernel.registers = work.registers;
    if (target.gpu.guaranteedSms == 0)
      return kernel; // without a GPU nothing is predicted
    kernel.residentBlocks = residentBlocks(target.gpu, work.threads, work.sharedBytes, work.registers);
    int64_t blocks = std::min(work.blocks, kernel.residentBlocks * target.cores);
    double least = secondsOf(stages[stage], target, blocks, blocks, 0);
    kernel.seconds = target.launchSeconds + least;
    least *= kClearly;
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
    GridKernel joined = withStage(current, stage);
    if (std::string why = shareOut(joined); !why.empty())
      return why;
    predict(joined);
    double apart = current.seconds + alone(stage).seconds;
    if (rules.byCost && joined.seconds > apart)
      return formatv("a barrier does not pay: one kernel is predicted to take {0:f2} us, two take {1:f2} us",
                     joined.seconds * 1e6, apart * 1e6);
    current = std::move(joined);
    return "";
  }

  GridKernel withStage(GridKernel kernel, unsigned stage) const {
    size_t phase = 0;
    for (auto [i, shares] : enumerate(kernel.phases))
      for (const GridShare &share : shares)
        if (is_contained(stages[stage].producers, share.stage))
          phase = i + 1;
    kernel.phases.resize(std::max(kernel.phases.size(), phase + 1));
    kernel.phases[phase].push_back({stage, 0});
    const BlockWork &work = stages[stage].work;
    kernel.threads = std::max(kernel.threads, work.threads);
    kernel.sharedBytes = std::max(kernel.sharedBytes, work.sharedBytes);
    kernel.registers = std::max(kernel.registers, work.registers);
    kernel.residentBlocks = residentBlocks(target.gpu, kernel.threads, kernel.sharedBytes, kernel.registers);
    return kernel;
  }

  /// Returns how many tiles each block of a phase takes in turn, the same for all of its stages that walk.
  int64_t turnsOf(ArrayRef<GridShare> phase, int64_t slots) const {
    auto blocksAt = [&](int64_t turns) {
      int64_t blocks = 0;
      for (const GridShare &share : phase) {
        int64_t own = stages[share.stage].work.blocks;
        blocks += stages[share.stage].walks ? llvm::divideCeil(own, turns) : own;
      }
      return blocks;
    };
    int64_t turns = 1, least = blocksAt(std::numeric_limits<int64_t>::max());
    while (blocksAt(turns) > std::max(slots, least))
      ++turns;
    return turns;
  }

  /// Assigns blocks to every stage of every phase. Returns an empty string, or why they cannot all be resident.
  std::string shareOut(GridKernel &kernel) const {
    int64_t slots = coResidentBlocks(target, kernel.residentBlocks);
    auto tooMany = [&](const std::string &name, int64_t blocks) -> std::string {
      return formatv("the {0} blocks of {1} cannot all be resident: the target guarantees {2} SMs with {3} blocks each "
                     "of {4} threads, {5} registers a thread and {6} bytes of shared memory",
                     blocks, name, target.gpu.guaranteedSms, kernel.residentBlocks, kernel.threads, kernel.registers,
                     kernel.sharedBytes);
    };
    kernel.blocks = 0;
    for (std::vector<GridShare> &phase : kernel.phases) {
      int64_t wanted = 0, given = 0;
      for (const GridShare &share : phase)
        wanted += stages[share.stage].work.blocks;
      int64_t turns = turnsOf(phase, slots);
      for (GridShare &share : phase) {
        const GridStage &stage = stages[share.stage];
        share = {share.stage, stage.work.blocks};
        if (wanted > slots && stage.walks && phase.size() == 1)
          share.blocks = std::max<int64_t>(1, static_cast<double>(share.blocks) * slots / wanted);
        else if (wanted > slots && stage.walks)
          share.blocks = llvm::divideCeil(share.blocks, turns);
        given += share.blocks;
        if (given > slots)
          return tooMany(stage.name, stage.work.blocks);
      }
      kernel.blocks = std::max(kernel.blocks, given);
    }
    return "";
  }

  /// Predicts the seconds of a kernel. The stages of a phase run side by side, and every phase waits for its slowest
  /// stage. A stage that is alone in its phase may have its tiles shared by all blocks of the kernel, because all of
  /// them synchronise.
  void predict(GridKernel &kernel) const {
    int64_t sharing = std::max(kernel.blocks, target.gpu.guaranteedSms);
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
      if (phase.size() == 1 && shared < kClearly * seconds) {
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

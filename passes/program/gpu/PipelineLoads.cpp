// Implements Souffle 6.5 on tile programs: contractions find the first steps of operands that the plan names already in
// shared memory, because their copies started while the contraction before them was multiplied. The slots of both are
// live at once, so this is done only if a block has room for both and no fewer blocks are resident.
#include "dialects/tile/Phases.h"
#include "passes/Passes.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/Prefetch.h"
#include "passes/target/Occupancy.h"
#include "passes/target/TargetOrError.h"

#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_PIPELINELOADS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct PipelineLoads : tilewright::impl::PipelineLoadsBase<PipelineLoads> {
  using PipelineLoadsBase::PipelineLoadsBase;

  /// Returns the resources of a block, over all parts of the program.
  static BlockResources blockOf(ProgramOp program, const Target &machine) {
    BlockResources block{static_cast<int64_t>(program.getWorkgroups()), threadsOf(program),
                         sharedBytesOf(program, machine), 0};
    for (auto part : program.getBody().getOps<ParallelOp>())
      block.registers = std::max(block.registers, registersOf(part, block.threads, machine));
    return block;
  }

  /// Prefetches for a contraction. `without` has the resources of a block that does not, and becomes those of one that
  /// does.
  void begin(ComputeOp contraction, Prefetch loads, const Target &machine, BlockResources &without) {
    auto program = contraction->getParentOfType<ProgramOp>();
    setPrefetch(contraction, loads);
    BlockResources with = blockOf(program, machine);
    int64_t sms = syncsAtGrid(program) ? machine.gpu.guaranteedSms : machine.cores;
    if (hasRoomForPrefetch(machine, without, with.sharedBytes, sms)) {
      ++numPipelined;
      without = with;
      return;
    }
    setPrefetch(contraction, {});
    decline(contraction, "a block would take " + std::to_string(with.sharedBytes) +
                             " bytes of shared memory instead of " + std::to_string(without.sharedBytes) +
                             ", so that fewer blocks would be resident");
  }

  void decline(ComputeOp contraction, const std::string &why) {
    remark::missed(contraction.getLoc(), remark::RemarkOpts::name("waits").category("tile-pipeline-loads"))
        << ("the operands are not prefetched while the contraction before is computed: " + why);
    ++numDeclined;
  }

  void runOnOperation() override {
    ProgramOp program = getOperation();
    FailureOr<Target> machine = targetOrError(program, target);
    if (failed(machine))
      return signalPassFailure();
    if (!machine->traits.threadBlocks)
      return;
    int64_t threads = threadsOf(program);
    SmallVector<ComputeOp> contractions;
    program.walk([&](ComputeOp compute) {
      if (compute.getMicroKernel())
        contractions.push_back(compute);
    });
    std::optional<BlockResources> block;
    for (ComputeOp contraction : contractions) {
      Prefetch planned = plannedPrefetch(contraction);
      if (!planned.any())
        continue;
      std::string why = "nothing is computed before it, or its operands are not copied asynchronously";
      Prefetch loads = planned & possiblePrefetch(contraction, threads, *machine, &why);
      if (loads.any() && !block)
        block = blockOf(program, *machine);
      if (loads.any())
        begin(contraction, loads, *machine, *block);
      else
        decline(contraction, why);
    }
  }
};
} // namespace

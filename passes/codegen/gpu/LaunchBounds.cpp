// Each check computes what the kernel needs (threads, cluster, shared memory, registers) and compares it with the
// target. Co-residency is proved with the registers that launch bounds then enforce.
#include "passes/codegen/gpu/LaunchBounds.h"

#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/gpu/ClusterAttr.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/Prefetch.h"
#include "passes/program/gpu/ResidentWeights.h"
#include "passes/program/gpu/ThreadMapping.h"
#include "passes/support/DiagnosticNumbers.h"
#include "passes/target/Occupancy.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static LogicalResult checkPrefetch(ProgramOp program, const Target &target) {
  int64_t threads = threadsOf(program);
  WalkResult checked = program.walk([&](ComputeOp compute) -> WalkResult {
    std::string why = whyNoPrefetch(compute, threads, target);
    return why.empty() ? WalkResult::advance() : WalkResult(compute.emitError("prefetch: ") << why);
  });
  return failure(checked.wasInterrupted());
}

static LogicalResult checkWeights(ProgramOp program, const Target &target) {
  WalkResult checked = program.walk([&](ComputeOp compute) -> WalkResult {
    std::string why = compute->hasAttr(kResidentWeightAttr) ? whyNotKept(compute, target) : "";
    return why.empty() ? WalkResult::advance()
                       : WalkResult(compute.emitError("its rhs cannot stay in shared memory: ") << why);
  });
  return failure(checked.wasInterrupted());
}

/// Checks that every block of the grid is in a cluster, and that each block runs its nests for at most one tile.
static LogicalResult checkCluster(ProgramOp program, ParallelOp part, const Target &target) {
  int64_t blocks = clusterOf(part), most = largestCluster(target), workgroups = part.getWorkgroups();
  if (blocks == 1)
    return success();
  if (!llvm::isPowerOf2_64(blocks) || blocks > most)
    return part.emitError("clusters have ")
           << blocks << " blocks, but target '" << target.name
           << (most > 1 ? "' supports powers of two up to " + std::to_string(most) : "' has no clusters");
  bool alone = llvm::hasSingleElement(program.getBody().getOps<ParallelOp>());
  if (!alone || workgroups != part.getNumTiles())
    return part.emitError("clusters of ")
           << blocks << " blocks need one tile per workgroup and no other part in the program; this part has "
           << workgroups << " workgroups for " << part.getNumTiles() << " tiles";
  return success();
}

LogicalResult tilewright::checkLaunch(ProgramOp program, const Target &target) {
  if (!target.traits.threadBlocks)
    return program.emitError("target '") << target.name << "' is not a GPU";
  for (auto part : program.getBody().getOps<ParallelOp>()) {
    BlockShape shape = blockShapeOf(part);
    bool fits = llvm::isPowerOf2_64(shape.threads) && shape.threads >= target.gpu.warpLanes &&
                shape.threads <= target.gpu.threadsPerBlock && shape.group >= 0 && shape.group <= shape.threads &&
                (shape.group == 0 || llvm::isPowerOf2_64(shape.group));
    if (!fits)
      return part.emitError("blocks have ")
             << shape.threads << " threads in groups of " << shape.group << ", but target '" << target.name
             << "' supports powers of two from " << target.gpu.warpLanes << " to " << target.gpu.threadsPerBlock;
    if (failed(checkCluster(program, part, target)))
      return failure();
  }
  return failed(checkWeights(program, target)) ? failure() : checkPrefetch(program, target);
}

static int64_t integer(func::FuncOp function, StringRef name) {
  return function->getAttrOfType<IntegerAttr>(name).getInt();
}

/// Returns the greatest number of registers per thread of any part.
static int64_t mostRegisters(ProgramOp program, int64_t threads, const Target &target) {
  int64_t registers = 0;
  for (auto part : program.getBody().getOps<ParallelOp>())
    registers = std::max(registers, registersOf(part, threads, target));
  return registers;
}

static int64_t residentBlocksOf(ProgramOp program, func::FuncOp function, const Target &target) {
  int64_t threads = integer(function, kThreadsAttr);
  return residentBlocks(target.gpu, threads, integer(function, kBlockBytesAttr),
                        mostRegisters(program, threads, target));
}

/// Returns the blocks that the plan has resident on an SM; none if the program comes from no plan.
static std::optional<int64_t> plannedBlocks(ProgramOp program) {
  auto stated = program->getAttrOfType<IntegerAttr>(kResidentBlocksAttr);
  return stated ? std::optional(stated.getInt()) : std::nullopt;
}

/// Returns the blocks that are resident on an SM without a plan; 0 leaves the registers to ptxas.
static int64_t derivedBlocks(ProgramOp program, func::FuncOp function, int64_t most, const Target &target) {
  WalkResult found = program.walk(
      [](ComputeOp compute) { return compute.getMicroKernel() ? WalkResult::interrupt() : WalkResult::advance(); });
  return found.wasInterrupted()
             ? std::min<int64_t>(most, llvm::divideCeil(integer(function, kWorkgroupsAttr), target.cores))
             : 0;
}

LogicalResult tilewright::boundRegisters(ProgramOp program, func::FuncOp function, const Target &target) {
  int64_t most = residentBlocksOf(program, function, target);
  std::optional<int64_t> planned = plannedBlocks(program);
  if (planned && *planned > std::max<int64_t>(most, 1)) {
    std::string why = llvm::formatv("residentBlocks is {0}, but an SM of target '{1}' holds {2} blocks of {3} threads, "
                                    "{4} registers per thread and {5} bytes of shared memory",
                                    *planned, target.name, most, integer(function, kThreadsAttr),
                                    mostRegisters(program, integer(function, kThreadsAttr), target),
                                    integer(function, kBlockBytesAttr));
    if (program->hasAttr(kGivenAttr))
      return program.emitError("illegal plan: in '") << program.getSymName() << "' " << why;
    remark::missed(program.getLoc(), remark::RemarkOpts::name("resident-blocks").category("tile-convert-to-gpu"))
        << ("tile: the planner's " + why); // it knows the memory of a block about
    planned = std::max<int64_t>(most, 1);
    function->removeAttr(kResidentBlocksAttr);
  }
  int64_t resident = planned ? *planned : derivedBlocks(program, function, most, target);
  if (resident > 0 && !function->hasAttr(kResidentBlocksAttr))
    function->setAttr(kResidentBlocksAttr, Builder(function).getI64IntegerAttr(resident));
  return success();
}

LogicalResult tilewright::proveCoResidency(ProgramOp program, func::FuncOp function, const Target &target) {
  if (!syncsAtGrid(program))
    return success();
  int64_t blocks = integer(function, kWorkgroupsAttr), threads = integer(function, kThreadsAttr),
          bytes = integer(function, kBlockBytesAttr);
  int64_t registers = mostRegisters(program, threads, target);
  int64_t resident = residentBlocks(target.gpu, threads, bytes, registers);
  int64_t most = coResidentBlocks(target, resident);
  Operation *meeting = hasGridSync(program) ? (*gridSyncsOf(program).begin()).getOperation() : program;
  if (blocks > most)
    return meeting->emitError("in '") << program.getSymName() << "' " << blocks << " blocks of " << threads
                                      << " threads, " << registers << " registers per thread and " << bytes
                                      << " bytes of shared memory wait for each other; target '" << target.name
                                      << "' is sure to have " << most
                                      << " resident: plan fewer workgroups, or scope launch";
  int64_t needed = llvm::divideCeil(blocks, target.gpu.guaranteedSms);
  int64_t planned = plannedBlocks(program).value_or(needed);
  if (!program->hasAttr(kGivenAttr))
    planned = std::max(planned, needed); // phases may have been joined or packed since the plan was made
  if (planned < needed)
    return meeting->emitError("illegal plan: in '") << program.getSymName() << "' residentBlocks is " << planned << ", but " << blocks
                                      << " blocks wait for each other, so an SM holds at least " << needed;
  function->setAttr(kResidentBlocksAttr, Builder(function).getI64IntegerAttr(planned));
  function->setAttr(kGridSyncAttr, UnitAttr::get(function.getContext()));
  return success();
}

LogicalResult tilewright::checkBlockBytes(func::FuncOp function, const Target &target) {
  int64_t bytes = function->getAttrOfType<IntegerAttr>(kBlockBytesAttr).getInt();
  if (bytes <= target.blockBytes)
    return success();
  InFlightDiagnostic error = function.emitError("a block needs ")
                             << bytes << " bytes of shared memory; target '" << target.name << "' has "
                             << target.blockBytes << ": plan smaller tiles";
  attachNumber(*error.getUnderlyingDiagnostic(), kExcessBlockBytes, bytes - target.blockBytes);
  return error;
}

// Implements stream-K on tile programs. The number of steps per tile is known here, because the contraction is planned
// as it will be emitted. The partial sums that workgroups add to each other's tiles become one more output of the
// program.
#include "dialects/tile/Phases.h"
#include "passes/Passes.h"
#include "passes/graph/Bindings.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/ContractionPlan.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/target/Occupancy.h"
#include "passes/target/TargetOrError.h"

#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_ALLOCATEPARTIALS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A part whose tiles are shared by workgroups, with its contraction as it will be emitted.
struct SharedPart {
  std::optional<ContractionPlan> contraction;
  Type sum;
  int64_t steps = 0, workgroups = 0;
};

bool writesGlobal(ComputeOp compute) {
  auto isGlobal = [](Value slice) { return cast<SliceType>(slice.getType()).getSpace() == Space::global; };
  return llvm::any_of(compute.getAccs(), isGlobal) ||
         llvm::any_of(compute.getBodyBlock().getOps<StoreOp>(),
                      [&](StoreOp store) { return isGlobal(store.getSlice()); });
}

/// Returns the contraction that a tile ends with, together with the nests that read its accumulators from registers;
/// null if the tile ends with something else or has another contraction. Ops before it only fill buffers of the block.
ComputeOp lastContraction(ParallelOp part) {
  ComputeOp found;
  bool isOver = false;
  for (Operation &op : part.getWalk().getBody().front()) {
    if (isa<AllocOp, SyncOp>(op))
      continue;
    auto compute = dyn_cast<ComputeOp>(op);
    if (isOver || !compute)
      return nullptr;
    if (compute.getMicroKernel()) {
      if (found)
        return nullptr;
      found = compute;
      std::optional<RegisterHandover> handover = registerHandover(compute);
      if (handover && handover->keepsAccumulators())
        return nullptr;
      isOver = !handover;
    } else if (contractionHandedTo(compute)) {
      isOver = true;
    } else if (writesGlobal(compute)) {
      return nullptr;
    }
  }
  return found;
}

bool isAloneInPhase(ParallelOp part) {
  return llvm::any_of(phasesOf(part->getParentOfType<ProgramOp>()),
                      [&](ArrayRef<ParallelOp> phase) { return phase.size() == 1 && phase.front() == part; });
}

/// Plans the part into `shared`. Returns why its tiles stay whole, or an empty string.
std::string plan(ParallelOp part, const Target &machine, SharedPart &shared) {
  auto program = part->getParentOfType<ProgramOp>();
  ComputeOp compute = lastContraction(part);
  if (!compute)
    return "a tile does not end with its only contraction";
  if (!isAloneInPhase(part))
    return "other parts run in the same phase";
  int64_t threads = threadsOf(program);
  std::string why;
  if (shared.contraction = planContraction(compute, threads, machine, &why); !shared.contraction)
    return why;
  if (!hasOneLoop(compute, *shared.contraction))
    return "it does not walk its K dims in a single loop";
  shared.sum = compute.getBodyBlock().getArgument(0).getType();
  shared.steps = stepsOf(compute, *shared.contraction);
  int64_t registers = 0;
  for (auto other : program.getBody().getOps<ParallelOp>())
    registers = std::max(registers, registersOf(other, threads, machine));
  int64_t resident = residentBlocks(machine.gpu, threads, sharedBytesOf(program, machine), registers);
  int64_t units = part.getNumTiles() * shared.steps;
  shared.workgroups =
      std::min(std::max<int64_t>(part.getWorkgroups(), program.getWorkgroups()), coResidentBlocks(machine, resident));
  if (hasGridSync(program)) // all workgroups take part in the barrier
    shared.workgroups = std::max<int64_t>(shared.workgroups, program.getWorkgroups());
  if (shared.workgroups > units)
    return std::to_string(units) + " steps are too few for " + std::to_string(shared.workgroups) + " workgroups";
  if (part.getNumTiles() % shared.workgroups == 0)
    return "each workgroup has the same number of whole tiles anyway";
  return "";
}

/// Returns true if the kernel may have one more result that nothing reads.
bool hasBindingLeft(ProgramOp program, ArrayRef<LaunchOp> launches, const Target &machine) {
  if (static_cast<int64_t>(program.getBody().getNumArguments()) < machine.maxBindings)
    return true;
  Target sharing = machine; // share bindings, as tile-share-bindings will have to
  sharing.maxBindings = 0;
  return !launches.empty() && llvm::all_of(launches, [&](LaunchOp launch) {
    SmallVector<Value> inputs(launch.getInputs()), results(launch.getResults());
    auto isOwn = [](Value result) { return result.use_empty(); };
    int64_t count = countBindings(inputs, results, isOwn, sharing) + llvm::none_of(results, isOwn);
    return count <= machine.maxBindings;
  });
}

/// Adds an output that nothing reads. Returns its binding.
Value addOutput(ProgramOp program, SliceType type, ArrayRef<LaunchOp> launches) {
  program.setOutputs(program.getOutputs() + 1);
  auto tensor = RankedTensorType::get(type.getShape(), type.getElementType());
  for (LaunchOp launch : launches) {
    OpBuilder builder(launch);
    SmallVector<Type> types(launch.getResultTypes());
    types.push_back(tensor);
    DenseI64ArrayAttr tied;
    if (launch.getTied()) {
      SmallVector<int64_t> inputs(*launch.getTied());
      inputs.push_back(-1);
      tied = builder.getDenseI64ArrayAttr(inputs);
    }
    auto with = LaunchOp::create(builder, launch.getLoc(), types, launch.getProgram(), launch.getInputs(), tied);
    with->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
    launch.replaceAllUsesWith(with.getResults().drop_back());
    launch.erase();
  }
  return program.getBody().addArgument(type, program.getLoc());
}

struct AllocatePartials : tilewright::impl::AllocatePartialsBase<AllocatePartials> {
  using AllocatePartialsBase::AllocatePartialsBase;

  void keepWhole(ParallelOp part, const std::string &why) {
    part.setWorkgroups(std::min<int64_t>(part.getWorkgroups(), part.getNumTiles()));
    part.removeStepsAttr();
    remark::missed(part.getLoc(), remark::RemarkOpts::name("whole-tiles").category("tile-allocate-partials"))
        << ("tile: workgroups do not share tiles: " + why);
    ++numDeclined;
  }

  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    SmallVector<ParallelOp> parts;
    getOperation().walk([&](ParallelOp part) {
      if (part.getSteps() && !part.getPartials())
        parts.push_back(part);
    });
    for (ParallelOp part : parts) {
      auto program = part->getParentOfType<ProgramOp>();
      SmallVector<LaunchOp> launches;
      getOperation().walk([&](LaunchOp launch) {
        if (launch.getProgram().getLeafReference() == program.getSymNameAttr())
          launches.push_back(launch);
      });
      SharedPart shared;
      std::string why = plan(part, *machine, shared);
      if (why.empty() && !hasBindingLeft(program, launches, *machine))
        why = "the kernel has as many bindings as the target allows, so none is left for partial sums";
      if (!why.empty()) {
        keepWhole(part, why);
        continue;
      }
      part.setSteps(shared.steps);
      part.setWorkgroups(shared.workgroups);
      SliceType type = partialsOf(&getContext(), shared.contraction->tiling, shared.sum, shared.workgroups);
      part.getPartialsMutable().assign(addOutput(program, type, launches));
      ++numShared;
    }
  }
};
} // namespace

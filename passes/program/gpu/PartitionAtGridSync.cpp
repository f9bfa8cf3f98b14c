// Implements Souffle 5.4 on tile programs. The planner decides which phases share a kernel; this pass proves that their
// blocks are resident at once (layout/GridPhases.h), and cuts the program where they are not. A barrier that is cut
// becomes a launch: the part behind it becomes a program of its own, with the tensors it reads as inputs.
#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/LoopBodies.h"
#include "passes/layout/GridPhases.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/Prefetch.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {
#define GEN_PASS_DEF_PARTITIONATGRIDSYNC
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// The bindings that a part reads and writes.
struct Bindings {
  llvm::SetVector<Value> reads, writes;
};

Bindings bindingsOf(ParallelOp part) {
  Bindings bindings;
  auto note = [](llvm::SetVector<Value> &set, Value slice) {
    if (isa<BlockArgument>(slice) && cast<SliceType>(slice.getType()).getSpace() == Space::global)
      set.insert(slice);
  };
  part.walk([&](LoadOp load) { note(bindings.reads, load.getSlice()); });
  part.walk([&](StoreOp store) { note(bindings.writes, store.getSlice()); });
  part.walk([&](MoveOp move) {
    note(bindings.reads, move.getSource());
    note(bindings.writes, move.getTarget());
  });
  part.walk([&](ComputeOp compute) {
    for (Value slice : compute.getAccs())
      note(bindings.writes, slice);
  });
  return bindings;
}

/// Cuts one program into several.
class ProgramCutter {
public:
  ProgramCutter(ProgramOp program, const GridKernels &partition)
      : program(program), partition(partition), parts(program.getBody().getOps<ParallelOp>()) {}

  struct Piece {
    ProgramOp program;
    SmallVector<unsigned> inputs, outputs; ///< arguments of the original program
  };

  SmallVector<Piece> cut() {
    OpBuilder builder(program);
    SmallVector<Piece> pieces;
    for (const GridKernel &kernel : partition.kernels)
      pieces.push_back(build(builder, kernel, pieces.size()));
    return pieces;
  }

private:
  Piece build(OpBuilder &builder, const GridKernel &kernel, unsigned number) {
    llvm::SetVector<Value> reads, writes;
    for (const std::vector<GridShare> &phase : kernel.phases)
      for (const GridShare &share : phase) {
        Bindings own = bindingsOf(parts[share.stage]);
        reads.insert(own.reads.begin(), own.reads.end());
        writes.insert(own.writes.begin(), own.writes.end());
      }
    Piece piece;
    for (BlockArgument argument : program.getBody().getArguments())
      if (reads.contains(argument) && !writes.contains(argument))
        piece.inputs.push_back(argument.getArgNumber());
    for (BlockArgument argument : program.getBody().getArguments())
      if (writes.contains(argument))
        piece.outputs.push_back(argument.getArgNumber());
    piece.program =
        ProgramOp::create(builder, program.getLoc(), nameOf(number), piece.outputs.size(), program.getTargetAttr(),
                          /*in_place=*/ArrayAttr());
    Block &body = piece.program.getBody().emplaceBlock();
    IRMapping mapping;
    for (unsigned argument : llvm::concat<unsigned>(piece.inputs, piece.outputs)) {
      Value own = program.getBody().getArgument(argument);
      mapping.map(own, body.addArgument(own.getType(), own.getLoc()));
    }
    OpBuilder inside = OpBuilder::atBlockEnd(&body);
    for (const std::vector<GridShare> &phase : kernel.phases) {
      if (!body.empty())
        SyncOp::create(inside, parts[phase.front().stage].getLoc(), Scope::grid);
      for (const GridShare &share : phase) {
        auto part = cast<ParallelOp>(inside.clone(*parts[share.stage], mapping));
        setBlocks(part, share);
        if (&phase == &kernel.phases.front())
          dropPrefetchBefore(part);
      }
    }
    return piece;
  }

  /// Returns the name of a piece. The first one keeps the name of the program.
  std::string nameOf(unsigned number) {
    auto module = program->getParentOfType<ModuleOp>();
    std::string name = program.getSymName().str();
    for (unsigned suffix = number; number > 0 && module.lookupSymbol(name); ++suffix)
      name = (program.getSymName() + "_" + Twine(suffix)).str();
    return name;
  }

  static void setBlocks(ParallelOp part, const GridShare &share) {
    part.setWorkgroups(std::min<int64_t>(part.getWorkgroups(), share.blocks));
  }

  ProgramOp program;
  const GridKernels &partition;
  SmallVector<ParallelOp> parts;
};

/// Replaces the launch of the whole program by one launch per piece.
void replaceLaunch(LaunchOp launch, ProgramOp whole, ArrayRef<ProgramCutter::Piece> pieces) {
  OpBuilder builder(launch);
  SmallVector<Value> values(launch.getInputs());
  unsigned numInputs = values.size();
  values.resize(whole.getBody().getNumArguments());
  for (const ProgramCutter::Piece &piece : pieces) {
    SmallVector<Value> inputs = llvm::map_to_vector(piece.inputs, [&](unsigned i) { return values[i]; });
    SmallVector<Type> types =
        llvm::map_to_vector(piece.outputs, [&](unsigned i) { return launch.getResult(i - numInputs).getType(); });
    SmallVector<FlatSymbolRefAttr> path(launch.getProgram().getNestedReferences());
    auto leaf = FlatSymbolRefAttr::get(ProgramOp(piece.program).getSymNameAttr());
    auto symbol = path.empty() ? SymbolRefAttr(leaf) : SymbolRefAttr::get(launch.getProgram().getRootReference(), leaf);
    auto own = LaunchOp::create(builder, launch.getLoc(), types, symbol, inputs, /*tied=*/DenseI64ArrayAttr());
    for (auto [i, result] : llvm::zip(piece.outputs, own.getResults()))
      values[i] = result;
  }
  for (auto [i, result] : llvm::enumerate(launch.getResults()))
    result.replaceAllUsesWith(values[numInputs + i]);
  launch.erase();
}

struct PartitionAtGridSync : tilewright::impl::PartitionAtGridSyncBase<PartitionAtGridSync> {
  using PartitionAtGridSyncBase::PartitionAtGridSyncBase;

  static std::vector<GridMember> membersOf(ProgramOp program, const Target &machine) {
    std::vector<GridMember> stages;
    SmallVector<Bindings> bindings;
    for (auto [i, part] : llvm::enumerate(program.getBody().getOps<ParallelOp>())) {
      Bindings own = bindingsOf(part);
      GridMember &stage = stages.emplace_back();
      stage.name = "part " + std::to_string(i) + " of '" + program.getSymName().str() + "'";
      stage.block = resourcesOf(part, machine);
      for (unsigned j = 0; j < bindings.size(); ++j)
        if (llvm::any_of(own.reads, [&](Value slice) { return bindings[j].writes.contains(slice); }))
          stage.producers.push_back(j);
      bindings.push_back(std::move(own));
    }
    return stages;
  }

  void explain(ProgramOp program, ArrayRef<GridMember> stages, const GridKernels &partition) {
    auto parts = llvm::to_vector(program.getBody().getOps<ParallelOp>());
    for (const GridCut &cut : partition.cuts) {
      remark::missed(parts[cut.stage].getLoc(),
                     remark::RemarkOpts::name("launch").category("tile-partition-at-grid-sync"))
          << ("tile: " + stages[cut.stage].name + " gets a launch of its own: " + cut.reason);
      ++numCut;
    }
    for (const GridKernel &kernel : partition.kernels)
      numKept += kernel.phases.size() - 1;
  }

  /// Checks that no tile stays resident across a cut, because a launch cannot pass shared memory on.
  static LogicalResult checkResidentTiles(ProgramOp program, const GridKernels &partition) {
    auto parts = llvm::to_vector(program.getBody().getOps<ParallelOp>());
    DenseMap<int64_t, unsigned> kernelOf;
    for (auto [number, kernel] : llvm::enumerate(partition.kernels))
      for (const std::vector<GridShare> &phase : kernel.phases)
        for (const GridShare &share : phase) {
          WalkResult checked = parts[share.stage].walk([&, number = number](AllocOp alloc) {
            int64_t resident = residentTileNumber(alloc);
            bool isApart = resident >= 0 && kernelOf.try_emplace(resident, number).first->second != number;
            return isApart ? WalkResult::interrupt() : WalkResult::advance();
          });
          if (checked.wasInterrupted())
            return parts[share.stage].emitError(
                "the part reads a tile that an earlier phase keeps in shared memory, but would get "
                "a launch of its own");
        }
    return success();
  }

  LogicalResult cut(ProgramOp program, const Target &machine, ArrayRef<LaunchOp> launches) {
    std::vector<GridMember> stages = membersOf(program, machine);
    GridKernels partition = joinWhileResident(stages, machine, gridSync);
    assert(partition.verify(stages, machine).empty() && "phases are in order");
    if (failed(checkResidentTiles(program, partition)))
      return failure();
    explain(program, stages, partition);
    SmallVector<ProgramCutter::Piece> pieces = ProgramCutter(program, partition).cut();
    for (LaunchOp launch : launches)
      replaceLaunch(launch, program, pieces);
    program.erase();
    return success();
  }

  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    SmallVector<ProgramOp> programs;
    llvm::StringMap<SmallVector<LaunchOp>> launches;
    getOperation().walk([&](ProgramOp program) { programs.push_back(program); });
    getOperation().walk([&](LaunchOp launch) { launches[launch.getProgram().getLeafReference()].push_back(launch); });
    for (ProgramOp program : programs)
      if (hasGridSync(program) && failed(cut(program, *machine, launches[program.getSymName()])))
        return signalPassFailure();
    noteInvariants();
  }

  /// Notes, on programs that are launched in every step of a loop which is to become part of their kernel, the inputs
  /// that do not change in the loop. A program that was cut is not repeated.
  void noteInvariants() {
    SymbolTableCollection symbols;
    DenseMap<ProgramOp, DenseI64ArrayAttr> invariants;
    getOperation().walk([&](ProgramOp program) { program->removeAttr(kRepeatedAttr); });
    getOperation().walk([&](scf::ForOp loop) {
      auto launches = loop.getBody()->getOps<LaunchOp>();
      if (!loop->hasAttr(kOneKernelAttr) || !llvm::hasSingleElement(launches))
        return;
      LaunchOp launch = *launches.begin();
      auto program = symbols.lookupNearestSymbolFrom<ProgramOp>(launch, launch.getProgramAttr());
      SmallVector<int64_t> own;
      for (auto [number, input] : llvm::enumerate(launch.getInputs()))
        if (loop.isDefinedOutsideOfLoop(input))
          own.push_back(number);
      if (auto known = invariants.lookup(program)) // equal loops share a program
        llvm::erase_if(own, [&](int64_t input) { return !llvm::is_contained(known.asArrayRef(), input); });
      invariants[program] = DenseI64ArrayAttr::get(&getContext(), own);
    });
    for (auto [program, inputs] : invariants)
      ProgramOp(program)->setAttr(kRepeatedAttr, inputs);
  }
};
} // namespace

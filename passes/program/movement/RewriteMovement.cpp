// Implements PowerFusion's Algorithm 1 (section 5.2): apply sync and swap until nothing changes, then merge, and repeat
// until nothing merges. The rules are patterns; this pass orders them, finds the outputs that are hand-overs, and
// finally removes unused bindings. Buffers of the block are made last, because merged hand-overs need none.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/movement/MovementRules.h"
#include "passes/program/movement/SliceUses.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

namespace tilewright {
#define GEN_PASS_DEF_REWRITEMOVEMENT
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
using Launches = SmallVector<LaunchOp>;

int64_t numInputs(ProgramOp program) { return program.getBody().getNumArguments() - program.getOutputs(); }

/// Returns the outputs that no user of a launch reads. There are none without a launch, or if outputs reuse the memory
/// of inputs.
SmallVector<Value> handoversOf(ProgramOp program, ArrayRef<LaunchOp> launches) {
  SmallVector<Value> handovers;
  if (launches.empty() || program.getInPlace())
    return handovers;
  for (int64_t i = 0; i < static_cast<int64_t>(program.getOutputs()); ++i)
    if (llvm::all_of(launches, [&](LaunchOp launch) { return launch.getResult(i).use_empty(); }))
      handovers.push_back(program.getBody().getArgument(numInputs(program) + i));
  return handovers;
}

/// Gives what parts say of bindings by their numbers the numbers that are left; `number` returns -1 for a binding that
/// is dropped.
void renumber(ProgramOp program, llvm::function_ref<int64_t(int64_t)> number) {
  for (auto part : program.getBody().getOps<ParallelOp>()) {
    if (auto keeps = part->getAttrOfType<DenseI64ArrayAttr>(kResidentAttr)) {
      SmallVector<int64_t> pairs;
      for (ArrayRef<int64_t> rest = keeps.asArrayRef(); rest.size() > 1; rest = rest.drop_front(2))
        if (int64_t binding = number(rest[1]); binding >= 0)
          pairs.append({rest[0], binding});
      part->setAttr(kResidentAttr, DenseI64ArrayAttr::get(part.getContext(), pairs));
    }
    if (auto accesses = part->getAttrOfType<ArrayAttr>(kAccessesAttr)) {
      SmallVector<Attribute> own;
      for (auto [binding, access] : llvm::enumerate(accesses))
        if (number(binding) >= 0)
          own.push_back(access);
      part->setAttr(kAccessesAttr, ArrayAttr::get(part.getContext(), own));
    }
  }
}

/// Removes the hand-overs that no op of the program touches any more. Returns the new launches.
Launches dropBindings(ProgramOp program, ArrayRef<LaunchOp> launches, const llvm::DenseSet<Value> &handovers) {
  int64_t inputs = numInputs(program);
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < static_cast<int64_t>(program.getOutputs()); ++i) {
    Value binding = program.getBody().getArgument(inputs + i);
    if (!handovers.contains(binding) || !binding.use_empty())
      kept.push_back(i);
  }
  if (kept.size() == program.getOutputs())
    return Launches(launches);
  renumber(program, [&](int64_t binding) -> int64_t {
    if (binding < inputs)
      return binding;
    auto own = llvm::find(kept, binding - inputs);
    return own == kept.end() ? -1 : inputs + (own - kept.begin());
  });
  Block &body = program.getBody().front();
  body.eraseArguments([&](BlockArgument argument) {
    int64_t output = static_cast<int64_t>(argument.getArgNumber()) - inputs;
    return output >= 0 && !llvm::is_contained(kept, output);
  });
  program.setOutputs(kept.size());
  Launches now;
  for (LaunchOp launch : launches) {
    OpBuilder builder(launch);
    SmallVector<Type> types = llvm::map_to_vector(kept, [&](int64_t i) { return launch.getResult(i).getType(); });
    auto own = LaunchOp::create(builder, launch.getLoc(), types, launch.getProgram(), launch.getInputs(),
                                /*tied=*/DenseI64ArrayAttr());
    for (auto [i, result] : llvm::zip(kept, own.getResults()))
      launch.getResult(i).replaceAllUsesWith(result);
    launch.erase();
    now.push_back(own);
  }
  return now;
}

struct RewriteMovement : tilewright::impl::RewriteMovementBase<RewriteMovement> {
  using RewriteMovementBase::RewriteMovementBase;
  using Populate = void (*)(RewritePatternSet &, MovementState &);

  bool has(StringRef rule) { return rules.empty() || llvm::is_contained(rules, rule); }

  bool apply(ProgramOp program, Populate populate, MovementState &state) {
    RewritePatternSet patterns(&getContext());
    populate(patterns, state);
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    bool changed = false;
    [[maybe_unused]] LogicalResult converged =
        applyPatternsGreedily(program.getBody(), std::move(patterns), config, &changed);
    assert(succeeded(converged) && "the patterns terminate");
    return changed;
  }

  void rewrite(ProgramOp program, MovementState &state) {
    for (bool merged = true; merged;) {
      ++state.counts.rounds;
      if (has("sync"))
        apply(program, populateSyncRules, state);
      if (has("swap"))
        apply(program, populateSwapRules, state);
      merged = has("merge") && apply(program, populateMergeRules, state);
    }
    if (has("sync"))
      apply(program, populateRaiseRules, state);
  }

  void explain(ProgramOp program, const MovementState &state) {
    for (Value binding : program.getBody().getArguments()) {
      SliceUses uses = usesOf(binding);
      if (!state.handovers.contains(binding) || uses.loads.empty())
        continue;
      ++numKept;
      std::string why = whyNotMerged(uses.loads.front());
      remark::missed(program.getLoc(), remark::RemarkOpts::name("handover").category("tile-rewrite-movement"))
          << ("tile: '" + program.getSymName().str() + "' hands output " +
              std::to_string(cast<BlockArgument>(binding).getArgNumber() - numInputs(program)) +
              " over through memory: " + (why.empty() ? "the merge rule is disabled" : why));
    }
  }

  /// Debian builds MLIR without statistics, so a remark reports the counts.
  static void report(ProgramOp program, const MovementCounts &counts) {
    if (counts.rewrites() == 0)
      return;
    remark::passed(program.getLoc(), remark::RemarkOpts::name("rewritten").category("tile-rewrite-movement"))
        << llvm::formatv("tile: '{0}' in {1} rounds: {2} joined, {3} dropped, {4} raised, {5} swapped, "
                         "{6} read-after-write, {7} read-after-read",
                         program.getSymName(), counts.rounds, counts.joined, counts.dropped, counts.raised,
                         counts.swapped, counts.readAfterWrite, counts.readAfterRead)
               .str();
  }

  void count(const MovementCounts &counts) {
    numRounds += counts.rounds;
    numJoined += counts.joined;
    numDropped += counts.dropped;
    numRaised += counts.raised;
    numSwapped += counts.swapped;
    numReadAfterWrite += counts.readAfterWrite;
    numReadAfterRead += counts.readAfterRead;
  }

  LogicalResult checkRules() {
    for (const std::string &rule : rules)
      if (!llvm::is_contained({"sync", "swap", "merge"}, StringRef(rule)))
        return getOperation().emitError("there is no rule '") << rule << "': take sync, swap and merge";
    return success();
  }

  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    if (failed(checkRules()))
      return signalPassFailure();
    SmallVector<ProgramOp> programs;
    llvm::StringMap<Launches> launches;
    getOperation().walk([&](ProgramOp program) { programs.push_back(program); });
    getOperation().walk([&](LaunchOp launch) { launches[launch.getProgram().getLeafReference()].push_back(launch); });
    for (ProgramOp program : programs) {
      Launches &own = launches[program.getSymName()];
      MovementState state;
      state.target = &*machine;
      state.handovers.insert_range(handoversOf(program, own));
      rewrite(program, state);
      own = dropBindings(program, own, state.handovers);
      explain(program, state);
      report(program, state.counts);
      count(state.counts);
    }
  }
};
} // namespace

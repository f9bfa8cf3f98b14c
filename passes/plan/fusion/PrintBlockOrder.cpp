// Prints chains of contractions, their best block order and the bytes that it moves, as remarks at their last
// contraction.
#include "passes/Passes.h"
#include "passes/plan/tiling/cpu/ChainMovement.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTBLOCKORDER
#include "passes/Passes.h.inc"

namespace {
std::string print(const OperatorChain &chain, const BlockSchedule &schedule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  schedule.print(chain, os);
  return text;
}

class PrintBlockOrder : public impl::PrintBlockOrderBase<PrintBlockOrder> {
public:
  using PrintBlockOrderBase::PrintBlockOrderBase;

private:
  void printChain(Operation *last, const OperatorChain &chain, const Target &target) {
    std::string text;
    llvm::raw_string_ostream os(text);
    chain.print(os);
    last->emitRemark() << "chain: " << text;
    ChainMachine machine = chainMachine(target);
    std::optional<BlockSchedule> fused = scheduleChain(chain, machine, leastTiles(chain, target));
    last->emitRemark() << "fused: " << (fused ? print(chain, *fused) : "its smallest tiles fit no cache");
    double seconds = 0;
    for (const OperatorChain &one : separately(chain)) {
      std::optional<BlockSchedule> alone = scheduleChain(one, machine, leastTiles(one, target));
      last->emitRemark() << "apart, " << one.ops[0].name << ": "
                         << (alone ? print(one, *alone) : "its smallest tiles fit no cache");
      seconds += alone ? alone->seconds + target.launchSeconds : 0;
    }
    std::string verdict;
    llvm::raw_string_ostream(verdict) << llvm::format(
        "one kernel %.3g us, apart %.3g us", fused ? (fused->seconds + target.launchSeconds) * 1e6 : 0, seconds * 1e6);
    if (fused)
      last->emitRemark() << verdict;
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Target> found = targetOrError(getOperation(), target);
    if (failed(found))
      return signalPassFailure();
    Target machine = cores > 0 ? withCores(*found, cores) : *found;
    for (Block &block : getOperation().getBody()) {
      TensorGraph graph = TensorGraph::build(block);
      for (const FoundChain &chain : findChains(graph)) {
        Operation *last = graph.exprs()[chain.last].op;
        if (!chain.declined.empty())
          last->emitRemark() << "no longer chain: " << chain.declined;
        if (!chain.chain.ops.empty())
          printChain(last, online ? withOnlineReductions(chain.chain) : chain.chain, machine);
      }
    }
  }
};
} // namespace
} // namespace tilewright

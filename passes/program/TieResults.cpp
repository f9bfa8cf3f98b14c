// Ties results of launches to inputs whose memory they reuse. InPlace decides; this pass records the decision on the
// launch and, for code generation, on its program.
#include "passes/Passes.h"
#include "passes/program/InPlace.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {
#define GEN_PASS_DEF_TIERESULTS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct TieResults : tilewright::impl::TieResultsBase<TieResults> {
  void runOnOperation() override {
    Builder builder(&getContext());
    SymbolTableCollection symbols;
    llvm::MapVector<ProgramOp, llvm::SetVector<Attribute>> inPlace;
    getOperation().walk([&](LaunchOp launch) {
      auto program = symbols.lookupNearestSymbolFrom<ProgramOp>(launch, launch.getProgramAttr());
      if (!program)
        return;
      SmallVector<int64_t> decided = decideTied(launch, inputsToOverwrite(program));
      int64_t count = llvm::count_if(decided, [](int64_t input) { return input >= 0; });
      if (count == 0)
        return;
      launch.setTied(decided);
      inPlace[program].insert(launch.getTiedAttr());
      tied += count;
    });
    for (auto &[program, ties] : inPlace)
      ProgramOp(program).setInPlaceAttr(builder.getArrayAttr(ties.getArrayRef()));
    if (inPlace.empty())
      markAllAnalysesPreserved();
  }
};
} // namespace

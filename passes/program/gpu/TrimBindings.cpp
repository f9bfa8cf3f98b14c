// Makes the bindings of programs final. Kernels with phases read some tensors in one phase only, and find their tiles
// in shared memory in another (tile-keep-resident-tiles), so that a view of such a tensor may have no reader left.
#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/graph/LoopBodies.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {
#define GEN_PASS_DEF_TRIMBINDINGS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct TrimBindings : tilewright::impl::TrimBindingsBase<TrimBindings> {
  using TrimBindingsBase::TrimBindingsBase;

  void runOnOperation() override {
    llvm::StringMap<SmallVector<LaunchOp>> launches;
    getOperation().walk([&](LaunchOp launch) { launches[launch.getProgram().getLeafReference()].push_back(launch); });
    getOperation().walk([&](ProgramOp program) {
      if (!program.getInPlace()) // which names inputs by their numbers
        trim(program, launches.lookup(program.getSymName()));
    });
    noteInvariants();
  }

private:
  void trim(ProgramOp program, ArrayRef<LaunchOp> launches) {
    Block &body = program.getBody().front();
    for (unsigned input = body.getNumArguments() - program.getOutputs(); input-- > 0;) {
      if (!body.getArgument(input).use_empty())
        continue;
      body.eraseArgument(input);
      for (LaunchOp launch : launches)
        launch->eraseOperand(input);
      ++numRemoved;
    }
  }

  /// Notes, on programs that are launched in every step of a loop which is to become part of their kernel, the inputs
  /// that do not change in the loop.
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

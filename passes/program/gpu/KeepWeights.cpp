// Decides which weights of a repeated kernel stay in shared memory. The plan cannot: what a block has room for depends
// on where its buffers and the scratch of its contractions lie, and on tiles that it copies as a whole, so this runs
// when all of these are placed.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/gpu/ResidentWeights.h"
#include "passes/target/TargetOrError.h"

#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_KEEPWEIGHTS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct KeepWeights : tilewright::impl::KeepWeightsBase<KeepWeights> {
  using KeepWeightsBase::KeepWeightsBase;

  void runOnOperation() override {
    FailureOr<Target> known = targetOrError(getOperation(), target);
    if (failed(known))
      return signalPassFailure();
    auto options = remark::RemarkOpts::name("resident-weight").category("tile-keep-weights");
    for (ResidentWeight weight : possibleWeights(getOperation(), *known)) {
      weight.contraction->setAttr(kResidentWeightAttr, UnitAttr::get(&getContext()));
      remark::passed(weight.contraction->getLoc(), options)
          << "tile: " + std::to_string(weight.bytes) + " bytes of a weight stay in shared memory over all steps";
      ++numKept;
    }
    getOperation().walk([&](ComputeOp compute) {
      if (compute->hasAttr(kResidentWeightAttr) || !whyNotKept(compute, *known).empty())
        return;
      remark::missed(compute->getLoc(), options)
          << "tile: every step copies a weight to shared memory: a block has no room for all of it";
      ++numDeclined;
    });
  }
};
} // namespace

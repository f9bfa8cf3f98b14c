// Guards divisions of integers that stay with IREE. IREE 3.13 pads some kernels with zeros and divides by the padding,
// which ends the process by SIGFPE on x86, though no divisor of the model is zero.
#include "passes/Passes.h"
#include "passes/support/Divisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {
#define GEN_PASS_DEF_GUARDDIVISIONS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
struct GuardDivisions : tilewright::impl::GuardDivisionsBase<GuardDivisions> {
  static bool guard(Operation &division) {
    OpBuilder builder(&division);
    OpOperand &divisor = division.getOpOperand(1);
    Value safe = createSafeDivisor(builder, division, division.getOperand(0), divisor.get());
    bool changes = safe != divisor.get();
    divisor.set(safe);
    return changes;
  }

  void runOnOperation() override {
    SmallVector<Operation *> divisions;
    getOperation().walk([&](linalg::GenericOp op) {
      op.getBody()->walk([&](Operation *inner) {
        if (isIntegerDivision(*inner) && inner->getResult(0).getType().isInteger())
          divisions.push_back(inner);
      });
    });
    for (Operation *division : divisions)
      numGuarded += guard(*division);
  }
};
} // namespace

// Prints, on each op, its arithmetic per element moved and the resulting class.
#include "passes/Passes.h"
#include "passes/graph/ComputeRatio.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTCOMPUTERATIO
#include "passes/Passes.h.inc"

namespace {
class PrintComputeRatio : public impl::PrintComputeRatioBase<PrintComputeRatio> {
public:
  using PrintComputeRatioBase::PrintComputeRatioBase;

private:
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      FailureOr<TensorExpr> expr = describe(op);
      if (failed(expr))
        return;
      std::string text;
      llvm::raw_string_ostream os(text);
      computeRatio(*expr, threshold).print(os);
      op->emitRemark() << text;
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright

// Prints, on each op, the elements that its results rely on.
#include "passes/Passes.h"
#include "passes/graph/ElementDependence.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PRINTELEMENTDEPENDENCE
#include "passes/Passes.h.inc"

namespace {
class PrintElementDependence : public impl::PrintElementDependenceBase<PrintElementDependence> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      FailureOr<TensorExpr> expr = describe(op);
      if (failed(expr))
        return;
      for (const ElementDependence &dependence : elementDependence(*expr)) {
        std::string text;
        llvm::raw_string_ostream os(text);
        dependence.print(os);
        op->emitRemark() << text;
      }
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright

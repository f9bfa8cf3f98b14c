// Eliminates common subexpressions of subprograms, wherever they are.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_CSESUBPROGRAMS
#include "passes/Passes.h.inc"

namespace {
struct CseSubprograms : impl::CseSubprogramsBase<CseSubprograms> {
  void runOnOperation() override {
    getOperation().walk([](tile::SubprogramOp subprogram) {
      DominanceInfo dominance(subprogram);
      IRRewriter rewriter(subprogram->getContext());
      eliminateCommonSubExpressions(rewriter, dominance, subprogram);
    });
  }
};
} // namespace
} // namespace tilewright

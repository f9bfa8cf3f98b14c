#include "passes/normalize/SplitResults.h"

#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns the maps of an op that computes one of the results alone.
SmallVector<AffineMap> mapsOf(linalg::GenericOp op, unsigned result) {
  SmallVector<AffineMap> maps(op.getIndexingMapsArray());
  AffineMap own = maps[op.getNumDpsInputs() + result];
  maps.truncate(op.getNumDpsInputs());
  maps.push_back(own);
  return maps;
}

bool maySplit(linalg::GenericOp op) {
  if (op.getNumResults() < 2 || op.getNumParallelLoops() != op.getNumLoops() || llvm::all_equal(op.getResultTypes()) ||
      llvm::any_of(op.getRegionOutputArgs(), [](BlockArgument own) { return !own.use_empty(); }))
    return false;
  // The sizes of the loops must follow from the operands that are left.
  for (unsigned result = 0; result < op.getNumResults(); ++result)
    if (!inversePermutation(concatAffineMaps(mapsOf(op, result), op.getContext())))
      return false;
  return true;
}

Value alone(OpBuilder &builder, linalg::GenericOp op, unsigned result) {
  auto single = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(op.getResult(result).getType()),
                                          op.getDpsInputs(), op.getDpsInits()[result], mapsOf(op, result),
                                          op.getIteratorTypesArray());
  IRMapping mapping;
  op.getRegion().cloneInto(&single.getRegion(), mapping);
  Block &body = single.getRegion().front();
  Value own = body.getTerminator()->getOperand(result);
  body.getTerminator()->setOperands(own);
  unsigned inputs = op.getNumDpsInputs();
  body.eraseArguments([&](BlockArgument argument) {
    return argument.getArgNumber() >= inputs && argument.getArgNumber() != inputs + result;
  });
  eraseUnused(body);
  return single.getResult(0);
}
} // namespace

void tilewright::splitResults(func::FuncOp function) {
  SmallVector<linalg::GenericOp> several;
  function->walk([&](linalg::GenericOp op) {
    if (maySplit(op))
      several.push_back(op);
  });
  for (linalg::GenericOp op : several) {
    OpBuilder builder(op);
    for (unsigned result = 0; result < op.getNumResults(); ++result)
      op.getResult(result).replaceAllUsesWith(alone(builder, op, result));
    op.erase();
  }
}

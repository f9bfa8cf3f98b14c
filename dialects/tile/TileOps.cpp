// Generated code of all ops, and checks that the verifiers of both levels share.
#include "dialects/tile/TileVerifiers.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tilewright::tile;

#define GET_OP_CLASSES
#include "dialects/tile/TileOps.cpp.inc"

bool tilewright::tile::distinctDims(ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen.test(dim))
      return false;
    seen.set(dim);
  }
  return true;
}

/// Returns the numbers of dims and symbols that maps of an op in a body may use.
static std::pair<unsigned, unsigned> enclosingSpace(Operation *op) {
  if (auto expr = dyn_cast<ExprOp>(op->getParentOp()))
    return {expr.getDomain().size(), 0};
  auto compute = cast<ComputeOp>(op->getParentOp());
  return {compute.getExtents().size(), compute.getExtents().size()};
}

LogicalResult tilewright::tile::verifySpace(Operation *op, unsigned numDims, unsigned numSymbols,
                                            StringRef constraint) {
  auto [dims, symbols] = enclosingSpace(op);
  if (numDims != dims || numSymbols > symbols)
    return op->emitOpError() << constraint << ": expected " << dims << " dims and at most " << symbols
                             << " symbols, got " << numDims << " and " << numSymbols;
  return success();
}

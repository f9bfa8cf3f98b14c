// Describes each expression and its reads, and lets ReducedWalk decide.
#include "passes/graph/SubprogramWalk.h"

#include "passes/graph/Form.h"

using namespace mlir;
using namespace tilewright;

static tile::ExprOp producerOf(Value value) {
  while (auto connect = value.getDefiningOp<tile::ConnectOp>())
    value = connect.getValue();
  return value.getDefiningOp<tile::ExprOp>();
}

Walk tilewright::walkAlong(tile::SubprogramOp subprogram, int64_t dim) {
  Block &body = subprogram.getBody().front();
  SmallVector<TensorExpr, 0> exprs;
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto root : body.getOps<tile::ExprOp>()) {
    FailureOr<TensorExpr> expr = describe(root);
    if (failed(expr) || !root.getDims())
      return {"an expression of the kernel has no dims in its iteration space", {}, {}, -1, {}};
    numbers[root] = exprs.size();
    exprs.push_back(std::move(*expr));
  }
  SmallVector<WalkedRoot> roots;
  for (const TensorExpr &expr : exprs) {
    auto root = cast<tile::ExprOp>(expr.op);
    WalkedRoot &walked = roots.emplace_back(WalkedRoot{&expr, *root.getDims(), {}, false});
    walked.leaves = llvm::any_of(root->getUsers(), [](Operation *user) { return isa<tile::YieldOp>(user); });
    for (auto [i, input] : llvm::enumerate(root.getInputs()))
      if (tile::ExprOp producer = producerOf(input)) {
        auto connect = input.getDefiningOp<tile::ConnectOp>();
        unsigned result = cast<OpResult>(connect.getValue()).getResultNumber();
        walked.reads.push_back({numbers.lookup(producer), producer.getResultMap(result), root.getInputMap(i),
                                root.getGuard(i) != IntegerSet()});
      }
  }
  bool allowed = namesForm(subprogram.getNumerics(), isOnlineSoftmaxOfBlocks);
  return decideWalk(roots, dim, [&](unsigned maximum) -> SmallVector<Relation> {
    if (!allowed)
      return {};
    auto producer = [&](unsigned expr, unsigned input) -> int64_t {
      tile::ExprOp root = producerOf(exprs[expr].inputs[input].tensor);
      return root ? static_cast<int64_t>(numbers.lookup(root)) : -1;
    };
    return relateTo(exprs, maximum, producer, /*throughRoundings=*/true);
  });
}

int64_t tilewright::walkedDim(ArrayRef<int64_t> extents, ArrayRef<int64_t> tiles, ArrayRef<int64_t> grid) {
  for (int64_t dim = 0; dim < static_cast<int64_t>(extents.size()); ++dim)
    if (tiles[dim] < extents[dim] && !llvm::is_contained(grid, dim))
      return dim;
  return -1;
}

#include "passes/program/gpu/SharedReductions.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Form.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

SmallVector<int64_t> tilewright::sharedDimsOf(ComputeOp nest) {
  SmallVector<int64_t> shared;
  for (auto [dim, offset] : llvm::zip(nest.getOffsetDims(), nest.getOffsets())) {
    auto argument = dyn_cast<BlockArgument>(offset);
    if (argument && isa<WalkOp>(argument.getOwner()->getParentOp()) && nest.isReduced(dim) &&
        nest.getSizes()[dim] < nest.getExtents()[dim])
      shared.push_back(dim);
  }
  return shared;
}

static bool reads(ComputeOp nest, Value slice) {
  return llvm::any_of(nest.getBodyBlock().getOps<LoadOp>(), [&](LoadOp load) { return load.getSlice() == slice; });
}

/// Returns true if a partial result may start from the init as well as the result itself.
static bool mayStartTwice(vector::CombiningKind kind, Attribute init) {
  using Kind = vector::CombiningKind;
  if (kind != Kind::ADD && kind != Kind::MUL)
    return kind != Kind::XOR; // extrema, conjunctions and disjunctions
  double neutral = kind == Kind::ADD ? 0 : 1;
  if (auto number = dyn_cast<FloatAttr>(init))
    return number.getValueAsDouble() == neutral;
  auto number = dyn_cast<IntegerAttr>(init);
  return number && number.getInt() == static_cast<int64_t>(neutral);
}

/// Returns why blocks cannot share the rows of the reduction, or an empty string.
static std::string whyNotShared(ComputeOp nest) {
  if (sharedDimsOf(nest).size() > 1)
    return "a reduction has several dims that are cut into tiles";
  if (nest.getMicroKernel() || nest.getRunning())
    return "a contraction, or a maximum that is used before it is complete, is not shared";
  for (auto [acc, kind, init] : llvm::zip(nest.getAccs(), nest.getKinds(), nest.getInits())) {
    auto known = vector::symbolizeCombiningKind(cast<StringAttr>(kind).getValue());
    if (!known || !mayStartTwice(*known, init))
      return "a reduction has to be computed in order";
    if (!acc.getDefiningOp<AllocOp>())
      return "a reduction's result leaves the kernel";
  }
  return "";
}

/// Returns the ops of the nest's body that `value` depends on.
static llvm::SetVector<Operation *> bodyOpsBehind(ComputeOp nest, Value value) {
  llvm::SetVector<Operation *> behind;
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == &nest.getBodyBlock() && behind.insert(op))
      llvm::append_range(open, op->getOperands());
  }
  return behind;
}

/// Returns the nest as a sum of (x - b)^2 if it has that form, and b depends on the results of one of the sums alone.
static std::optional<SharedSquares> squaresOf(const SharedReduction &reduction, ArrayRef<SharedReduction> sums) {
  ComputeOp nest = reduction.nest;
  if (markedForm(nest) != Form::twoMomentVariance || nest.getAccs().size() != 1 ||
      nest.getExtents()[reduction.dim] % nest.getSizes()[reduction.dim] != 0)
    return std::nullopt;
  Value accumulator = nest.getBodyBlock().getArgument(0);
  auto sum = cast<YieldOp>(nest.getBodyBlock().getTerminator()).getValues()[0].getDefiningOp<arith::AddFOp>();
  auto square = sum ? (sum.getLhs() == accumulator ? sum.getRhs() : sum.getLhs()).getDefiningOp<arith::MulFOp>()
                    : arith::MulFOp();
  auto difference = square && square.getLhs() == square.getRhs() ? square.getLhs().getDefiningOp<arith::SubFOp>()
                                                                 : arith::SubFOp();
  if (!difference)
    return std::nullopt;
  SharedSquares squares{reduction, {}, difference.getRhs(), bodyOpsBehind(nest, difference.getRhs())};
  for (Operation *op : squares.computesB)
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (squares.total && squares.total != load.getSlice())
        return std::nullopt;
      squares.total = load.getSlice();
    }
  bool known = llvm::any_of(sums, [&](const SharedReduction &other) {
    ComputeOp sum = other.nest;
    return sum.getAccs().size() == 1 && sum.getAccs()[0] == squares.total && other.dim == reduction.dim &&
           cast<StringAttr>(sum.getKinds()[0]).getValue() == "add";
  });
  return known ? std::optional(squares) : std::nullopt;
}

std::string tilewright::findExchanges(ParallelOp part, SmallVectorImpl<RowExchange> &exchanges) {
  std::optional<RowExchange> open;
  auto close = [&](ComputeOp reader) {
    open->before = reader;
    exchanges.push_back(std::move(*open));
    open.reset();
  };
  for (Operation &op : part.getWalk().getBody().front()) {
    auto nest = dyn_cast<ComputeOp>(op);
    if (!nest) {
      if (op.getNumRegions() > 0)
        return "nests run inside " + op.getName().getStringRef().str();
      continue;
    }
    bool isShared = !sharedDimsOf(nest).empty();
    if (std::string why = isShared ? whyNotShared(nest) : ""; !why.empty())
      return why;
    bool readsResult = open && llvm::any_of(open->sums, [&](const SharedReduction &sum) {
      return llvm::any_of(ComputeOp(sum.nest).getAccs(), [&](Value acc) { return reads(nest, acc); });
    });
    if (readsResult && isShared)
      open->squares = squaresOf({nest, sharedDimsOf(nest).front()}, open->sums);
    bool joins = readsResult && open->squares;
    if (isShared && !joins && markedForm(nest) == Form::twoMomentVariance)
      return "a sum that is to be exchanged with that of its mean is not one of squares of differences from it";
    if (readsResult)
      close(nest);
    if (!isShared || joins)
      continue;
    if (!open)
      open.emplace();
    open->sums.push_back({nest, sharedDimsOf(nest).front()});
  }
  if (open)
    return "nothing reads a reduction's result";
  if (!exchanges.empty() && part.getNumTiles() != static_cast<int64_t>(part.getWorkgroups()))
    return "a block has several tiles";
  return "";
}

// Completes reductions of rows that several blocks share (Souffle, figure 1c): each block reduces its part of a row,
// and all blocks exchange these partial results at a grid barrier. Only partial results cross the barrier in global
// memory. What else a tile has computed stays on chip: a block has one tile, so buffers and accumulators in registers
// are still there behind the barrier.
//
// A variance would take two barriers, because the mean has to be known before squares of differences from it are added
// up. With the form `two-moment variance`, a block adds up (x - c)^2, where c is the mean of its own part. If S is the
// part's sum of x, and n its number of elements, its sum of (x - b)^2 is that sum plus
//   t (2 (S - n c) + n t), where t = c - b
// (Chan, Golub and LeVeque, 1983; see OnePassVariance.cpp). S - n c is zero except for the rounding of c.
#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/gpu/AddOutput.h"
#include "passes/program/gpu/SharedReductions.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {
#define GEN_PASS_DEF_REDUCEACROSSBLOCKS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// One accumulator of a shared reduction, and the number of its partial results in their binding.
struct SharedResult {
  SharedReduction reduction;
  unsigned accumulator;
  int64_t number;

  ComputeOp nest() const { return reduction.nest; }
  Value buffer() const { return nest().getAccs()[accumulator]; }
  AffineMap map() const { return cast<AffineMapAttr>(nest().getAccMaps()[accumulator]).getValue(); }
  Attribute init() const { return nest().getInits()[accumulator]; }
  StringRef kindName() const { return cast<StringAttr>(nest().getKinds()[accumulator]).getValue(); }
  vector::CombiningKind kind() const { return *vector::symbolizeCombiningKind(kindName()); }
};

class ExchangeBuilder {
public:
  ExchangeBuilder(const RowExchange &exchange, SmallVector<LaunchOp> launches)
      : exchange(exchange), first(exchange.sums.front().nest), shared(exchange.sums.front().dim),
        loc(ComputeOp(exchange.before).getLoc()), builder(exchange.before), launches(std::move(launches)) {
    for (const SharedReduction &sum : exchange.sums)
      add(sum);
    if (exchange.squares)
      add(exchange.squares->sum);
    for (int64_t dim = 0; dim < static_cast<int64_t>(first.getExtents().size()); ++dim)
      if (!first.isReduced(dim))
        rows.push_back(dim);
  }

  /// Returns why the partial results of all reductions cannot share a binding, or an empty string.
  std::string whyNot() {
    for (const SharedResult &result : results)
      if (result.nest().getExtents() != first.getExtents() || result.nest().getSizes() != first.getSizes() ||
          result.nest().getReductions() != first.getReductions() || result.nest().getOffsets() != first.getOffsets() ||
          result.reduction.dim != shared || elementOf(result) != elementOf(results.front()))
        return "reductions that blocks exchange together have other dims, tiles or types";
    return "";
  }

  void build() {
    allocate();
    if (exchange.squares)
      sumOwnSquares();
    SyncOp::create(builder, loc, Scope::block);
    leavePartials();
    SyncOp::create(builder, loc, Scope::grid);
    combine(ArrayRef(results).take_front(results.size() - (exchange.squares ? 1 : 0)));
    SyncOp::create(builder, loc, Scope::block);
    if (!exchange.squares)
      return;
    combineSquares(results.back());
    SyncOp::create(builder, loc, Scope::block);
    dropSquares();
  }

private:
  void add(const SharedReduction &reduction) {
    for (unsigned i = 0; i < ComputeOp(reduction.nest).getAccs().size(); ++i)
      results.push_back({reduction, i, static_cast<int64_t>(results.size())});
  }

  static Type elementOf(const SharedResult &result) {
    return cast<SliceType>(result.buffer().getType()).getElementType();
  }
  int64_t parts() const { return llvm::divideCeil(ComputeOp(first).getExtents()[shared], partSize()); }
  int64_t partSize() const { return ComputeOp(first).getSizes()[shared]; }

  /// Partial results lie by number and part, so that neighbouring threads access those of neighbouring rows.
  void allocate() {
    SmallVector<int64_t> shape = {static_cast<int64_t>(results.size()), parts()};
    for (int64_t dim : rows)
      shape.push_back(first.getExtents()[dim]);
    auto type = SliceType::get(builder.getContext(), shape, elementOf(results.front()), Space::global);
    partials = addOutput(first->getParentOfType<ProgramOp>(), type, launches);
  }

  //===--------------------------------------------------------------------===//
  // Nests over the rows of a tile and one more dim
  //===--------------------------------------------------------------------===//

  /// Returns the offset of a dim of the reductions, or null.
  Value offsetOf(int64_t dim) {
    auto place = llvm::find(first.getOffsetDims(), dim);
    return place == first.getOffsetDims().end() ? Value() : first.getOffsets()[place - first.getOffsetDims().begin()];
  }

  /// Creates a nest over the rows and a last dim of `extent`, `size` and, if not null, `offset`. `fill` builds its body
  /// and returns what it yields.
  ComputeOp createNest(int64_t extent, int64_t size, Value offset, ArrayRef<SharedResult> combined,
                       function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> fill) {
    SmallVector<int64_t> extents, sizes, offsetDims, reductions;
    SmallVector<Value> offsets, accs;
    SmallVector<Attribute> maps, inits, kinds;
    auto addDim = [&](int64_t length, int64_t tile, Value start) {
      if (start) {
        offsetDims.push_back(extents.size());
        offsets.push_back(start);
      }
      extents.push_back(length);
      sizes.push_back(tile);
    };
    for (int64_t dim : rows)
      addDim(first.getExtents()[dim], first.getSizes()[dim], offsetOf(dim));
    addDim(extent, size, offset);
    if (!combined.empty())
      reductions.push_back(rows.size());
    auto *body = new Block();
    for (const SharedResult &result : combined) {
      accs.push_back(result.buffer());
      maps.push_back(AffineMapAttr::get(rowMap(result.map())));
      inits.push_back(result.init());
      kinds.push_back(builder.getStringAttr(result.kindName()));
      body->addArgument(elementOf(result), loc);
    }
    OpBuilder inside(builder.getContext());
    inside.setInsertionPointToEnd(body);
    YieldOp::create(inside, loc, fill(inside, body->getArguments()));
    int64_t vector = rows.size();
    for (auto [position, dim] : llvm::enumerate(rows))
      if (first.getSizes()[dim] > 1)
        vector = position;
    auto nest = ComputeOp::create(builder, loc, offsets, accs, extents, sizes, offsetDims, reductions, vector,
                                  builder.getArrayAttr(maps), builder.getArrayAttr(inits), builder.getArrayAttr(kinds),
                                  StringAttr(), GemmAttr(), RunningAttr());
    nest.getBody().push_back(body);
    return nest;
  }

  /// Rewrites the map of an accumulator, which depends on rows only, to the dims of createNest.
  AffineMap rowMap(AffineMap map) {
    SmallVector<AffineExpr> dims(map.getNumDims(), builder.getAffineConstantExpr(0)), symbols(dims);
    for (auto [position, dim] : llvm::enumerate(rows)) {
      dims[dim] = builder.getAffineDimExpr(position);
      symbols[dim] = builder.getAffineSymbolExpr(position);
    }
    unsigned rank = rows.size() + 1;
    return map.replaceDimsAndSymbols(dims, symbols, rank, rank);
  }

  /// Returns the index of a partial result of the current row. `part` is an expression in the dims of createNest.
  AffineMap partialMap(const SharedResult &result, AffineExpr part) {
    SmallVector<AffineExpr> index = {builder.getAffineConstantExpr(result.number), part};
    for (unsigned position = 0; position < rows.size(); ++position)
      index.push_back(builder.getAffineDimExpr(position));
    unsigned rank = rows.size() + 1;
    return AffineMap::get(rank, rank, index, builder.getContext());
  }

  Value loadPartial(OpBuilder &at, const SharedResult &result) {
    return LoadOp::create(at, loc, elementOf(result), partials,
                          partialMap(result, builder.getAffineDimExpr(rows.size())), IntegerSetAttr());
  }

  Value loadRow(OpBuilder &at, const SharedResult &result) {
    return LoadOp::create(at, loc, elementOf(result), result.buffer(), rowMap(result.map()), IntegerSetAttr());
  }

  //===--------------------------------------------------------------------===//
  // The nests of an exchange
  //===--------------------------------------------------------------------===//

  /// The last dim is the shared one, with the first of the part's elements standing for the part.
  void leavePartials() {
    AffineExpr part = builder.getAffineDimExpr(rows.size()).floorDiv(partSize());
    createNest(first.getExtents()[shared], 1, offsetOf(shared), {}, [&](OpBuilder &at, ValueRange) {
      for (const SharedResult &result : results)
        StoreOp::create(at, loc, loadRow(at, result), partials, partialMap(result, part), /*streamed=*/false);
      return SmallVector<Value>();
    });
  }

  void combine(ArrayRef<SharedResult> sums) {
    createNest(parts(), parts(), Value(), sums, [&](OpBuilder &at, ValueRange accumulators) {
      SmallVector<Value> next;
      for (auto [result, accumulator] : llvm::zip(sums, accumulators))
        next.push_back(vector::makeArithReduction(at, loc, result.kind(), loadPartial(at, result), accumulator));
      return next;
    });
  }

  //===--------------------------------------------------------------------===//
  // Squares of differences from the mean
  //===--------------------------------------------------------------------===//

  /// Adds up squares of differences from the mean of the block's own part. The part has an equal share of the row, so
  /// its sum times the number of parts stands for the sum of the row.
  void sumOwnSquares() {
    const SharedSquares &squares = *exchange.squares;
    auto own = cast<ComputeOp>(builder.clone(*ComputeOp(squares.sum.nest)));
    SmallVector<StoreOp> stores(own.getBodyBlock().getOps<StoreOp>());
    for (StoreOp store : stores)
      store.erase();
    SmallVector<LoadOp> loads(own.getBodyBlock().getOps<LoadOp>());
    for (LoadOp load : loads) {
      if (load.getSlice() != squares.total)
        continue;
      OpBuilder after(load->getBlock(), std::next(load->getIterator()));
      auto scaled = ofWholeRow(after, load.getValue());
      load.getValue().replaceAllUsesExcept(scaled, scaled.getDefiningOp());
    }
  }

  Value ofWholeRow(OpBuilder &at, Value sum) {
    return arith::MulFOp::create(at, loc, sum, constant(at, sum.getType(), static_cast<double>(parts())));
  }

  Value constant(OpBuilder &at, Type type, double value) {
    return arith::ConstantOp::create(at, loc, at.getFloatAttr(type, value));
  }

  /// Computes b, as the sum of squares does, from this sum of x.
  Value bOf(OpBuilder &at, Value total) {
    const SharedSquares &squares = *exchange.squares;
    IRMapping mapping;
    for (Operation &op : ComputeOp(squares.sum.nest).getBodyBlock()) {
      if (!squares.computesB.contains(&op))
        continue;
      if (auto load = dyn_cast<LoadOp>(op))
        mapping.map(load.getValue(), total);
      else
        at.clone(op, mapping);
    }
    return mapping.lookup(squares.b);
  }

  void combineSquares(const SharedResult &squares) {
    const SharedResult &total = *llvm::find_if(
        results, [&](const SharedResult &result) { return result.buffer() == exchange.squares->total; });
    createNest(parts(), parts(), Value(), squares, [&](OpBuilder &at, ValueRange accumulators) {
      Value sum = loadPartial(at, total), own = loadPartial(at, squares);
      Value c = bOf(at, ofWholeRow(at, sum)), b = bOf(at, loadRow(at, total));
      Value n = constant(at, sum.getType(), static_cast<double>(partSize())), two = constant(at, sum.getType(), 2);
      Value t = arith::SubFOp::create(at, loc, c, b);
      Value rest = arith::SubFOp::create(at, loc, sum, arith::MulFOp::create(at, loc, n, c));
      Value inner = arith::AddFOp::create(at, loc, arith::MulFOp::create(at, loc, two, rest),
                                          arith::MulFOp::create(at, loc, n, t));
      Value moved = arith::AddFOp::create(at, loc, own, arith::MulFOp::create(at, loc, t, inner));
      // Rounding must not make a sum of squares negative; a NaN stays NaN.
      Value positive = arith::MaximumFOp::create(at, loc, moved, constant(at, sum.getType(), 0));
      return SmallVector<Value>{arith::AddFOp::create(at, loc, positive, accumulators[0])};
    });
  }

  /// Removes the sum from the nest that added up the squares. What else the nest stores, it stores behind the barrier.
  void dropSquares() {
    ComputeOp nest = exchange.squares->sum.nest;
    if (nest.getBodyBlock().getOps<StoreOp>().empty()) {
      nest.erase();
      return;
    }
    auto rest = ComputeOp::create(builder, nest.getLoc(), nest.getOffsets(), ValueRange(), nest.getExtents(),
                                  nest.getSizes(), nest.getOffsetDims(), ArrayRef<int64_t>(), nest.getVector(),
                                  builder.getArrayAttr({}), builder.getArrayAttr({}), builder.getArrayAttr({}),
                                  StringAttr(), GemmAttr(), RunningAttr());
    auto *body = new Block();
    rest.getBody().push_back(body);
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    IRMapping mapping;
    for (Operation &op : nest.getBodyBlock().without_terminator())
      if (!llvm::is_contained(op.getOperands(), nest.getBodyBlock().getArgument(0)))
        inside.clone(op, mapping);
    YieldOp::create(inside, nest.getLoc(), ValueRange());
    eraseUnused(*body);
    nest.erase();
  }

  const RowExchange &exchange;
  ComputeOp first;
  int64_t shared; ///< dim of the reductions that blocks share
  Location loc;
  OpBuilder builder;
  SmallVector<LaunchOp> launches;
  SmallVector<SharedResult> results;
  SmallVector<int64_t> rows; ///< dims of the reductions that are not reduced
  Value partials;            ///< binding of the partial results
};

struct ReduceAcrossBlocks : tilewright::impl::ReduceAcrossBlocksBase<ReduceAcrossBlocks> {
  LogicalResult rewrite(ParallelOp part) {
    auto refuse = [&](const std::string &why) { return part.emitError("blocks cannot share rows: ") << why; };
    bool shares = part.walk([](ComputeOp nest) {
                        return sharedDimsOf(nest).empty() ? WalkResult::advance() : WalkResult::interrupt();
                      })
                      .wasInterrupted();
    if (!shares)
      return success();
    SmallVector<RowExchange> exchanges;
    if (std::string why = findExchanges(part, exchanges); !why.empty())
      return refuse(why);
    auto program = part->getParentOfType<ProgramOp>();
    for (const RowExchange &exchange : exchanges) {
      ExchangeBuilder builder(exchange, launchesOf(program, getOperation()));
      if (std::string why = builder.whyNot(); !why.empty())
        return refuse(why);
      builder.build();
      ++numExchanges;
    }
    return success();
  }

  void runOnOperation() override {
    SmallVector<ParallelOp> parts;
    getOperation().walk([&](ParallelOp part) { parts.push_back(part); });
    for (ParallelOp part : parts)
      if (failed(rewrite(part)))
        return signalPassFailure();
  }
};
} // namespace

#include "passes/codegen/cpu/ContractionEmitter.h"

#include "passes/analysis/Contraction.h"
#include "passes/codegen/cpu/MatchContraction.h"
#include "passes/codegen/cpu/TileRegisters.h"
#include "passes/target/BlockedTerms.h"
#include "passes/target/MicroKernelBody.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// How the terms of a step lie in the lane operand, and along which dim.
struct TermLayout {
  LaneLayout lanes{1};
  int64_t dim = -1; ///< of the nest
};

/// An index that cuts a dim into blocks.
struct Cut {
  int64_t dim, size;
};

std::optional<Cut> cutOf(AffineExpr index) {
  auto cut = dyn_cast<AffineBinaryOpExpr>(index);
  if (!cut || index.getKind() != AffineExprKind::Mod)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(cut.getLHS());
  auto size = dyn_cast<AffineConstantExpr>(cut.getRHS());
  return dim && size ? std::optional(Cut{dim.getPosition(), size.getValue()}) : std::nullopt;
}

TermLayout termLayout(ComputeOp compute, Contraction contraction) {
  std::optional<PackedTerms> terms =
      packedTerms(contraction.lanes.getMap(), contraction.lanes.getSlice().getType().getShape(), contraction.lane,
                  compute.getExtents(), [&](int64_t dim) { return compute.isReduced(dim); });
  int64_t innermost = contraction.reduced.back();
  if (!terms)
    return {{1}, innermost};
  return {{terms->depth}, terms->dim < 0 ? innermost : terms->dim};
}

/// Whether steps of `depth` terms begin where the nest does: at the first one, or at a block of whole steps of a loop
/// over blocks.
bool takesWholeSteps(ComputeOp compute, int64_t dim, int64_t depth) {
  auto own = llvm::find(compute.getOffsetDims(), dim);
  if (depth == 1 || (own == compute.getOffsetDims().end() && compute.getExtents()[dim] == compute.getSizes()[dim]))
    return true;
  if (own == compute.getOffsetDims().end() || compute.getSizes()[dim] % depth != 0)
    return false;
  Value offset = compute.getOffsets()[own - compute.getOffsetDims().begin()];
  auto argument = dyn_cast<BlockArgument>(offset);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && argument == loop.getInductionVar() && getConstantIntValue(loop.getLowerBound()) == 0 &&
         getConstantIntValue(loop.getStep()) == compute.getSizes()[dim];
}

/// The micro kernel that the nest names, or the quickest that is not of tile registers, that can compute it.
std::optional<MicroKernel> kernelFor(ComputeOp compute, const Contraction &contraction, const TermLayout &layout,
                                     const Target &target, bool allowTiles) {
  LaneLayout named = layout.lanes;
  named.tiles = allowTiles;
  auto found = findMicroKernel(target, contraction.types, named, *compute.getMicroKernel());
  if (found && takesWholeSteps(compute, layout.dim, found->stepTerms()))
    return found;
  auto quickest = chooseMicroKernel(target, contraction.types, layout.lanes, /*strict=*/false);
  if (compute.getExtents()[layout.dim] == compute.getSizes()[layout.dim] ||
      (quickest && takesWholeSteps(compute, layout.dim, quickest->depth)))
    return quickest;
  for (StringRef generic : {"fma", "mul_add"})
    if (auto found = findMicroKernel(target, contraction.types, layout.lanes, generic); found && found->depth == 1)
      return found;
  return std::nullopt;
}

constexpr int64_t kBlocksToPack = 4;            ///< of rows that make it worth to put the terms of a step side by side
constexpr int64_t kBlocksToCopy = 16;           ///< ... to copy a panel whose steps lie apart, measured on Zen 5
constexpr int64_t kPanelBytes = 8 * 1024;       ///< on the stack, and in L1 beside the rows
constexpr int64_t kTilePanelBytes = 32 * 1024;  ///< more steps before tiles of sums go back to memory
constexpr int64_t kPrefetchedBytes = 16 * 1024; ///< of a panel, from which on the first row block would wait for memory
constexpr int64_t kLineBytes = 64;

/// Steps of the reduced dim that all rows are multiplied with before the next ones.
struct Panel {
  Value first;         ///< index of its first step
  int64_t steps, rest; ///< whole ones, and the terms of one more
  Value step = {};     ///< from the first, while a register block reads it
};

class ContractionEmitter {
public:
  ContractionEmitter(OpBuilder &builder, ComputeOp compute, const Contraction &contraction, const IRMapping &values,
                     const MicroKernel &kernel, const TermLayout &layout, const Target &target)
      : builder(builder), compute(compute), contraction(contraction), outer(values), loc(compute.getLoc()),
        kernel(kernel), tiles(builder, loc, this->kernel), layout(layout), depth(kernel.depth),
        element(compute.getBodyBlock().getArgument(0).getType()),
        lanes(target.vectorBytes * 8 / element.getIntOrFloatBitWidth()), block(kernel.blockFor(target)),
        terms(blockedTerms(compute.getMicroKernel().value_or(""))), indices(compute.getExtents().size()),
        offsets(indices) {
    // The terms of a step are the innermost loop.
    llvm::erase(this->contraction.reduced, layout.dim);
    this->contraction.reduced.push_back(layout.dim);
    // An index along the lanes counts panels where tiles are whole ones, so that packed layouts simplify.
    panel = std::max(width(), packedWidth());
    int64_t size = compute.getSizes()[contraction.lane];
    aligned = size % panel == 0 || size == compute.getExtents()[contraction.lane];
  }

  bool canEmit() {
    return liesAlongLanes(contraction.lanes.getSlice().getType(), contraction.lanes.getMap(),
                          isPackedInDepth() ? depth : 1) &&
           holdsWholeVectors() && liesAlongLanes(accumulatorType(), accumulatorMap(), 1) &&
           (!usesTiles() || canLoadTiles());
  }

  void emit() {
    emitBlocks();
    if (usesTiles())
      tiles.release();
  }

private:
  void emitBlocks() {
    Value zero = constantIndex(0);
    for (Value &offset : offsets)
      offset = zero;
    for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      offsets[dim] = outer.lookup(offset);
    length = compute.getSizes()[layout.dim];
    if (depth == 1 && !blocksTerms())
      return emitBatch(contraction.batch);
    firstStep = depth == 1
                    ? offsets[layout.dim]
                    : arith::DivUIOp::create(builder, loc, offsets[layout.dim], constantIndex(depth)).getResult();
    int64_t last = compute.getExtents()[layout.dim] % length;
    if (last == 0)
      return emitBatch(contraction.batch);
    // The last block of a loop over blocks has terms of its own number.
    Value end = add(offsets[layout.dim], constantIndex(length));
    Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, end,
                                          constantIndex(compute.getExtents()[layout.dim]));
    auto branch = scf::IfOp::create(builder, loc, isWhole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
    emitBatch(contraction.batch);
    builder.setInsertionPoint(branch.elseBlock()->getTerminator());
    length = last;
    emitBatch(contraction.batch);
  }

  bool usesTiles() const { return kernel.unit == StepUnit::tiles; }
  int64_t width() const { return lanes * block.vectors; }

  /// The block of lanes that the operand was packed in, for the widest variant; 1: it was not packed.
  int64_t packedWidth() {
    for (AffineExpr index : contraction.lanes.getMap().getResults())
      if (std::optional<Cut> cut = cutOf(index); cut && cut->dim == contraction.lane)
        return cut->size % width() == 0 ? cut->size : 1;
    return 1;
  }
  bool isPackedInDepth() const { return layout.lanes.packedDepth > 1; }
  SliceType accumulatorType() { return cast<SliceType>(compute.getAccs()[0].getType()); }
  AffineMap accumulatorMap() { return cast<AffineMapAttr>(compute.getAccMaps()[0]).getValue(); }

  // --- loops -------------------------------------------------------------------------------------------------------

  void emitBatch(ArrayRef<int64_t> dims) {
    if (dims.empty())
      return emitLaneBlocks();
    forBlocks(dims.front(), 1, [&](Value start, int64_t) {
      indices[dims.front()] = start;
      emitBatch(dims.drop_front());
    });
  }

  /// Lane blocks outside, row blocks inside: the lane operand's panel stays in the cache.
  void emitLaneBlocks() {
    forBlocks(contraction.lane, panel, [&](Value start, int64_t count) {
      indices[contraction.lane] =
          aligned ? arith::DivUIOp::create(builder, loc, start, constantIndex(panel)).getResult() : start;
      for (firstLane = 0; firstLane < count; firstLane += width())
        if (blocksTerms() || packsPanels())
          emitPanels(std::min(width(), count - firstLane));
        else
          emitRowBlocks(std::min(width(), count - firstLane));
    });
  }

  /// Rows of a register block: where lanes do not fill it, more of them keep as many sums.
  int64_t rowsTogether(int64_t count) {
    int64_t vectors = llvm::divideCeil(count, lanes);
    return usesTiles() ? block.rows : block.rows * (block.vectors / vectors);
  }

  void emitRowBlocks(int64_t count) {
    if (contraction.row < 0) {
      configureTiles(1);
      return emitKernel(1, count);
    }
    int64_t together = rowsTogether(count);
    if (compute.getSizes()[contraction.row] >= together)
      configureTiles(together);
    forBlocks(contraction.row, together, [&](Value row, int64_t rows) {
      indices[contraction.row] = row;
      if (rows != together)
        configureTiles(rows);
      beginPrefetching(row, together);
      emitKernel(rows, count);
      prefetch.reset();
    });
  }

  // --- panels ------------------------------------------------------------------------------------------------------

  /// Sums can be kept in their slice from one panel to the next.
  bool mayStopBetween() { return contraction.row >= 0 && contraction.reduced.size() == 1 && keepsSums(); }

  /// Whether the nest names how many terms a panel has: it stays in L1 while all rows of the tile pass.
  /// Tiles of sums stay in registers instead.
  bool blocksTerms() { return !usesTiles() && terms > 0 && terms < compute.getSizes()[layout.dim] && mayStopBetween(); }

  /// What does not lie as register blocks read it is put so once for all rows of a tile, where there are enough of
  /// them: terms side by side, or the steps of a block one after another, which otherwise may be a page apart.
  bool packsPanels() {
    if (contraction.row < 0 || contraction.reduced.size() != 1 || isPackedInDepth())
      return false;
    if (usesTiles())
      return keepsSums() || hasOnePanel(compute.getSizes()[layout.dim]);
    if (!keepsSums())
      return false;
    int64_t rows = compute.getSizes()[contraction.row];
    if (depth > 1)
      return rows >= kBlocksToPack * block.rows;
    SliceType type = contraction.lanes.getSlice().getType();
    return blocksTerms() && rows >= kBlocksToCopy * block.rows &&
           terms * width() * element.getIntOrFloatBitWidth() / 8 <= kCopiedBlockBytes &&
           distance(type, contraction.lanes.getMap(), 0, {0, 0}, {0, 1}) != panel;
  }
  /// Whether the slice has the sums as they are accumulated.
  bool keepsSums() { return accumulatorType().getElementType() == element; }

  Type storedLanes() { return cast<MemRefType>(outer.lookup(contraction.lanes.getSlice()).getType()).getElementType(); }
  /// Steps of a panel come in groups of so many.
  int64_t stepsTogether() const { return kernel.stepTerms() / depth; }
  /// Of a panel: single terms are widened once, when they are copied.
  Type panelElement() { return depth == 1 ? element : storedLanes(); }
  /// Steps that a panel has at most, where the nest has so many terms.
  int64_t panelSteps(int64_t all) {
    int64_t bytes = width() * depth * panelElement().getIntOrFloatBitWidth() / 8;
    int64_t most =
        blocksTerms() ? llvm::divideCeil(terms, depth) : (usesTiles() ? kTilePanelBytes : kPanelBytes) / bytes;
    return llvm::alignTo(std::clamp<int64_t>(most, 1, std::max<int64_t>(all / depth, 1)), stepsTogether());
  }
  bool hasOnePanel(int64_t terms) { return terms / depth < panelSteps(terms) || terms == panelSteps(terms) * depth; }

  /// All rows by `count` lanes, panel by panel along the reduced dim.
  void emitPanels(int64_t count) {
    int64_t size = length, whole = size / depth;
    int64_t most = panelSteps(size);
    if (!packed && packsPanels())
      packed = allocatePanel({most + stepsTogether(), width() * depth}, panelElement());
    sumsInSlice = !usesTiles() || !hasOnePanel(size);
    if (auto init = dyn_cast<TypedAttr>(compute.getInits()[0]);
        init && !isa<UnitAttr>(compute.getInits()[0]) && sumsInSlice)
      fillSums(broadcast(constant(init)), count);
    int64_t inLoop = whole / most * most;
    if (inLoop > 0)
      loop(constantIndex(0), constantIndex(inLoop), most,
           [&](Value first) { emitPanel({add(firstStep, first), most, /*rest=*/0}, count); });
    if (inLoop < whole || size % depth > 0)
      emitPanel({add(firstStep, constantIndex(inLoop)), whole - inLoop, size % depth}, count);
  }

  void emitPanel(Panel panel, int64_t count) {
    auto pack = [&](Value step, int64_t terms) {
      indices[layout.dim] = add(panel.first, step);
      for (int64_t vector = 0; vector * lanes < count; ++vector)
        vector::StoreOp::create(builder, loc, loadLanes(vector, count, terms), packed, inPanel(step, vector));
    };
    if (packed && panel.steps > 0)
      loop(constantIndex(0), constantIndex(panel.steps), 1, [&](Value step) { pack(step, depth); });
    if (packed && panel.rest > 0)
      pack(constantIndex(panel.steps), panel.rest);
    int64_t used = panel.steps + (panel.rest > 0 ? 1 : 0), filled = llvm::alignTo(used, stepsTogether());
    if (used < filled)
      loop(constantIndex(used), constantIndex(filled), 1, [&](Value step) {
        Value none = zeros(VectorType::get({lanes * depth}, storedLanes()));
        for (int64_t vector = 0; vector * lanes < count; ++vector)
          vector::StoreOp::create(builder, loc, none, packed, inPanel(step, vector));
      });
    current = panel;
    emitRowBlocks(count);
    current.reset();
  }

  void fillSums(Value value, int64_t count) {
    forBlocks(contraction.row, block.rows, [&](Value start, int64_t rows) {
      indices[contraction.row] = start;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t vector = 0; vector * lanes < count; ++vector)
          store(value, row, vector, count);
    });
  }

  /// On the stack, once for a kernel's call.
  Value allocatePanel(ArrayRef<int64_t> shape, Type stored) {
    OpBuilder::InsertionGuard guard(builder);
    auto function = builder.getInsertionBlock()->getParentOp();
    while (!isa<FunctionOpInterface>(function))
      function = function->getParentOp();
    builder.setInsertionPointToStart(&function->getRegion(0).front());
    return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, stored), builder.getI64IntegerAttr(64));
  }

  SmallVector<Value> inPanel(Value step, int64_t vector) { return {step, constantIndex(vector * lanes * depth)}; }

  /// The steps of a panel that has been packed.
  SmallVector<Value> reducePanel(SmallVector<Value> sums, int64_t rows, int64_t count) {
    auto at = [&](Value step, ValueRange carried, int64_t terms) {
      current->step = step;
      indices[layout.dim] = add(current->first, step);
      if (prefetch)
        prefetchAt(step);
      return multiplyAdd(carried, rows, count, terms);
    };
    if (current->steps > 0)
      sums = carry(constantIndex(0), constantIndex(current->steps), sums,
                   [&](Value step, ValueRange carried) { return at(step, carried, depth); });
    if (current->rest > 0)
      sums = at(constantIndex(current->steps), sums, current->rest);
    return sums;
  }

  /// Calls `body` for whole blocks of `step` in a loop, and for the rest. The last tile of a grid is shorter: then the
  /// rest is one of two lengths, and which is known at run time.
  void forBlocks(int64_t dim, int64_t step, llvm::function_ref<void(Value start, int64_t count)> body) {
    int64_t size = compute.getSizes()[dim], last = compute.getExtents()[dim] % size;
    Value low = offsets[dim];
    if (last == 0) {
      int64_t whole = size / step * step;
      if (whole == step)
        body(low, step);
      else if (whole > 0)
        loop(low, add(low, constantIndex(whole)), step, [&](Value start) { body(start, step); });
      if (whole < size)
        body(add(low, constantIndex(whole)), size - whole);
      return;
    }
    Value end =
        arith::MinUIOp::create(builder, loc, add(low, constantIndex(size)), constantIndex(compute.getExtents()[dim]));
    Value length = arith::SubIOp::create(builder, loc, end, low);
    Value rest = arith::RemUIOp::create(builder, loc, length, constantIndex(step));
    Value restStart = arith::SubIOp::create(builder, loc, end, rest);
    loop(low, restStart, step, [&](Value start) { body(start, step); });
    llvm::SmallSetVector<int64_t, 2> lengths;
    lengths.insert(size % step);
    lengths.insert(last % step);
    for (int64_t count : lengths) {
      if (count == 0)
        continue;
      Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest, constantIndex(count));
      auto branch = scf::IfOp::create(builder, loc, isIt, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(branch.thenBlock()->getTerminator());
      body(restStart, count);
    }
  }

  void loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(builder, loc, low, high, constantIndex(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar());
  }

  // --- prefetching -------------------------------------------------------------------------------------------------

  /// The panel behind the one that row blocks read comes into the L2 while the last of them compute. The first row
  /// block of it would wait for each line otherwise: it reads them faster than memory gives them.
  struct Prefetch {
    SmallVector<Value> panel; ///< where it begins
    Value slot;               ///< how many steps of row blocks have prefetched before this one
    int64_t lines, slots;     ///< so many lines in so many slots
  };

  /// Whether panels of so many steps lie one behind the other, each step by step.
  bool panelsLieInLine(int64_t steps) {
    SliceType type = contraction.lanes.getSlice().getType();
    int64_t stepElements = width() * depth;
    return type.getSpace() == Space::global && !packed && contraction.reduced.size() == 1 &&
           llvm::product_of(type.getShape()) > steps * stepElements &&
           distance(type, contraction.lanes.getMap(), 0, {0, 0}, {0, depth}) == stepElements;
  }

  void beginPrefetching(Value row, int64_t together) {
    int64_t steps = current ? current->steps : length / depth, bytes = width() * depth * elementBytes(storedLanes());
    int64_t rowBlocks = llvm::divideCeil(compute.getSizes()[contraction.row], together);
    if (usesTiles() || rowBlocks < 2 || steps * bytes < kPrefetchedBytes || !panelsLieInLine(steps))
      return;
    int64_t lines = llvm::divideCeil(bytes, kLineBytes), slots = rowBlocks >= 2 * lines ? 2 : 1;
    int64_t perSlot = llvm::divideCeil(lines, rowBlocks), blocks = llvm::divideCeil(lines * slots, perSlot);
    Value number = arith::DivUIOp::create(
        builder, loc, arith::SubIOp::create(builder, loc, row, offsets[contraction.row]), constantIndex(together));
    Value before = arith::SubIOp::create(builder, loc, number, constantIndex(std::max<int64_t>(rowBlocks - blocks, 0)));
    before = arith::MaxSIOp::create(builder, loc, before, constantIndex(0));
    indices[layout.dim] = current ? current->first : depth == 1 && !blocksTerms() ? offsets[layout.dim] : firstStep;
    prefetch = Prefetch{at(contraction.lanes.getMap(), 0, 0),
                        arith::MulIOp::create(builder, loc, before, constantIndex(steps)), perSlot, slots};
    prefetch->panel.back() = add(prefetch->panel.back(), constantIndex(steps * width() * depth));
  }

  void prefetchAt(Value step) {
    Value slot = arith::DivUIOp::create(builder, loc, add(prefetch->slot, step), constantIndex(prefetch->slots));
    int64_t perLine = kLineBytes / elementBytes(storedLanes());
    Value element = arith::MulIOp::create(builder, loc, slot, constantIndex(prefetch->lines * perLine));
    for (int64_t line = 0; line < prefetch->lines; ++line) {
      SmallVector<Value> at(prefetch->panel);
      at.back() = add(at.back(), add(element, constantIndex(line * perLine)));
      memref::PrefetchOp::create(builder, loc, outer.lookup(contraction.lanes.getSlice()), at, /*isWrite=*/false,
                                 /*localityHint=*/2, /*isDataCache=*/true);
    }
  }

  // --- the micro kernel --------------------------------------------------------------------------------------------

  /// One register block: `rows` rows by `count` elements along the lanes.
  void emitKernel(int64_t rows, int64_t count) {
    if (usesTiles())
      return emitTileKernel(rows, count);
    int64_t vectors = llvm::divideCeil(count, lanes);
    SmallVector<Value> sums = start(rows, count);
    if (kernel.hasOffset)
      sums.append(vectors, zeros(VectorType::get({lanes}, element)));
    sums = current ? reducePanel(sums, rows, count) : reduce(contraction.reduced, sums, rows, count);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector) {
        Value sum = sums[row * vectors + vector];
        if (kernel.hasOffset)
          sum = arith::SubIOp::create(builder, loc, sum, sums[rows * vectors + vector]);
        store(sum, row, vector, count);
      }
  }

  /// What the sums begin with: the init, or what is in the slice.
  SmallVector<Value> start(int64_t rows, int64_t count) {
    int64_t vectors = llvm::divideCeil(count, lanes);
    if (auto init = dyn_cast<TypedAttr>(compute.getInits()[0]);
        init && !isa<UnitAttr>(compute.getInits()[0]) && !current)
      return SmallVector<Value>(rows * vectors, broadcast(constant(init)));
    SmallVector<Value> sums;
    Value memory = outer.lookup(compute.getAccs()[0]);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector)
        sums.push_back(widen(load(memory, at(accumulatorMap(), row, vector * lanes), vector, count), element));
    return sums;
  }

  SmallVector<Value> reduce(ArrayRef<int64_t> dims, ValueRange sums, int64_t rows, int64_t count) {
    if (dims.empty())
      return multiplyAdd(sums, rows, count, 1);
    int64_t dim = dims.front(), size = compute.getSizes()[dim];
    if (depth > 1 && dim == layout.dim)
      return reduceSteps(dim, sums, rows, count);
    Value high = add(offsets[dim], constantIndex(size));
    if (compute.getExtents()[dim] % size != 0)
      high = arith::MinUIOp::create(builder, loc, high, constantIndex(compute.getExtents()[dim]));
    return carry(offsets[dim], high, sums, [&](Value index, ValueRange now) {
      indices[dim] = index;
      if (prefetch)
        prefetchAt(arith::SubIOp::create(builder, loc, index, offsets[dim]));
      return reduce(dims.drop_front(), now, rows, count);
    });
  }

  /// The innermost loop, whose index counts steps of several terms, and the terms that are left.
  SmallVector<Value> reduceSteps(int64_t dim, ValueRange sums, int64_t rows, int64_t count) {
    int64_t whole = length / depth, rest = length % depth;
    SmallVector<Value> now(sums);
    if (whole > 0)
      now = carry(constantIndex(0), constantIndex(whole), now, [&](Value index, ValueRange carried) {
        indices[dim] = add(firstStep, index);
        if (prefetch)
          prefetchAt(index);
        return multiplyAdd(carried, rows, count, depth);
      });
    if (rest == 0)
      return now;
    indices[dim] = add(firstStep, constantIndex(whole));
    return multiplyAdd(now, rows, count, rest);
  }

  SmallVector<Value> carry(Value low, Value high, ValueRange values,
                           llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(builder, loc, low, high, constantIndex(1), values);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(builder, loc, body(loop.getInductionVar(), loop.getRegionIterArgs()));
    return SmallVector<Value>(loop.getResults());
  }

  /// One step for each sum, with `terms` of the step's terms; the others are zero.
  SmallVector<Value> multiplyAdd(ValueRange carried, int64_t rows, int64_t count, int64_t terms) {
    int64_t vectors = llvm::divideCeil(count, lanes);
    SmallVector<Value> along, next;
    for (int64_t vector = 0; vector < vectors; ++vector)
      along.push_back(loadLanes(vector, count, terms));
    ImplicitLocOpBuilder steps(loc, builder);
    for (int64_t row = 0; row < rows; ++row) {
      Value factor = loadRow(row, terms);
      for (int64_t vector = 0; vector < vectors; ++vector)
        next.push_back(emitStep(kernel, steps, carried[row * vectors + vector], factor, along[vector]));
    }
    for (int64_t vector = 0; kernel.hasOffset && vector < vectors; ++vector)
      next.push_back(emitStep(kernel, steps, carried[rows * vectors + vector],
                              zeros(cast<VectorType>(along[vector].getType())), along[vector]));
    return next;
  }

  /// The terms of a row, the same in every lane.
  Value loadRow(int64_t row, int64_t terms) {
    Value memory = outer.lookup(contraction.rows.getSlice());
    AffineMap map = contraction.rows.getMap();
    if (depth == 1)
      return broadcast(widen(memref::LoadOp::create(builder, loc, memory, at(map, row, 0)), contraction.rowWidening));
    Type stored = cast<MemRefType>(memory.getType()).getElementType();
    auto type = VectorType::get({depth}, stored);
    Value together;
    if (terms == depth && lieSideBySide(contraction.rows, row)) {
      together = vector::LoadOp::create(builder, loc, type, memory, at(map, row, 0));
    } else {
      together = zeros(type);
      for (int64_t term = 0; term < terms; ++term) {
        Value value = memref::LoadOp::create(builder, loc, memory, at(map, row, 0, term));
        together = vector::InsertOp::create(builder, loc, value, together, term);
      }
    }
    auto bits = builder.getIntegerType(depth * stored.getIntOrFloatBitWidth());
    Value scalar = vector::BitCastOp::create(builder, loc, VectorType::get({1}, bits), together);
    scalar = vector::ExtractOp::create(builder, loc, scalar, 0);
    return vector::BitCastOp::create(builder, loc, VectorType::get({lanes * depth}, stored), broadcast(scalar));
  }

  Value loadLanes(int64_t vector, int64_t count, int64_t terms) {
    Value memory = outer.lookup(contraction.lanes.getSlice());
    AffineMap map = contraction.lanes.getMap();
    Type stored = cast<MemRefType>(memory.getType()).getElementType();
    if (current && packed)
      return vector::LoadOp::create(
          builder, loc, VectorType::get({lanes * depth}, cast<MemRefType>(packed.getType()).getElementType()), packed,
          inPanel(current->step, vector));
    if (isPackedInDepth()) // whole panels, filled up with zeros
      return vector::LoadOp::create(builder, loc, VectorType::get({lanes * depth}, stored), memory,
                                    at(map, 0, vector * lanes));
    if (depth == 1)
      return widen(load(memory, at(map, 0, vector * lanes), vector, count), contraction.laneWidening);
    SmallVector<Value> rows;
    for (int64_t term = 0; term < depth; ++term)
      rows.push_back(term < terms ? load(memory, at(map, 0, vector * lanes, term), vector, count)
                                  : zeros(VectorType::get({lanes}, stored)));
    return sideBySide(rows);
  }

  /// Element by element of several vectors: halves of them first, a power of two.
  Value sideBySide(ArrayRef<Value> rows) {
    if (rows.size() == 1)
      return rows[0];
    SmallVector<Value> even, odd;
    for (auto [i, row] : llvm::enumerate(rows))
      (i % 2 == 0 ? even : odd).push_back(row);
    return vector::InterleaveOp::create(builder, loc, sideBySide(even), sideBySide(odd));
  }

  Value load(Value memory, ArrayRef<Value> index, int64_t vector, int64_t count) {
    auto type = VectorType::get({lanes}, cast<MemRefType>(memory.getType()).getElementType());
    if (Value mask = maskOf(vector, count))
      return vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zeros(type));
    return vector::LoadOp::create(builder, loc, type, memory, index);
  }

  void store(Value value, int64_t row, int64_t vector, int64_t count) {
    Value memory = outer.lookup(compute.getAccs()[0]);
    Type stored = accumulatorType().getElementType();
    if (stored != element)
      value = arith::TruncFOp::create(builder, loc, VectorType::get({lanes}, stored), value);
    SmallVector<Value> index = at(accumulatorMap(), row, vector * lanes);
    if (Value mask = maskOf(vector, count))
      vector::MaskedStoreOp::create(builder, loc, memory, index, mask, value);
    else
      vector::StoreOp::create(builder, loc, value, memory, index);
  }

  /// Null where all lanes of the vector are in use.
  Value maskOf(int64_t vector, int64_t count) {
    int64_t left = count - vector * lanes;
    if (left >= lanes)
      return {};
    return vector::ConstantMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()),
                                          ArrayRef<int64_t>{left});
  }

  // --- tile registers ----------------------------------------------------------------------------------------------

  void configureTiles(int64_t rows) {
    if (!usesTiles())
      return;
    if (!configuration)
      configuration = allocatePanel({kTileRowBytes}, builder.getI8Type());
    tiles.configure(configuration, rows);
  }

  /// Whether rows of tiles are rows of memory that lie evenly, and whole steps of what is packed are there.
  bool canLoadTiles() {
    SliceType rowType = contraction.rows.getSlice().getType();
    AffineMap rows = contraction.rows.getMap(), along = contraction.lanes.getMap();
    for (int64_t term = 1; term < kernel.stepTerms(); ++term)
      if (distance(rowType, rows, 0, {0, 0}, {0, term}) != term)
        return false;
    if (contraction.row >= 0 && !rowsApart(rowType, rows))
      return false;
    if (!isPackedInDepth())
      return packsPanels();
    SliceType laneType = contraction.lanes.getSlice().getType();
    for (int64_t lane = 1; lane < width(); ++lane)
      if (distance(laneType, along, 0, {0, lane}, {0, 0}) != lane * depth)
        return false;
    return groupsApart() && holdsWholeSteps();
  }

  /// Elements from a row of a tile to the next; nothing if they are not evenly apart.
  std::optional<int64_t> rowsApart(SliceType type, AffineMap map) {
    std::optional<int64_t> apart = distance(type, map, {0, 0, 0}, {1, 0, 0});
    for (int64_t row = 2; apart && row < block.rows; ++row)
      if (distance(type, map, {0, 0, 0}, {row, 0, 0}) != row * *apart)
        return std::nullopt;
    return apart;
  }

  /// Elements from a group of terms that lie side by side to the next.
  std::optional<int64_t> groupsApart() {
    SliceType type = contraction.lanes.getSlice().getType();
    AffineMap map = contraction.lanes.getMap();
    std::optional<int64_t> apart = distance(type, map, 0, {0, 0}, {0, depth});
    for (int64_t group = 2; apart && group < kTileRows; ++group)
      if (distance(type, map, 0, {0, 0}, {0, group * depth}) != group * *apart)
        return std::nullopt;
    return apart;
  }

  /// Whether what is packed is filled up to whole steps, along the one dim of it that counts groups.
  bool holdsWholeSteps() {
    AffineMap map = contraction.lanes.getMap();
    ArrayRef<int64_t> shape = contraction.lanes.getSlice().getType().getShape();
    int64_t counting = 0;
    bool whole = true;
    for (auto [index, size] : llvm::drop_end(llvm::zip_equal(map.getResults(), shape)))
      if (index.isFunctionOfDim(layout.dim)) {
        ++counting;
        whole &= size % kTileRows == 0;
      }
    return counting == 1 && whole;
  }

  /// Whether tiles of sums can be moved from and to their slice. Otherwise vectors of them are, by way of the stack.
  bool sumsLieAsTiles(int64_t count) {
    if (!keepsSums() || count != width())
      return false;
    for (int64_t lane = 1; lane < width(); ++lane)
      if (distance(accumulatorType(), accumulatorMap(), 0, {0, lane}, {0, 0}) != lane)
        return false;
    return contraction.row < 0 || rowsApart(accumulatorType(), accumulatorMap());
  }

  void emitTileKernel(int64_t rows, int64_t count) {
    startTiles(rows, count);
    sumTiles(contraction.reduced, rows, count);
    if (sumsLieAsTiles(count))
      return tiles.storeSums(sumsInMemory(), rows, count);
    tiles.storeSums(sumsOnStack(), rows, count);
    forSums(rows, count, [&](Value place, int64_t vector) {
      auto type = VectorType::get({lanes}, element);
      Value sums =
          vector::LoadOp::create(builder, loc, type, stackSums, ValueRange{place, constantIndex(vector * lanes)});
      store(sums, 0, vector, count);
    });
  }

  /// Begins with the init, or with what is in the slice.
  void startTiles(int64_t rows, int64_t count) {
    auto init = dyn_cast<TypedAttr>(compute.getInits()[0]);
    bool goesOn = isa<UnitAttr>(compute.getInits()[0]) || (current && sumsInSlice);
    if (!goesOn && init == builder.getZeroAttr(element))
      return tiles.clearSums(rows, count);
    if (goesOn && sumsLieAsTiles(count))
      return tiles.loadSums(sumsInMemory(), rows, count);
    TilePlace place = sumsOnStack();
    forSums(rows, count, [&](Value at, int64_t vector) {
      Value sums = goesOn ? loadSums(vector, count) : broadcast(constant(init));
      vector::StoreOp::create(builder, loc, sums, stackSums, ValueRange{at, constantIndex(vector * lanes)});
    });
    tiles.loadSums(place, rows, count);
  }

  Value loadSums(int64_t vector, int64_t count) {
    SmallVector<Value> index = at(accumulatorMap(), 0, vector * lanes);
    return widen(load(outer.lookup(compute.getAccs()[0]), index, vector, count), element);
  }

  void sumTiles(ArrayRef<int64_t> dims, int64_t rows, int64_t count) {
    int64_t dim = dims.front();
    if (dim == layout.dim)
      return sumSteps(rows, count);
    Value high = add(offsets[dim], constantIndex(compute.getSizes()[dim]));
    if (compute.getExtents()[dim] % compute.getSizes()[dim] != 0)
      high = arith::MinUIOp::create(builder, loc, high, constantIndex(compute.getExtents()[dim]));
    loop(offsets[dim], high, 1, [&](Value index) {
      indices[dim] = index;
      sumTiles(dims.drop_front(), rows, count);
    });
  }

  /// Rows of the last step are copied first, with zeros behind their last terms: there may be infinities, or no memory.
  void sumSteps(int64_t rows, int64_t count) {
    int64_t terms = current ? current->steps * depth + current->rest : length;
    int64_t whole = terms / kernel.stepTerms(), rest = terms % kernel.stepTerms();
    auto begin = [&](Value step) { indices[layout.dim] = add(current ? current->first : firstStep, step); };
    if (whole > 0)
      loop(constantIndex(0), constantIndex(whole * stepsTogether()), stepsTogether(), [&](Value step) {
        begin(step);
        tiles.multiplyAdd(rowsInMemory(), groupsOfLanes(step), rows, count);
      });
    if (rest == 0)
      return;
    Value step = constantIndex(whole * stepsTogether());
    begin(step);
    tiles.multiplyAdd(copyRows(rows, rest), groupsOfLanes(step), rows, count);
  }

  TilePlace copyRows(int64_t rows, int64_t terms) {
    Value memory = outer.lookup(contraction.rows.getSlice());
    auto type = VectorType::get({kernel.stepTerms()}, cast<MemRefType>(memory.getType()).getElementType());
    if (!stackRows)
      stackRows = allocatePanel({block.rows, kernel.stepTerms()}, type.getElementType());
    Value mask = vector::ConstantMaskOp::create(builder, loc, VectorType::get(type.getShape(), builder.getI1Type()),
                                                ArrayRef<int64_t>{terms});
    forRows(rows, [&](Value row) {
      SmallVector<Value> index = at(contraction.rows.getMap(), 0, 0);
      Value copied = vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zeros(type));
      vector::StoreOp::create(builder, loc, copied, stackRows, ValueRange{row, constantIndex(0)});
    });
    return {stackRows, {constantIndex(0), constantIndex(0)}, kTileRowBytes};
  }

  TilePlace rowsInMemory() {
    AffineMap map = contraction.rows.getMap();
    SliceType type = contraction.rows.getSlice().getType();
    return {outer.lookup(contraction.rows.getSlice()), at(map, 0, 0), bytesApart(type, map)};
  }

  TilePlace groupsOfLanes(Value step) {
    if (current)
      return {packed, inPanel(step, 0), width() * depth * elementBytes(storedLanes())};
    return {outer.lookup(contraction.lanes.getSlice()), at(contraction.lanes.getMap(), 0, 0),
            *groupsApart() * elementBytes(storedLanes())};
  }

  TilePlace sumsInMemory() {
    return {outer.lookup(compute.getAccs()[0]), at(accumulatorMap(), 0, 0),
            bytesApart(accumulatorType(), accumulatorMap())};
  }

  TilePlace sumsOnStack() {
    if (!stackSums)
      stackSums = allocatePanel({block.rows, width()}, element);
    return {stackSums, {constantIndex(0), constantIndex(0)}, width() * elementBytes(element)};
  }

  int64_t bytesApart(SliceType type, AffineMap map) {
    return contraction.row < 0 ? kTileRowBytes : *rowsApart(type, map) * elementBytes(type.getElementType());
  }

  /// Calls `body` with each row of the block, from 0, while the index of rows is there.
  void forRows(int64_t rows, llvm::function_ref<void(Value row)> body) {
    Value first = contraction.row < 0 ? Value() : indices[contraction.row];
    loop(constantIndex(0), constantIndex(rows), 1, [&](Value row) {
      if (first)
        indices[contraction.row] = add(first, row);
      body(row);
    });
    if (first)
      indices[contraction.row] = first;
  }

  /// Each vector of sums: of which row, and which of the row.
  void forSums(int64_t rows, int64_t count, llvm::function_ref<void(Value row, int64_t vector)> body) {
    forRows(rows, [&](Value row) {
      for (int64_t vector = 0; vector * lanes < count; ++vector)
        body(row, vector);
    });
  }

  static Type shaped(Type scalar, Value like) {
    auto vector = dyn_cast<VectorType>(like.getType());
    return vector ? Type(vector.clone(scalar)) : scalar;
  }

  Value widen(Value value, Type type) {
    if (getElementTypeOrSelf(value.getType()) == type)
      return value;
    return arith::ExtFOp::create(builder, loc, shaped(type, value), value);
  }

  /// As the graph widens it.
  Value widen(Value value, Operation *widening) {
    if (isa_and_nonnull<arith::ExtSIOp>(widening))
      return arith::ExtSIOp::create(builder, loc, shaped(element, value), value);
    if (isa_and_nonnull<arith::ExtUIOp>(widening))
      return arith::ExtUIOp::create(builder, loc, shaped(element, value), value);
    return widen(value, element);
  }

  // --- indices -----------------------------------------------------------------------------------------------------

  /// An index expression of the register block's element `row`, `lane`, and of a term of the step.
  AffineExpr inBlock(AffineExpr expr, int64_t row, AffineExpr lane, int64_t term = 0) {
    SmallVector<AffineExpr> dims;
    for (int64_t dim = 0; dim < static_cast<int64_t>(indices.size()); ++dim) {
      AffineExpr place = builder.getAffineDimExpr(dim);
      if (dim == contraction.row)
        place = place + row;
      if (dim == contraction.lane)
        place = (aligned ? place * panel : place) + (lane + firstLane);
      if (dim == layout.dim)
        place = place * depth + term;
      dims.push_back(place);
    }
    return simplifyAffineExpr(expr.replaceDims(dims), indices.size(), indices.size());
  }

  SmallVector<Value> at(AffineMap map, int64_t row, int64_t lane, int64_t term = 0) {
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return affine::expandAffineExpr(builder, loc, inBlock(expr, row, builder.getAffineConstantExpr(lane), term),
                                      indices, offsets);
    });
  }

  /// An element of a register block.
  struct Point {
    int64_t row, lane, term;
  };

  /// How far in memory an element of a register block lies from another; nothing if that depends on where the block is.
  std::optional<int64_t> distance(SliceType type, AffineMap map, Point from, Point to) {
    AffineExpr sum = builder.getAffineConstantExpr(0);
    int64_t stride = 1;
    auto place = [&](AffineExpr index, Point point) {
      return inBlock(index, point.row, builder.getAffineConstantExpr(point.lane), point.term);
    };
    for (auto [index, size] : llvm::reverse(llvm::zip_equal(map.getResults(), type.getShape()))) {
      sum = sum + (place(index, to) - place(index, from)) * stride;
      stride *= size;
    }
    auto constant = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(sum, indices.size(), indices.size()));
    return constant ? std::optional(constant.getValue()) : std::nullopt;
  }
  std::optional<int64_t> distance(SliceType type, AffineMap map, int64_t row, std::pair<int64_t, int64_t> lanes,
                                  std::pair<int64_t, int64_t> terms) {
    return distance(type, map, {row, lanes.first, terms.first}, {row, lanes.second, terms.second});
  }

  /// Whether the elements of each vector of a block lie one after another, so many apart.
  bool liesAlongLanes(SliceType type, AffineMap map, int64_t apart) {
    for (int64_t lane = 0; lane < width(); ++lane)
      if (distance(type, map, 0, {lane / lanes * lanes, lane}, {0, 0}) != lane % lanes * apart)
        return false;
    return true;
  }

  bool lieSideBySide(LoadOp load, int64_t row) {
    for (int64_t term = 1; term < depth; ++term)
      if (distance(load.getSlice().getType(), load.getMap(), row, {0, 0}, {0, term}) != term)
        return false;
    return true;
  }

  /// Whether what is packed in terms holds whole vectors of lanes, which are loaded without masks.
  bool holdsWholeVectors() {
    ArrayRef<int64_t> shape = contraction.lanes.getSlice().getType().getShape();
    return !isPackedInDepth() || (shape[shape.size() - 2] % lanes == 0 && lieSideBySide(contraction.lanes, 0));
  }

  Value zeros(VectorType type) { return constant(cast<TypedAttr>(builder.getZeroAttr(type))); }
  Value constant(TypedAttr value) { return arith::ConstantOp::create(builder, loc, value); }
  Value constantIndex(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value broadcast(Value scalar) {
    return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, scalar.getType()), scalar);
  }

  OpBuilder &builder;
  ComputeOp compute;
  Contraction contraction;
  const IRMapping &outer;
  Location loc;
  const MicroKernel &kernel;
  TileRegisters tiles;
  TermLayout layout;
  int64_t depth;
  Type element; ///< of the accumulator
  int64_t lanes;
  RegisterBlock block;
  int64_t terms; ///< of a panel, which the nest names; 0: all
  int64_t panel; ///< lanes that the loop along them advances by: one register block, or several of a packed panel
  int64_t firstLane = 0; ///< of the current register block in its panel
  bool aligned;          ///< the index along the lanes counts panels
  SmallVector<Value> indices, offsets;
  Value firstStep;                           ///< of several terms, in the block of a loop over blocks
  int64_t length;                            ///< terms of the nest, or of such a block
  Value packed;                              ///< memory of panels packed here
  std::optional<Panel> current;              ///< the one that register blocks read
  std::optional<Prefetch> prefetch;          ///< while a row block's steps are emitted
  bool sumsInSlice = false;                  ///< between panels
  Value configuration, stackSums, stackRows; ///< memory for tile registers, once it is needed
};
} // namespace

bool tilewright::emitContraction(OpBuilder &builder, ComputeOp compute, const IRMapping &values, const Target &target) {
  std::optional<Contraction> contraction = matchContraction(compute);
  if (!contraction)
    return false;
  TermLayout layout = termLayout(compute, *contraction);
  for (bool allowTiles : {true, false}) {
    std::optional<MicroKernel> kernel = kernelFor(compute, *contraction, layout, target, allowTiles);
    if (!kernel)
      continue;
    ContractionEmitter emitter(builder, compute, *contraction, values, *kernel, layout, target);
    if (!emitter.canEmit())
      continue;
    emitter.emit();
    return true;
  }
  return false;
}

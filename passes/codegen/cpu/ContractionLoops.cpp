// Emits the loops around register blocks. Panels of rhs are the outer loop, so that a panel stays in L1 while all rows
// of the tile use it; or, as the blocking says, the loop along K is outside and rhs streams by once.
#include "passes/codegen/cpu/ContractionLoops.h"

#include "passes/codegen/common/EmitLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

void ContractionLoops::emit() {
  Value zero = constantIndex(0);
  for (Value &offset : offsets)
    offset = zero;
  for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
    offsets[dim] = outer.lookup(offset);
  length = compute.getSizes()[layout.dim];
  together = blocking.unroll;
  if (depth == 1 && !own.blocksK() && !copiesPanels())
    return emitBatch(contraction.batch);
  firstStep = depth == 1 ? offsets[layout.dim]
                         : arith::DivUIOp::create(builder, loc, offsets[layout.dim], constantIndex(depth)).getResult();
  int64_t last = compute.getExtents()[layout.dim] % length;
  if (last == 0)
    return emitBatch(contraction.batch);
  // The nest is inside a loop over K, whose last block is shorter.
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

// --- blocks ----------------------------------------------------------------------------------------------------------

void ContractionLoops::emitBatch(ArrayRef<int64_t> dims) {
  if (dims.empty())
    return emitBlocksAlongN();
  forBlocks(dims.front(), 1, [&](Value start, int64_t) {
    indices[dims.front()] = start;
    emitBatch(dims.drop_front());
  });
}

/// Emits the loop along N outside the loop along M, so that the panel of rhs stays in the cache.
void ContractionLoops::emitBlocksAlongN() {
  if (blocking.kOutermost)
    return emitStreams();
  forBlocksAlongN([&](int64_t count) {
    if (own.blocksK() || copiesPanels())
      emitPanels(count);
    else
      emitBlocksAlongM(count);
  });
}

void ContractionLoops::emitBlocksAlongM(int64_t count) {
  if (contraction.m < 0) {
    prepareBlocks(1);
    return emitBlock(1, count);
  }
  int64_t together = rowsTogether(count), size = compute.getSizes()[contraction.m], rest = size % together;
  if (size >= together)
    prepareBlocks(together);
  auto emitRows = [&](Value row, int64_t rows) {
    indices[contraction.m] = row;
    if (rows != together)
      prepareBlocks(rows);
    emitBlock(rows, count);
  };
  bool isCut = compute.getExtents()[contraction.m] % size != 0;
  if (isCut || rest == 0 || size < together || !sharesRows(rest, count))
    return forBlocks(contraction.m, together, emitRows);
  // The last two blocks share their rows evenly.
  int64_t shared = together + rest, whole = size - shared, first = llvm::divideCeil(shared, 2), second = shared - first;
  Value low = offsets[contraction.m];
  forWholeBlocks(low, whole, together, emitRows);
  if (first == second)
    return forWholeBlocks(add(low, constantIndex(whole)), 2 * first, first, emitRows);
  emitRows(add(low, constantIndex(whole)), first);
  emitRows(add(low, constantIndex(whole + first)), second);
}

// --- panels ----------------------------------------------------------------------------------------------------------

/// Returns the element type of a packed panel. If a step has one K, elements are widened when they are packed.
Type ContractionLoops::panelElement() { return depth == 1 ? element : storedRhs(); }

bool ContractionLoops::hasOnePanel(int64_t k) {
  int64_t steps = own.panelSteps(blocking, k);
  return k / depth < steps || k == steps * depth;
}

/// Emits the loop along K outside the loop along N.
void ContractionLoops::emitStreams() {
  accumulatorsInSlice = true;
  if (init())
    forBlocksAlongN([&](int64_t count) { fillAccumulators(broadcast(constant(init())), count); });
  forPanels([&](const Panel &panel) { forBlocksAlongN([&](int64_t count) { emitPanel(panel, count); }); });
}

/// Returns the memory of a packed panel with `count` columns. All panels of a contraction share it.
Value ContractionLoops::panelMemory(int64_t count) {
  int64_t most = width() + (blocking.widerLast ? lanes : 0);
  int64_t columns = std::max<int64_t>(width(), llvm::alignTo(count, lanes)) * depth;
  int64_t steps = own.panelSteps(blocking, length) + stepsTogether();
  auto type = MemRefType::get({steps, columns}, panelElement());
  Value &memory = panelMemories[columns];
  if (memory || most == width())
    return memory = memory ? memory : allocateOnStack(type.getShape(), panelElement());
  Value &all = panelMemories[0];
  if (!all)
    all = allocateOnStack({steps * most * depth}, panelElement());
  OpBuilder::InsertionGuard back(builder);
  builder.setInsertionPointAfterValue(all);
  return panelMemories[columns] = memref::ReinterpretCastOp::create(builder, loc, type, all, /*offset=*/0,
                                                                    type.getShape(), ArrayRef<int64_t>{columns, 1});
}

/// Emits all rows by `count` elements along N, panel by panel along K.
void ContractionLoops::emitPanels(int64_t count) {
  if (copiesPanels())
    packed = panelMemory(count);
  accumulatorsInSlice = stopsBetweenPanels(length);
  if (accumulatorsInSlice && init())
    fillAccumulators(broadcast(constant(init())), count);
  forPanels([&](const Panel &panel) { emitPanel(panel, count); });
}

void ContractionLoops::emitPanel(Panel panel, int64_t count) {
  if (packed)
    packPanel(panel, count);
  current = panel;
  emitBlocksAlongM(count);
  current.reset();
}

/// Packs a panel. Zeros fill it up to a multiple of the steps that the micro kernel takes at once.
void ContractionLoops::packPanel(const Panel &panel, int64_t count) {
  int64_t inIteration = std::exchange(together, 1); // steps are packed one by one
  auto pack = [&](Value step, int64_t k) {
    indices[layout.dim] = add(panel.first, step);
    for (int64_t vector = 0; vector * lanes < count; ++vector)
      vector::StoreOp::create(builder, loc, loadRhs(vector, count, k), packed, inPanel(step, vector));
  };
  if (panel.steps > 0)
    loop(constantIndex(0), constantIndex(panel.steps), 1, [&](Value step) { pack(step, depth); });
  if (panel.rest > 0)
    pack(constantIndex(panel.steps), panel.rest);
  int64_t used = panel.steps + (panel.rest > 0 ? 1 : 0), filled = llvm::alignTo(used, stepsTogether());
  if (used < filled)
    loop(constantIndex(used), constantIndex(filled), 1, [&](Value step) {
      Value none = zeros(VectorType::get({lanes * depth}, storedRhs()));
      for (int64_t vector = 0; vector * lanes < count; ++vector)
        vector::StoreOp::create(builder, loc, none, packed, inPanel(step, vector));
    });
  together = inIteration;
}

void ContractionLoops::fillAccumulators(Value value, int64_t count) {
  auto fill = [&](int64_t rows) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector * lanes < count; ++vector)
        storeAccumulators(value, row, vector, count);
  };
  if (contraction.m < 0)
    return fill(1);
  forBlocks(contraction.m, block.rows, [&](Value start, int64_t rows) {
    indices[contraction.m] = start;
    fill(rows);
  });
}

SmallVector<Value> ContractionLoops::inPanel(Value step, int64_t vector) {
  return {step, constantIndex(vector * lanes * depth)};
}

// --- loops -----------------------------------------------------------------------------------------------------------

/// Calls `body` for whole blocks of `step` in a loop, and for the rest. If the last tile of the grid is smaller, the
/// rest has one of two lengths, which is known only at run time.
void ContractionLoops::forBlocks(int64_t dim, int64_t step, llvm::function_ref<void(Value start, int64_t count)> body) {
  int64_t size = compute.getSizes()[dim], last = compute.getExtents()[dim] % size;
  Value low = offsets[dim];
  if (last == 0) {
    int64_t whole = size / step * step;
    forWholeBlocks(low, whole, step, body);
    if (whole < size)
      body(add(low, constantIndex(whole)), size - whole);
    return;
  }
  Value end = endOf(dim);
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
    emitIf(builder, loc, isIt, [&] { body(restStart, count); });
  }
}

/// Calls `body` for blocks of `step` that fill `size` elements.
void ContractionLoops::forWholeBlocks(Value low, int64_t size, int64_t step,
                                      llvm::function_ref<void(Value start, int64_t count)> body) {
  if (size == step)
    body(low, step);
  else if (size > 0)
    loop(low, add(low, constantIndex(size)), step, [&](Value start) { body(start, step); });
}

/// Returns true if one register block computes `count` elements along N, a vector more than others have.
bool ContractionLoops::joinsRest(int64_t count) {
  return count > width() && count <= width() + lanes && blocking.widerLast;
}

/// Calls `body` for the range along N of each register block.
void ContractionLoops::forBlocksAlongN(llvm::function_ref<void(int64_t count)> body) {
  auto inPanels = [&](Value start, int64_t count) {
    indices[contraction.n] =
        aligned ? arith::DivUIOp::create(builder, loc, start, constantIndex(panel)).getResult() : start;
    for (firstN = 0; firstN < count;) {
      int64_t left = count - firstN, now = joinsRest(left) ? left : std::min(width(), left);
      body(now);
      firstN += now;
    }
  };
  int64_t size = compute.getSizes()[contraction.n], rest = size % panel, whole = size - rest - panel;
  bool isCut = compute.getExtents()[contraction.n] % size != 0;
  if (isCut || rest == 0 || whole < 0 || !joinsRest(width() + rest))
    return forBlocks(contraction.n, panel, inPanels);
  forWholeBlocks(offsets[contraction.n], whole, panel, inPanels);
  inPanels(add(offsets[contraction.n], constantIndex(whole)), panel + rest);
}

/// Calls `body` for whole panels along K in a loop, and for the last one.
void ContractionLoops::forPanels(llvm::function_ref<void(const Panel &panel)> body) {
  int64_t whole = length / depth, rest = length % depth, most = own.panelSteps(blocking, length);
  int64_t inLoop = whole / most * most;
  if (inLoop > 0)
    loop(constantIndex(0), constantIndex(inLoop), most,
         [&](Value first) { body({add(firstStep, first), most, /*rest=*/0}); });
  if (inLoop < whole || rest > 0)
    body({add(firstStep, constantIndex(inLoop)), whole - inLoop, rest});
}

Value ContractionLoops::endOf(int64_t dim) {
  int64_t size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
  Value end = add(offsets[dim], constantIndex(size));
  return extent % size == 0 ? end : arith::MinUIOp::create(builder, loc, end, constantIndex(extent)).getResult();
}

void ContractionLoops::loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
  emitFor(builder, loc, low, high, constantIndex(step), body);
}

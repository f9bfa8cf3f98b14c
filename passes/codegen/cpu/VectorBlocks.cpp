// Emits register blocks whose accumulators are vectors. A step takes one instruction per accumulator, with an element
// of lhs broadcast to all lanes.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/cpu/ContractionLoops.h"
#include "passes/layout/WindowSteps.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/MicroKernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
class VectorBlocks : public ContractionLoops {
public:
  using ContractionLoops::ContractionLoops;

private:
  int64_t vectorsOf(int64_t count) const { return llvm::divideCeil(count, lanes); }

  /// A block that is narrower than a register block has more rows, and a wider one fewer, so that the number of
  /// accumulators is the same.
  int64_t rowsTogether(int64_t count) override {
    return factors() ? compute.getSizes()[contraction.m] : block.rows * block.vectors / vectorsOf(count);
  }

  // --- panels ------------------------------------------------------------------------------------------------------

  bool stopsBetweenPanels(int64_t k) override { return !hasOnePanel(k); }

  // --- prefetching -------------------------------------------------------------------------------------------------

  /// Fetches a row block's share of the next panel into the L2. Without it, the first row block of the next panel would
  /// wait for each line, because it reads lines faster than memory delivers them.
  void prefetchShare(int64_t together) {
    int64_t steps = current ? current->steps : length / depth, stepElements = width() * depth;
    int64_t bytes = steps * stepElements * elementBytes(storedRhs());
    int64_t rowBlocks = llvm::divideCeil(compute.getSizes()[contraction.m], together);
    int64_t all = llvm::product_of(contraction.rhs.getSlice().getType().getShape());
    if (blocking.prefetch == 0 || rowBlocks < 2 || bytes < blocking.prefetch || all <= steps * stepElements)
      return;
    indices[layout.dim] =
        iteration(current ? current->first : depth == 1 && !own.blocksK() ? offsets[layout.dim] : firstStep);
    SmallVector<Value> next = at(contraction.rhs.getMap(), 0, 0);
    int64_t perLine = kCpuLineBytes / elementBytes(storedRhs());
    int64_t lines = llvm::divideCeil(llvm::divideCeil(bytes, kCpuLineBytes), rowBlocks);
    Value row = arith::SubIOp::create(builder, loc, indices[contraction.m], offsets[contraction.m]);
    Value number = arith::CeilDivUIOp::create(builder, loc, row, constantIndex(together));
    Value before = arith::MulIOp::create(builder, loc, number, constantIndex(lines * perLine));
    Value share = add(add(next.back(), constantIndex(steps * stepElements)), before);
    loop(constantIndex(0), constantIndex(lines * perLine), perLine, [&](Value element) {
      next.back() = add(share, element);
      memref::PrefetchOp::create(builder, loc, outer.lookup(contraction.rhs.getSlice()), next, /*isWrite=*/false,
                                 /*localityHint=*/2, /*isDataCache=*/true);
    });
  }

  // --- the block ---------------------------------------------------------------------------------------------------

  void emitBlock(int64_t rows, int64_t count) override {
    if (DenseElementsAttr matrix = factors())
      return emitFactors(matrix, count);
    if (contraction.m >= 0)
      prefetchShare(rowsTogether(count));
    int64_t vectors = vectorsOf(count);
    SmallVector<Value> accumulators = start(rows, count);
    if (kernel.hasOffset)
      accumulators.append(vectors, zeros(VectorType::get({lanes}, element)));
    accumulators =
        current ? reducePanel(accumulators, rows, count) : reduce(contraction.reduced, accumulators, rows, count);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector) {
        Value sum = accumulators[row * vectors + vector];
        if (kernel.hasOffset)
          sum = arith::SubIOp::create(builder, loc, sum, accumulators[rows * vectors + vector]);
        storeAccumulators(sum, row, vector, count);
      }
  }

  /// Returns the matrix that lhs is known to be, if sums of products with it start from zero; null: none.
  DenseElementsAttr factors() {
    auto zero = dyn_cast_or_null<FloatAttr>(init());
    bool startsFromZero = zero && zero.getValue().isZero();
    return own.hasFactors && startsFromZero ? compute->getAttrOfType<DenseElementsAttr>(kFactorsAttr)
                                            : DenseElementsAttr();
  }

  /// Emits all rows by `count` elements: nothing is multiplied with zeros, and ones only add.
  void emitFactors(DenseElementsAttr matrix, int64_t count) {
    int64_t rows = matrix.getType().getDimSize(0), steps = matrix.getType().getDimSize(1);
    int64_t inIteration = std::exchange(together, 1);
    for (int64_t vector = 0; vector < vectorsOf(count); ++vector) {
      SmallVector<Value> loaded;
      for (int64_t step = 0; step < steps; ++step) {
        indices[layout.dim] = constantIndex(step);
        loaded.push_back(loadRhs(vector, count, 1));
      }
      for (int64_t row = 0; row < rows; ++row) {
        Value sum;
        for (int64_t step = 0; step < steps; ++step)
          sum = plusProduct(sum, matrix.getValues<float>()[row * steps + step], loaded[step]);
        storeAccumulators(sum ? sum : zeros(cast<VectorType>(loaded[0].getType())), row, vector, count);
      }
    }
    together = inIteration;
  }

  /// Returns a sum and one more product. Null stands for a sum of nothing.
  Value plusProduct(Value sum, float factor, Value value) {
    if (factor == 0)
      return sum;
    if (factor == 1)
      return sum ? arith::AddFOp::create(builder, loc, sum, value).getResult() : value;
    if (sum && factor == -1)
      return arith::SubFOp::create(builder, loc, sum, value);
    ImplicitLocOpBuilder step(loc, builder);
    auto type = cast<VectorType>(value.getType());
    Value factors = constant(DenseElementsAttr::get(type, factor));
    return emitStep(kernel, step, sum ? sum : zeros(type), factors, value);
  }

  /// Returns the initial accumulators: the initial value, or the accumulators in the slice.
  SmallVector<Value> start(int64_t rows, int64_t count) {
    if (init() && !accumulatorsInSlice)
      return SmallVector<Value>(rows * vectorsOf(count), broadcast(constant(init())));
    SmallVector<Value> accumulators;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectorsOf(count); ++vector)
        accumulators.push_back(loadAccumulators(row, vector, count));
    return accumulators;
  }

  SmallVector<Value> reduce(ArrayRef<int64_t> dims, ValueRange accumulators, int64_t rows, int64_t count) {
    if (dims.empty())
      return multiplyAdd(accumulators, rows, count, 1);
    int64_t dim = dims.front();
    if (depth > 1 && dim == layout.dim)
      return reduceSteps(dim, accumulators, rows, count);
    if (together > 1 && dim == layout.dim)
      return reduceTogether(offsets[dim], endOf(dim), accumulators, rows, count);
    return carry(offsets[dim], endOf(dim), accumulators, [&](Value index, ValueRange now) {
      indices[dim] = index;
      return reduce(dims.drop_front(), now, rows, count);
    });
  }

  /// Returns the number of the loop's iteration, or run of iterations, that starts with a step.
  Value iteration(Value step) {
    int64_t steps = together * perRun;
    return steps == 1 ? step : arith::DivUIOp::create(builder, loc, step, constantIndex(steps)).getResult();
  }

  /// Emits the innermost loop with several steps in each iteration. Iterations that stay at one point of a window are a
  /// loop of their own, so that places in the image are computed once for all of them.
  SmallVector<Value> reduceTogether(Value low, Value high, ValueRange accumulators, int64_t rows, int64_t count) {
    // Blocks of K begin and end with a run.
    int64_t blocks = current ? std::gcd(current->steps, own.panelSteps(blocking, length))
                             : std::gcd(length, compute.getSizes()[layout.dim]);
    int64_t run = std::gcd(windowRun(contraction.lhs.getMap(), layout.dim), blocks);
    bool hasRuns = run % together == 0 && run > together;
    perRun = hasRuns ? run / together : 1;
    Value first = iteration(low);
    SmallVector<Value> sums = carry(first, iteration(high), accumulators, [&](Value index, ValueRange carried) {
      indices[layout.dim] = index;
      Value number = arith::SubIOp::create(builder, loc, index, first);
      if (!hasRuns)
        return stepsOfIteration(number, carried, rows, count);
      number = arith::MulIOp::create(builder, loc, number, constantIndex(perRun));
      return carry(constantIndex(0), constantIndex(perRun), carried, [&](Value inner, ValueRange now) {
        inRun = inner;
        return stepsOfIteration(add(number, inner), now, rows, count);
      });
    });
    perRun = 1;
    inRun = {};
    return sums;
  }

  /// Emits the steps of an iteration, whose number counts from the first one.
  SmallVector<Value> stepsOfIteration(Value number, ValueRange carried, int64_t rows, int64_t count) {
    Value step = arith::MulIOp::create(builder, loc, number, constantIndex(together));
    SmallVector<Value> now(carried);
    for (inTogether = 0; inTogether < together; ++inTogether) {
      if (current)
        current->step = add(step, constantIndex(inTogether));
      now = multiplyAdd(now, rows, count, 1);
    }
    inTogether = 0;
    return now;
  }

  /// Emits the innermost loop, whose index counts steps of several K, and a partial step for the remaining K.
  SmallVector<Value> reduceSteps(int64_t dim, ValueRange accumulators, int64_t rows, int64_t count) {
    int64_t whole = length / depth, rest = length % depth;
    SmallVector<Value> now(accumulators);
    if (whole > 0)
      now = carry(constantIndex(0), constantIndex(whole), now, [&](Value index, ValueRange carried) {
        indices[dim] = add(firstStep, index);
        return multiplyAdd(carried, rows, count, depth);
      });
    if (rest == 0)
      return now;
    indices[dim] = add(firstStep, constantIndex(whole));
    return multiplyAdd(now, rows, count, rest);
  }

  SmallVector<Value> reducePanel(SmallVector<Value> accumulators, int64_t rows, int64_t count) {
    if (together > 1)
      return reduceTogether(current->first, add(current->first, constantIndex(current->steps)), accumulators, rows,
                            count);
    auto at = [&](Value step, ValueRange carried, int64_t k) {
      current->step = step;
      indices[layout.dim] = add(current->first, step);
      return multiplyAdd(carried, rows, count, k);
    };
    if (current->steps > 0)
      accumulators = carry(constantIndex(0), constantIndex(current->steps), accumulators,
                           [&](Value step, ValueRange carried) { return at(step, carried, depth); });
    if (current->rest > 0)
      accumulators = at(constantIndex(current->steps), accumulators, current->rest);
    return accumulators;
  }

  SmallVector<Value> carry(Value low, Value high, ValueRange values,
                           llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    return SmallVector<Value>(emitFor(builder, loc, low, high, constantIndex(1), values, body).getResults());
  }

  /// Emits one step for each accumulator, with the first `k` elements along K of the step. The others are zero.
  SmallVector<Value> multiplyAdd(ValueRange carried, int64_t rows, int64_t count, int64_t k) {
    int64_t vectors = vectorsOf(count);
    SmallVector<Value> rhs, next;
    for (int64_t vector = 0; vector < vectors; ++vector)
      rhs.push_back(current && packed ? loadPacked(vector) : loadRhs(vector, count, k));
    ImplicitLocOpBuilder steps(loc, builder);
    for (int64_t row = 0; row < rows; ++row) {
      Value lhs = loadLhs(row, k);
      for (int64_t vector = 0; vector < vectors; ++vector)
        next.push_back(emitStep(kernel, steps, carried[row * vectors + vector], lhs, rhs[vector]));
    }
    for (int64_t vector = 0; kernel.hasOffset && vector < vectors; ++vector)
      next.push_back(emitStep(kernel, steps, carried[rows * vectors + vector],
                              zeros(cast<VectorType>(rhs[vector].getType())), rhs[vector]));
    return next;
  }

  Value loadPacked(int64_t vector) {
    auto type = VectorType::get({lanes * depth}, cast<MemRefType>(packed.getType()).getElementType());
    return vector::LoadOp::create(builder, loc, type, packed, inPanel(current->step, vector));
  }
};
} // namespace

std::unique_ptr<ContractionLoops> tilewright::makeVectorBlocks(OpBuilder &builder, const ContractionNest &nest,
                                                             const BlockingChoice &blocking) {
  return std::make_unique<VectorBlocks>(builder, nest, blocking);
}

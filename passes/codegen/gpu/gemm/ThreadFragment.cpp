// Computes accumulators with multiply-adds of single threads. For an operand that is contiguous along K, the points of
// a thread are as far apart as there are threads, and it reads several K elements of each at once; for other operands,
// a thread has short runs of neighbouring points.
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"
#include "passes/target/MicroKernelBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kHalfBanks = 64; ///< bytes

/// The points of one operand that a thread has.
struct Points {
  ContractionOperand &operand;
  int64_t units, own;
  Operation *widening;
  Value first = {}; ///< first point of the thread

  int64_t run() const { return operand.liesAlongK() ? 1 : std::min(own, operand.atom()); }
  int64_t offset(int64_t point) const { return point / run() * units * run() + point % run(); }
};

class ThreadFragment : public AccumulatorFragment {
public:
  explicit ThreadFragment(const FragmentInputs &inputs)
      : frame(inputs.frame), builder(inputs.frame.builder), loc(inputs.frame.loc), kernel(inputs.kernel),
        sum(inputs.sum), step(inputs.tiling.ownK()),
        lhs{inputs.lhs, inputs.tiling.mUnits, inputs.tiling.ownM, inputs.lhsWidening},
        rhs{inputs.rhs, inputs.tiling.nUnits, inputs.tiling.ownN, inputs.rhsWidening} {
    // Threads beyond those that the tile has points for compute duplicates, and store nothing.
    Value unit = frame.modulo(frame.thread, lhs.units * rhs.units), line = frame.divide(unit, rhs.units);
    // Avoid bank conflicts: the two halves of a warp store the accumulators of two lines, which begin in different
    // halves of the banks if there is one line in between (sumLine).
    if (rhs.units * rhs.run() * inputs.tiling.accumulatorBytes == kHalfBanks && lhs.units % 4 == 0)
      line = frame.add(frame.multiply(frame.divide(line, 4), 4), swapBits(frame.modulo(line, 4)));
    firstK = firstKOf(frame, inputs.tiling);
    rhs.first = frame.multiply(frame.modulo(unit, rhs.units), rhs.run());
    lhs.first = frame.multiply(line, lhs.run());
    firstM = lhs.first;
    firstN = rhs.first;
    run = rhs.run();
    rowBits = rhs.units - 1;
    for (int64_t m = 0; m < lhs.own; ++m)
      for (int64_t n = 0; n < rhs.own; ++n)
        offsets.push_back({lhs.offset(m), rhs.offset(n)});
  }

  SmallVector<Value> multiplyAdd(ValueRange accumulators, Value slot) override {
    int64_t together = frame.costs.unrolledK;
    for (const Points &points : {lhs, rhs})
      if (points.operand.liesAlongK())
        together = std::max(together, points.operand.atom());
    together = std::min(together, step);
    auto loop =
        scf::ForOp::create(builder, loc, firstK, frame.add(firstK, step), frame.constant(together), accumulators);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    SmallVector<SmallVector<Value>> a = read(lhs, slot, loop.getInductionVar(), together),
                                    b = read(rhs, slot, loop.getInductionVar(), together);
    ImplicitLocOpBuilder steps(loc, builder);
    for (int64_t k = 0; k < together; ++k)
      for (int64_t m = 0; m < lhs.own; ++m)
        for (int64_t n = 0; n < rhs.own; ++n) {
          Value &own = next[m * rhs.own + n];
          own = emitStep(kernel, steps, own, a[k][m], b[k][n]);
        }
    scf::YieldOp::create(builder, loc, next);
    return SmallVector<Value>(loop.getResults());
  }

  /// Pins the accumulators. A few K elements are multiplied without a loop; for accumulators that only an edge tile
  /// uses, the optimiser would move this past all later barriers and keep the operands in registers until then.
  SmallVector<Value> finish(ValueRange accumulators) override {
    return accumulatorsAsOfHere(builder, loc, accumulators);
  }

private:
  Value swapBits(Value two) { return frame.add(frame.multiply(frame.modulo(two, 2), 2), frame.divide(two, 2)); }

  /// Returns the values by K element and point, converted to the type of the accumulators.
  SmallVector<SmallVector<Value>> read(const Points &points, Value slot, Value first, int64_t numK) {
    SmallVector<SmallVector<Value>> values(numK, SmallVector<Value>(points.own));
    auto take = [&](Value vector, int64_t count, llvm::function_ref<Value &(int64_t)> into) {
      for (int64_t i = 0; i < count; ++i)
        into(i) = widen(vector::ExtractOp::create(builder, loc, vector, i), points.widening);
    };
    auto at = [&](int64_t point) { return frame.add(points.first, points.offset(point)); };
    ContractionOperand &operand = points.operand;
    if (operand.liesAlongK()) {
      int64_t count = std::min(numK, operand.atom());
      for (int64_t point = 0; point < points.own; ++point)
        for (int64_t k = 0; k < numK; k += count)
          take(operand.read(slot, at(point), frame.add(first, k), count), count,
               [&](int64_t i) -> Value & { return values[k + i][point]; });
      return values;
    }
    for (int64_t k = 0; k < numK; ++k)
      for (int64_t point = 0; point < points.own; point += points.run())
        take(operand.read(slot, at(point), frame.add(first, k), points.run()), points.run(),
             [&](int64_t i) -> Value & { return values[k][point + i]; });
    return values;
  }

  /// Widens the value as the graph does.
  Value widen(Value value, Operation *widening) {
    if (value.getType() == sum)
      return value;
    if (isa_and_nonnull<arith::ExtSIOp>(widening))
      return arith::ExtSIOp::create(builder, loc, sum, value);
    if (isa_and_nonnull<arith::ExtUIOp>(widening))
      return arith::ExtUIOp::create(builder, loc, sum, value);
    return arith::ExtFOp::create(builder, loc, sum, value);
  }

  ContractionFrame &frame;
  OpBuilder &builder;
  Location loc;
  const MicroKernel &kernel;
  Type sum;
  int64_t step; ///< K elements per step, of which the thread has some, from the first on
  Value firstK;
  Points lhs, rhs;
};
} // namespace

std::unique_ptr<AccumulatorFragment> tilewright::makeThreadFragment(const FragmentInputs &inputs) {
  return std::make_unique<ThreadFragment>(inputs);
}

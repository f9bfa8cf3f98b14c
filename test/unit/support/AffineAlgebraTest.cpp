// Tests the algebra against plain evaluation, on every point of small random domains.
#include "passes/support/AffineAlgebra.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace mlir;
using namespace tilewright;

namespace {

int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> point) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), point), rhs = evaluate(binary.getRHS(), point);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    return llvm::mod(lhs, rhs);
  }
}

bool holds(IntegerSet set, ArrayRef<int64_t> point) {
  for (unsigned i = 0; set && i < set.getNumConstraints(); ++i) {
    int64_t value = evaluate(set.getConstraint(i), point);
    if (set.isEq(i) ? value != 0 : value < 0)
      return false;
  }
  return true;
}

SmallVector<int64_t> evaluate(AffineMap map, ArrayRef<int64_t> point) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) { return evaluate(expr, point); });
}

template <typename Callback> void forEachPoint(ArrayRef<int64_t> extents, Callback callback) {
  SmallVector<int64_t> point(extents.size(), 0);
  while (true) {
    callback(ArrayRef<int64_t>(point));
    size_t dim = 0;
    while (dim < extents.size() && ++point[dim] == extents[dim])
      point[dim++] = 0;
    if (dim == extents.size())
      return;
  }
}

std::string text(AffineExpr expr) {
  std::string result;
  llvm::raw_string_ostream(result) << expr;
  return result;
}

class AffineAlgebra : public ::testing::Test {
protected:
  int64_t pick(int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); }

  SmallVector<int64_t> randomExtents(int64_t high = 9) {
    SmallVector<int64_t> extents(pick(1, 3));
    for (int64_t &extent : extents)
      extent = pick(1, high);
    return extents;
  }

  AffineExpr randomExpr(unsigned numDims, int depth) {
    static const int64_t divisors[] = {2, 3, 4, 5, 6, 8, 12};
    auto part = [&] { return randomExpr(numDims, depth - 1); };
    switch (pick(0, depth > 0 ? 6 : 1)) {
    case 0:
      return getAffineConstantExpr(pick(-7, 7), &context);
    case 1:
      return getAffineDimExpr(pick(0, numDims - 1), &context);
    case 2:
    case 3:
      return part() + part() * pick(-6, 6);
    case 4:
      return part().floorDiv(divisors[pick(0, 6)]);
    case 5:
      return part() % divisors[pick(0, 6)];
    default:
      return part().ceilDiv(divisors[pick(0, 6)]);
    }
  }

  IntegerSet randomSet(unsigned numDims) {
    SmallVector<AffineExpr> constraints;
    SmallVector<bool> equalities;
    for (int64_t i = pick(1, 3); i > 0; --i) {
      constraints.push_back(randomExpr(numDims, 2));
      equalities.push_back(pick(0, 4) == 0);
    }
    return IntegerSet::get(numDims, 0, constraints, equalities);
  }

  AffineExpr d(unsigned position) { return getAffineDimExpr(position, &context); }

  MLIRContext context;
  std::mt19937 random{20240607};
};

TEST_F(AffineAlgebra, simplifies_to_the_same_values_within_the_bounds) {
  for (int round = 0; round < 20000; ++round) {
    SmallVector<int64_t> extents = randomExtents();
    AffineExpr expr = randomExpr(extents.size(), 3), simple = simplifyInDomain(expr, extents);
    Interval bound = boundExpr(expr, domainRanges(extents));
    bool same = true, inside = true;
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      int64_t value = evaluate(expr, point);
      same &= value == evaluate(simple, point);
      inside &= bound.low <= value && value <= bound.high;
    });
    ASSERT_TRUE(same) << text(expr) << " became " << text(simple);
    ASSERT_TRUE(inside) << text(expr) << " leaves [" << bound.low << ", " << bound.high << "]";
  }
}

TEST_F(AffineAlgebra, simplified_small_expressions_stay_as_they_are) {
  for (int round = 0; round < 5000; ++round) {
    SmallVector<int64_t> extents = randomExtents();
    AffineExpr simple = simplifyInDomain(randomExpr(extents.size(), 3), extents);
    ASSERT_EQ(simple, simplifyInDomain(simple, extents)) << text(simple);
  }
}

TEST_F(AffineAlgebra, bounds_of_linear_expressions_are_attained) {
  for (int round = 0; round < 2000; ++round) {
    SmallVector<int64_t> extents = randomExtents();
    AffineExpr expr = getAffineConstantExpr(pick(-9, 9), &context);
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      expr = expr + d(dim) * pick(-5, 5);
    int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      low = std::min(low, evaluate(expr, point));
      high = std::max(high, evaluate(expr, point));
    });
    ASSERT_EQ(boundExpr(expr, domainRanges(extents)), (Interval{low, high})) << text(expr);
  }
}

TEST_F(AffineAlgebra, composition_of_maps_composes_the_functions) {
  for (int round = 0; round < 5000; ++round) {
    SmallVector<int64_t> extents = randomExtents();
    AffineMap inner =
        AffineMap::get(extents.size(), 0, {randomExpr(extents.size(), 2), randomExpr(extents.size(), 2)}, &context);
    AffineMap outer = AffineMap::get(2, 0, {randomExpr(2, 2), randomExpr(2, 2)}, &context);
    AffineMap both = composeInDomain(outer, inner, extents);
    bool same = true;
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      same &= evaluate(outer, evaluate(inner, point)) == evaluate(both, point);
    });
    ASSERT_TRUE(same);
  }
}

TEST_F(AffineAlgebra, composition_and_conjunction_of_sets_keep_their_points) {
  for (int round = 0; round < 5000; ++round) {
    SmallVector<int64_t> extents = randomExtents();
    unsigned rank = extents.size();
    IntegerSet set = randomSet(2), other = randomSet(rank);
    AffineMap inner = AffineMap::get(rank, 0, {randomExpr(rank, 2), randomExpr(rank, 2)}, &context);
    IntegerSet composed = composeInDomain(set, inner, extents), both = conjoin(composed, other, extents);
    SmallVector<Interval> box = guardedRanges(both, extents);
    bool same = true, boxed = true;
    forEachPoint(extents, [&](ArrayRef<int64_t> point) {
      bool first = holds(set, evaluate(inner, point)), second = holds(other, point);
      same &= first == holds(composed, point) && (first && second) == holds(both, point);
      for (unsigned dim = 0; dim < rank; ++dim)
        boxed &= !(first && second) || (box[dim].low <= point[dim] && point[dim] <= box[dim].high);
    });
    ASSERT_TRUE(same);
    ASSERT_TRUE(boxed);
  }
}

TEST_F(AffineAlgebra, conjunction_knows_everywhere_and_nowhere) {
  IntegerSet low = IntegerSet::get(1, 0, {4 - d(0)}, {false}), high = IntegerSet::get(1, 0, {d(0) - 5}, {false});
  EXPECT_FALSE(conjoin({}, {}, {10}));
  EXPECT_FALSE(conjoin(low, {}, {5}));
  EXPECT_TRUE(conjoin(low, high, {10}).isEmptyIntegerSet());
  EXPECT_TRUE(implies(conjoin(low, high, {10}), {}));
  EXPECT_EQ(conjoin(low, low, {10}), conjoin(low, {}, {10}));
}

TEST_F(AffineAlgebra, every_reshape_and_its_inverse_cancel) {
  SmallVector<SmallVector<int64_t>> shapes = {{60}, {3, 4, 5}, {5, 12}, {15, 1, 4}, {2, 6, 5}, {1, 60, 1}, {4, 15}};
  for (ArrayRef<int64_t> from : shapes)
    for (ArrayRef<int64_t> to : shapes) {
      AffineMap there = reshapeMap(&context, from, to), back = reshapeMap(&context, to, from);
      AffineMap round = composeInDomain(back, there, to);
      for (unsigned dim = 0; dim < to.size(); ++dim)
        EXPECT_EQ(round.getResult(dim), to[dim] == 1 ? getAffineConstantExpr(0, &context) : d(dim));
    }
}

TEST_F(AffineAlgebra, splitting_heads_leaves_no_division) {
  // [16, 64] is viewed as [16, 4, 16] and transposed to [4, 16, 16]; the composed access stays linear.
  AffineMap split = reshapeMap(&context, {16, 64}, {16, 4, 16});
  AffineMap transpose = AffineMap::get(3, 0, {d(1), d(0), d(2)}, &context);
  AffineMap access = composeInDomain(split, transpose, {4, 16, 16});
  EXPECT_EQ(access, AffineMap::get(3, 0, {d(1), d(0) * 16 + d(2)}, &context));
}

TEST_F(AffineAlgebra, divisions_that_cannot_carry_vanish) {
  EXPECT_EQ(simplifyInDomain((d(0) * 64 + d(1)).floorDiv(64), {12, 64}), d(0));
  EXPECT_EQ(simplifyInDomain((d(0) * 64 + d(1)) % 64, {12, 64}), d(1));
  EXPECT_EQ(simplifyInDomain((d(0) * 64 + d(1) * 8 + d(2)).floorDiv(8) % 8, {3, 8, 8}), d(1));
  EXPECT_EQ(simplifyInDomain((d(0) % 32 + d(1) * 32).floorDiv(64), {99, 6}), d(1).floorDiv(2));
}

// MLIR takes 15 * (d floordiv 16) out of the division by 3, which must be one term of the sum for these bounds.
TEST_F(AffineAlgebra, digits_of_digits_are_bounded) {
  AffineExpr d = getAffineDimExpr(0, &context), low = d % 16, high = d.floorDiv(16);
  AffineExpr digit = (low + high * 15) - (low.floorDiv(3) + high * 5) * 3;
  EXPECT_EQ(boundExpr(digit, domainRanges({144})), (Interval{0, 2}));
  EXPECT_EQ(boundExpr((d - high).floorDiv(3) - high * 5, domainRanges({144})), (Interval{0, 5}));
}

TEST_F(AffineAlgebra, dims_are_in_the_order_in_which_what_they_read_lies) {
  auto dims = [&](ArrayRef<AffineExpr> results) {
    return dimsAsTheyLie(AffineMap::get(3, 0, results, &context), {4, 8, 3});
  };
  EXPECT_EQ(dims({d(1), getAffineConstantExpr(3, &context), d(0)}), (SmallVector<int64_t>{1, 0}));
  EXPECT_EQ(dims({d(0) * 8 + d(1) + d(2) * 32}), (SmallVector<int64_t>{2, 0, 1})); // heads, and their halves
  EXPECT_EQ(dims({d(1).floorDiv(2), d(1) % 2}), (SmallVector<int64_t>{1}));
}

// Loops over rows and then columns read a row vector again for every row, and a column vector once.
TEST_F(AffineAlgebra, loops_around_what_is_read_read_it_again) {
  AffineMap row = AffineMap::get(2, 0, d(1)), column = AffineMap::get(2, 0, d(0));
  EXPECT_TRUE(isReadAgain(row, {0, 1}));
  EXPECT_FALSE(isReadAgain(row, {1}));
  EXPECT_FALSE(isReadAgain(column, {0, 1}));
  EXPECT_FALSE(isReadAgain(AffineMap::getMultiDimIdentityMap(2, &context), {0, 1}));
  EXPECT_FALSE(isReadAgain(AffineMap::get(2, 0, getAffineConstantExpr(0, &context)), {0, 1}));
}

// Compares with every run of small boxes.
TEST_F(AffineAlgebra, sets_hold_by_runs) {
  auto atLeast = [&](AffineExpr expr) { return IntegerSet::get(2, 0, {expr}, {false}); };
  auto holds = [](IntegerSet set, int64_t i, int64_t j) {
    int64_t value =
        cast<AffineConstantExpr>(set.getConstraint(0).replaceDims({getAffineConstantExpr(i, set.getContext()),
                                                                   getAffineConstantExpr(j, set.getContext())}))
            .getValue();
    return set.isEq(0) ? value == 0 : value >= 0;
  };
  auto sameInRuns = [&](IntegerSet set, int64_t run) {
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t first = 0; first < 64; first += run)
        for (int64_t j = first; j < first + run; ++j)
          if (holds(set, i, j) != holds(set, i, first))
            return false;
    return true;
  };
  for (int64_t run : {1, 2, 4, 8})
    for (int64_t border = 0; border < 33; ++border)
      for (IntegerSet set : {atLeast(d(1) - border), atLeast(-d(1) + border), atLeast(d(1) + d(0) * 8 - border),
                             atLeast(-d(1) + d(0) * 4 + border)})
        EXPECT_EQ(holdsByRuns(set, 1, run), sameInRuns(set, run)) << border << " " << run;
  EXPECT_TRUE(holdsByRuns(atLeast(d(0) - 3), 1, 8));
  EXPECT_FALSE(holdsByRuns(IntegerSet::get(2, 0, {d(1) - 8}, {true}), 1, 8));
  EXPECT_FALSE(holdsByRuns(atLeast(d(1) * 3 - 24), 1, 8));        // holds, but the function does not look for it
  EXPECT_FALSE(holdsByRuns(atLeast(d(1).floorDiv(8) - 2), 1, 8)); // likewise
}

} // namespace

TEST_F(AffineAlgebra, enumerates_the_range_of_quotients_that_depend_on_each_other) {
  AffineExpr a = d(0), b = d(1);
  // The remainder of a by 7, plus the carry of that and b, where each part by itself would reach from -48 to 55.
  AffineExpr expr = a + (a + b).floorDiv(7) - a.floorDiv(7) * 8;
  int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
  forEachPoint({49, 8}, [&](ArrayRef<int64_t> point) {
    low = std::min(low, evaluate(expr, point));
    high = std::max(high, evaluate(expr, point));
  });
  SmallVector<Interval> ranges = domainRanges({49, 8});
  EXPECT_EQ(enumeratedRange(expr, ranges, /*mostPoints=*/49 * 8), (Interval{low, high}));
  EXPECT_EQ(high, 7);
  EXPECT_FALSE(enumeratedRange(expr, ranges, /*mostPoints=*/49 * 8 - 1).has_value());
}

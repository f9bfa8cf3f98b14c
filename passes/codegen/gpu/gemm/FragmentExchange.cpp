// The threads of a quad exchange pairs with their neighbour by shuffles: an even thread keeps its pair of the even
// block and receives the pair that continues it; an odd thread does the same for the next block.
#include "passes/codegen/gpu/gemm/FragmentExchange.h"

#include "passes/codegen/gpu/nest/BlockThreads.h"
#include "passes/program/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static constexpr int64_t kPair = 2, kRun = 2 * kPair, kColumns = 8, kQuad = 4, kWideElement = 4;

/// Returns true if neighbours along the dim are neighbours in global memory, with elements of one or two bytes.
static bool isNarrow(SliceType type, AffineMap map, int64_t dim) {
  return type.getSpace() == Space::global && elementBytes(type.getElementType()) < kWideElement &&
         strideAlong(map, denseStrides(type.getShape()), dim) == 1;
}

/// Returns true if the access depends on a dim other than `lane`. Data that is the same in all rows touches few sectors
/// anyway.
static bool changesByRow(AffineMap map, int64_t lane) {
  return llvm::any_of(llvm::seq<int64_t>(0, map.getNumDims()),
                      [&](int64_t dim) { return dim != lane && map.isFunctionOfDim(dim); });
}

bool tilewright::gainsByLongerRuns(const ContractionPlan &plan, ComputeOp contraction, const AccumulatorLayout &layout,
                                   const EpilogueNest *reader) {
  int64_t n = plan.contraction.n;
  bool hasWholeRuns = contraction.getSizes()[n] % kRun == 0 && contraction.getExtents()[n] % kRun == 0;
  if (plan.kernel.unit != StepUnit::warp || layout.run != kPair || !hasWholeRuns)
    return false;
  if (!reader)
    return isNarrow(cast<SliceType>(contraction.getAccs()[0].getType()),
                    cast<AffineMapAttr>(contraction.getAccMaps()[0]).getValue(), n);
  int64_t along = llvm::find(reader->dims, n) - reader->dims.begin();
  Block &body = ComputeOp(reader->nest).getBodyBlock();
  auto stores = body.getOps<StoreOp>();
  if (llvm::any_of(stores, [&](StoreOp store) { return isNarrow(store.getSlice().getType(), store.getMap(), along); }))
    return true;
  auto isBuffered = [](StoreOp store) { return store.getSlice().getType().getSpace() == Space::block; };
  return llvm::none_of(stores, isBuffered) && llvm::any_of(body.getOps<LoadOp>(), [&](LoadOp load) {
           return changesByRow(load.getMap(), along) && isNarrow(load.getSlice().getType(), load.getMap(), along);
         });
}

/// Returns the pairs of accumulators that a thread exchanges: the first pair is of an even block of columns, the second
/// of the next block.
static SmallVector<std::pair<size_t, size_t>> pairsOf(const AccumulatorLayout &layout) {
  SmallVector<std::pair<size_t, size_t>> pairs;
  for (size_t first = 0; first < layout.offsets.size(); first += kPair) {
    const AccumulatorOffset &offset = layout.offsets[first];
    if (offset.n % (2 * kColumns) != 0)
      continue;
    const AccumulatorOffset *next = llvm::find_if(layout.offsets, [&](const AccumulatorOffset &other) {
      return other.m == offset.m && other.n == offset.n + kColumns;
    });
    assert(next != layout.offsets.end() && "warps have even numbers of blocks along N");
    pairs.push_back({first, next - layout.offsets.begin()});
  }
  return pairs;
}

AccumulatorLayout tilewright::withLongerRuns(ContractionFrame &frame, const AccumulatorLayout &layout) {
  AccumulatorLayout longer = layout;
  longer.run = kRun;
  longer.offsets.clear();
  for (auto [first, next] : pairsOf(layout))
    for (int64_t i = 0; i < kRun; ++i)
      longer.offsets.push_back({layout.offsets[first].m, layout.offsets[first].n + i});
  // Even threads take the columns of the even block, odd threads those of the next one.
  Value inQuad = frame.modulo(frame.thread, kQuad), odd = frame.modulo(inQuad, 2);
  Value before = frame.multiply(inQuad, kPair);
  Value now = frame.add(frame.multiply(odd, kColumns), frame.multiply(frame.divide(inQuad, 2), kRun));
  Value tile = frame.builder.createOrFold<arith::SubIOp>(frame.loc, layout.firstN, before);
  longer.firstN = frame.add(tile, now);
  return longer;
}

SmallVector<Value> tilewright::exchangePairs(ContractionFrame &frame, const AccumulatorLayout &layout,
                                             ValueRange accumulators) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value isOdd =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, frame.modulo(frame.thread, 2), frame.constant(1));
  auto choose = [&](Value ofOdd, Value ofEven) -> Value {
    return arith::SelectOp::create(builder, loc, isOdd, ofOdd, ofEven);
  };
  SmallVector<Value> longer;
  for (auto [first, next] : pairsOf(layout)) {
    SmallVector<Value> lower, upper;
    for (int64_t i = 0; i < kPair; ++i) {
      Value even = accumulators[first + i], odd = accumulators[next + i];
      Value received = shuffleXor(builder, loc, choose(even, odd), /*bit=*/0);
      lower.push_back(choose(received, even));
      upper.push_back(choose(odd, received));
    }
    llvm::append_range(longer, lower);
    llvm::append_range(longer, upper);
  }
  return longer;
}

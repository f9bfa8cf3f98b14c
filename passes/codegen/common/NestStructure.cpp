// Decides the structure of a nest: for each op the dims along which it changes, from these the loop it belongs to, and
// the number of lanes from the latency of its ops and the traffic to memory.
#include "passes/codegen/common/NestStructure.h"

#include "passes/graph/Eligibility.h"
#include "passes/target/LaneBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

int64_t tilewright::lanesFor(int64_t points, int64_t registerBytes) {
  int64_t native = registerBytes / kLaneBytes;
  return points >= native ? llvm::alignTo(points, native) : std::max<int64_t>(2, llvm::PowerOf2Ceil(points));
}

/// Returns the bytes of the narrowest element that the nest stores with non-temporal stores, or zero if the nest
/// accumulates or has ordinary stores.
static int64_t streamedBytes(ComputeOp compute) {
  if (!compute.getAccs().empty())
    return 0;
  int64_t narrowest = 4;
  for (auto store : compute.getBody().getOps<StoreOp>()) {
    if (!store.getStreamed())
      return 0;
    narrowest = std::min(narrowest, elementBytes(store.getSlice().getType().getElementType()));
  }
  return narrowest;
}

int64_t NestStructure::chooseLanes(VectorShape shape) {
  int64_t size = compute.getSizes()[vectorDim];
  int64_t native = shape.bytes / kLaneBytes, registers = shape.nestRegisters;
  if (compute.getRunning())
    registers = 1; // the nest has blocks of several vectors
  // Take one register at a time: memory is fastest if loads and stores alternate, unless they wait for long chains.
  if (int64_t bytes = streamedBytes(compute); bytes > 0 && !hasSpecials(/*ofLanesAlone=*/false))
    registers = 4 / bytes;
  while (registers > 1 && native * registers > size)
    registers /= 2;
  return size >= native ? native * registers : lanesFor(size, shape.bytes);
}

NestStructure::NestStructure(ComputeOp compute, VectorShape shape, const NestThreads *threads,
                             std::optional<int64_t> given)
    : compute(compute) {
  vectorDim = compute.getVector();
  bool opaque = llvm::is_contained(compute.getKinds().getAsValueRange<StringAttr>(), "none");
  if (vectorDim >= 0 && (compute.getSizes()[vectorDim] == 1 || (opaque && compute.isReduced(vectorDim))))
    vectorDim = -1;
  findDependences();
  if (vectorDim >= 0)
    lanes = given ? *given : threads ? threads->lanes() : chooseLanes(shape);
  if (lanes == 1)
    vectorDim = -1;
  orderLoops(!threads && !given && streamedBytes(compute) == 0 && hasSpecials(/*ofLanesAlone=*/true));
  if (!threads && !given)
    joinWindows(shape);
  findLevels();
  if (compute.getRunning()) {
    running = compute.getRunning()->getAccumulator();
    relative = compute.getRelativeOps();
  }
  if (!threads)
    findExtrema(); // GPUs have instructions for both treatments of NaN
}

void NestStructure::findDependences() {
  int64_t rank = compute.getExtents().size();
  Block &body = compute.getBodyBlock();
  for (BlockArgument arg : body.getArguments()) {
    llvm::SmallBitVector dims(rank);
    for (int64_t dim : compute.getReductions())
      dims.set(dim);
    if (vectorDim >= 0)
      dims.set(vectorDim);
    varies[arg] = dims;
  }
  for (Operation &op : body.without_terminator()) {
    llvm::SmallBitVector dims(rank);
    auto addMap = [&](AffineMap map) {
      for (int64_t dim = 0; dim < rank; ++dim)
        if (map.isFunctionOfDim(dim))
          dims.set(dim);
    };
    auto addSet = [&](IntegerSet set) {
      for (AffineExpr expr : set.getConstraints())
        addMap(AffineMap::get(set.getNumDims(), set.getNumSymbols(), expr));
    };
    if (auto load = dyn_cast<LoadOp>(op)) {
      addMap(load.getMap());
      if (load.getGuard())
        addSet(*load.getGuard());
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      addMap(store.getMap());
    } else if (auto index = dyn_cast<IndexOp>(op)) {
      addMap(index.getMap());
    } else if (auto within = dyn_cast<WithinOp>(op)) {
      addSet(within.getSet());
    }
    for (Value operand : op.getOperands())
      if (auto known = varies.find(operand); known != varies.end())
        dims |= known->second;
    for (Value result : op.getResults())
      varies[result] = dims;
    dependences[&op] = dims;
  }
}

bool NestStructure::hasSpecials(bool ofLanesAlone) {
  if (vectorDim < 0 || compute.isReduced(vectorDim))
    return false;
  return llvm::any_of(compute.getBodyBlock().without_terminator(), [&](Operation &op) {
    const llvm::SmallBitVector &dims = dependences[&op];
    return isSpecial(op) && dims.test(vectorDim) && (!ofLanesAlone || dims.count() == 1);
  });
}

void NestStructure::orderLoops(bool lanesFirst) {
  int64_t rank = compute.getExtents().size();
  auto add = [&](bool reduced) {
    bool lanes = vectorDim >= 0 && compute.isReduced(vectorDim) == reduced;
    if (lanes && lanesFirst)
      order.push_back(vectorDim);
    for (int64_t dim = 0; dim < rank; ++dim)
      if (compute.isReduced(dim) == reduced && dim != vectorDim)
        order.push_back(dim);
    if (lanes && !lanesFirst)
      order.push_back(vectorDim);
  };
  add(/*reduced=*/false);
  numParallel = order.size();
  add(/*reduced=*/true);
}

bool NestStructure::overlapsAlong(int64_t dim) {
  ArrayRef<int64_t> sizes = compute.getSizes();
  if (dim == vectorDim || compute.isReduced(dim) || sizes[dim] == 1 || compute.getExtents()[dim] % sizes[dim] != 0)
    return false;
  return llvm::any_of(compute.getBody().getOps<LoadOp>(), [&](LoadOp load) {
    return tilewright::overlapsAlong(load.getMap(), dim, compute.getReductions(), sizes);
  });
}

void NestStructure::joinWindows(const VectorShape &shape) {
  bool isUnrolled = llvm::all_of(compute.getReductions(), [&](int64_t dim) {
    int64_t size = compute.getSizes()[dim];
    return size <= shape.unrolledPoints && size == compute.getExtents()[dim];
  });
  if (vectorDim < 0 || compute.isReduced(vectorDim) || compute.getAccs().empty() || compute.getRunning() || !isUnrolled)
    return;
  MutableArrayRef<int64_t> parallel = MutableArrayRef(order).take_front(numParallel);
  auto last = llvm::find_if(llvm::reverse(parallel), [&](int64_t dim) { return overlapsAlong(dim); });
  if (last == parallel.rend())
    return;
  std::rotate(std::prev(last.base()), last.base(), parallel.end());
  together = std::min(compute.getSizes()[parallel.back()], shape.windowsTogether);
  lanes = std::min(lanes, shape.bytes / kLaneBytes);
}

void NestStructure::findLevels() {
  for (auto &[op, dims] : dependences) {
    int64_t level = 0;
    for (auto [depth, dim] : llvm::enumerate(order))
      if (dims.test(dim))
        level = depth + 1;
    levels[op] = level;
    vectorised[op] = vectorDim >= 0 && dims.test(vectorDim);
  }
}

void NestStructure::findExtrema() {
  if (vectorDim < 0)
    return;
  auto yield = cast<YieldOp>(compute.getBodyBlock().getTerminator());
  for (auto [arg, yielded, init] :
       llvm::zip(compute.getBodyBlock().getArguments(), yield.getValues(), compute.getInits())) {
    Operation *op = yielded.getDefiningOp();
    bool takesNaN = isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(op);
    bool losesNaN = isa_and_nonnull<arith::MaxNumFOp, arith::MinNumFOp>(op);
    if ((takesNaN || losesNaN) && llvm::is_contained(op->getOperands(), Value(arg)) &&
        !cast<FloatAttr>(init).getValue().isNaN())
      extrema.push_back({op, arg, op->getOperand(op->getOperand(0) == arg ? 1 : 0), takesNaN});
  }
  // Extrema with a flag come first, because loops carry the flags in this order.
  llvm::stable_sort(extrema, [](const Extremum &a, const Extremum &b) { return a.takesNaN > b.takesNaN; });
  numFlags = llvm::count_if(extrema, [](const Extremum &extremum) { return extremum.takesNaN; });
}

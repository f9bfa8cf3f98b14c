// First chooses the elements per access, then assigns bits: to the vector dim, to reduced dims, to other dims from the
// inside out. If lines of buffers then conflict in banks, tries other dims and rotations and takes the one with the
// fewest passes.
#include "passes/program/gpu/ThreadMapping.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/layout/WarpPasses.h"
#include "passes/program/Slices.h"
#include "passes/program/gpu/TileCopy.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/target/AccessBytes.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr int64_t kDefaultThreads = 256;

/// Chooses how many elements a thread accesses at once: enough for a 16-byte access of the widest tensor, fewer if they
/// would not be contiguous or aligned.
class LaneChooser {
public:
  explicit LaneChooser(ComputeOp compute) : compute(compute), dim(compute.getVector()) {}

  int64_t choose() {
    if (dim < 0 || compute.getSizes()[dim] == 1)
      return 1;
    bool opaque = llvm::is_contained(compute.getKinds().getAsValueRange<StringAttr>(), "none");
    if (opaque && compute.isReduced(dim))
      return 1;
    for (Operation &op : compute.getBodyBlock()) {
      if (auto load = dyn_cast<LoadOp>(op)) {
        if (std::optional<IntegerSet> guard = load.getGuard())
          guards.push_back(*guard);
        see(load.getSlice(), load.getMap());
      } else if (auto store = dyn_cast<StoreOp>(op)) {
        see(store.getSlice(), store.getMap());
      } else if (auto gather = dyn_cast<GatherOp>(op)) {
        see(gather);
      }
    }
    for (auto [slice, map] : llvm::zip(compute.getAccs(), compute.getAccMaps().getAsValueRange<AffineMapAttr>()))
      see(slice, map);
    if (scattered || widest == 0)
      return 1;
    int64_t lanes = std::min(kMostLanes, kAccessBytes / std::min(widest, kAccessBytes));
    while (!divides(lanes))
      lanes /= 2;
    return lanes;
  }

private:
  void see(Value slice, AffineMap map) {
    auto type = cast<SliceType>(slice.getType());
    SmallVector<int64_t> strides = denseStrides(type.getShape());
    std::optional<int64_t> own = strideAlong(map, strides, dim);
    if (own && *own == 0 && !map.isFunctionOfDim(dim))
      return; // all lanes read the same element
    if (!own || *own != 1) {
      scattered = true;
      return;
    }
    widest = std::max(widest, elementBytes(type.getElementType()));
    SmallVector<int64_t> origin(map.getNumInputs(), 0);
    for (auto [index, stride] : llvm::zip(map.compose(origin), strides))
      starts.push_back(index * stride);
    seeStart(slice);
    for (int64_t other = 0; other < static_cast<int64_t>(compute.getSizes().size()); ++other) {
      if (other == dim || compute.getExtents()[other] == 1)
        continue;
      std::optional<int64_t> stride = strideAlong(map, strides, other);
      starts.push_back(stride.value_or(1));
    }
  }

  /// Lanes read neighbouring elements of one row of a table, or each its own.
  void see(GatherOp gather) {
    auto type = cast<SliceType>(gather.getTable().getType());
    int64_t runs = 0; // coordinates that run along the lanes
    for (auto [index, stride] : llvm::zip(gather.getIndices(), denseStrides(type.getShape()))) {
      auto known = index.getDefiningOp<IndexOp>();
      bool isLane = known && pureDim(known.getMap().getResult(0)) == dim;
      runs += isLane;
      scattered |= isLane ? stride != 1 : changesAlongLanes(index);
      if (!isLane)
        starts.push_back(stride);
    }
    scattered |= runs > 1;
    if (runs > 0)
      widest = std::max(widest, elementBytes(type.getElementType()));
  }

  /// Returns true if a value of the body differs from lane to lane.
  bool changesAlongLanes(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &compute.getBodyBlock())
      return !op; // an accumulator may
    if (auto load = dyn_cast<LoadOp>(op))
      return load.getMap().isFunctionOfDim(dim);
    if (auto index = dyn_cast<IndexOp>(op))
      return index.getMap().isFunctionOfDim(dim);
    return isa<WithinOp>(op) ||
           llvm::any_of(op->getOperands(), [&](Value operand) { return changesAlongLanes(operand); });
  }

  /// Takes the start of a buffer that is aligned to a run of memory into account; it depends on the part's tiles.
  void seeStart(Value slice) {
    auto alloc = slice.getDefiningOp<AllocOp>();
    auto start = alloc ? alloc->getAttrOfType<AffineMapAttr>(kAlignedAsAttr) : AffineMapAttr();
    if (!start)
      return;
    for (auto [grid, tile] : llvm::enumerate(alloc->getParentOfType<ParallelOp>().getTiles()))
      starts.push_back(tile * strideAlong(start.getValue(), {1}, grid).value_or(1));
  }

  bool divides(int64_t lanes) {
    auto whole = [&](int64_t count) { return count % lanes == 0; };
    return whole(compute.getSizes()[dim]) && whole(compute.getExtents()[dim]) && llvm::all_of(starts, whole) &&
           llvm::all_of(guards, [&](IntegerSet guard) { return holdsByRuns(guard, dim, lanes); });
  }

  ComputeOp compute;
  int64_t dim;
  bool scattered = false;
  int64_t widest = 0;          ///< bytes of the widest element
  SmallVector<int64_t> starts; ///< distances, in elements, that have to be multiples of a vector
  SmallVector<IntegerSet> guards;
};

class BitAssigner {
public:
  BitAssigner(ComputeOp compute, BlockShape shape) : compute(compute), shape(shape), vector(compute.getVector()) {
    mapping.threads = shape.threads;
    // In every nest, rows belong to the same groups of threads, so no thread takes several rows at once.
    bool alongRows = shape.group > 0 && vector >= 0 && isGrid(vector);
    mapping.lanes = alongRows ? 1 : LaneChooser(compute).choose();
    opaque = llvm::is_contained(compute.getKinds().getAsValueRange<StringAttr>(), "none");
  }

  NestMapping assign() {
    assignBits();
    if (shape.group == 0)
      spreadLines();
    return mapping;
  }

private:
  /// Assigns bits to dims. `lines` is the dim that gets the bits after those of the vector dim; -1 for the innermost
  /// dim.
  void assignBits(int64_t lines = -1) {
    unsigned total = llvm::Log2_64(shape.threads), group = shape.group > 0 ? llvm::Log2_64(shape.group) : total;
    int64_t rank = compute.getSizes().size();
    mapping.bits.assign(rank, {});
    mapping.reduced = next = 0;
    if (vector >= 0 && (shape.group == 0 || !isGrid(vector)))
      assignTo(vector, group);
    if (lines >= 0)
      assignTo(lines, group);
    // Threads that share a point split the reduced dims first.
    for (bool reduced : {true, false})
      for (int64_t dim = rank - 1; dim >= 0; --dim)
        if (compute.isReduced(dim) == reduced && (shape.group == 0 || !isGrid(dim)))
          assignTo(dim, group);
    next = group;
    if (shape.group > 0)
      for (int64_t dim = rank - 1; dim >= 0; --dim)
        if (isGrid(dim))
          assignTo(dim, total);
    unsigned used = 0;
    for (auto [dim, bits] : llvm::enumerate(mapping.bits)) {
      used |= bits.mask();
      if (compute.isReduced(dim))
        mapping.reduced |= bits.mask();
    }
    mapping.idle = (shape.threads - 1) & ~used;
  }

  bool isGrid(int64_t dim) { return llvm::is_contained(compute.getOffsetDims(), dim); }

  /// Gives the dim as many of the bits below `end` as it has vectors for.
  void assignTo(int64_t dim, unsigned end) {
    if (mapping.bits[dim].count > 0 || (opaque && compute.isReduced(dim)))
      return;
    int64_t vectors = compute.getSizes()[dim] / (dim == vector ? mapping.lanes : 1);
    unsigned count = std::min<unsigned>(end - next, llvm::Log2_64_Ceil(vectors));
    mapping.bits[dim] = {next, count};
    next += count;
  }

  /// If a warp accesses several lines of a buffer at once and neighbouring lines conflict in banks, lets it take lines
  /// that are further apart, or that lie along another dim. Not done if threads share a reduction.
  void spreadLines() {
    bool isPart = vector >= 0 && mapping.bits[vector].count > 0 && mapping.bits[vector].count < kWarpBits;
    if (!isPart || !takesWholeSectors())
      return;
    unsigned behind = mapping.bits[vector].count;
    bool reduces = mapping.reduced != 0;
    NestMapping best = mapping;
    double least = passes();
    for (int64_t lines = 0; lines < static_cast<int64_t>(best.bits.size()); ++lines) {
      if (lines == vector || (reduces && mapping.bits[lines].first != behind))
        continue;
      if (!reduces)
        assignBits(lines);
      BitRange &range = mapping.bits[lines];
      for (range.turned = 0; range.turned < std::max(1u, range.count); ++range.turned)
        if (double own = passes(); own < least)
          least = own, best = mapping;
      range.turned = 0;
    }
    mapping = best;
  }

  struct Access {
    SliceType type;
    AffineMap map;
  };

  SmallVector<Access> accesses() {
    SmallVector<Access> found;
    for (Operation &op : compute.getBodyBlock()) {
      if (auto load = dyn_cast<LoadOp>(op))
        found.push_back({load.getSlice().getType(), load.getMap()});
      else if (auto store = dyn_cast<StoreOp>(op))
        found.push_back({store.getSlice().getType(), store.getMap()});
    }
    return found;
  }

  /// Returns true if each access to global memory touches whole sectors along each line, so that the choice of lines
  /// does not matter, or is the same for all lines.
  bool takesWholeSectors() {
    int64_t elements = mapping.lanes << mapping.bits[vector].count;
    return llvm::all_of(accesses(), [&](const Access &access) {
      bool isOfLine = false;
      for (int64_t dim = 0; dim < static_cast<int64_t>(mapping.bits.size()); ++dim)
        isOfLine |= dim != vector && access.map.isFunctionOfDim(dim);
      return access.type.getSpace() == Space::block || !isOfLine ||
             (strideAlong(access.map, denseStrides(access.type.getShape()), vector) == 1 &&
              elements * access.type.getElementBytes() % kSectorBytes == 0);
    });
  }

  /// Returns the passes over the banks that the first warp needs for all accesses to buffers.
  double passes() {
    double sum = 0;
    for (const Access &access : accesses()) {
      if (access.type.getSpace() != Space::block)
        continue;
      SmallVector<int64_t> strides = denseStrides(access.type.getShape()), addresses;
      SmallVector<std::optional<int64_t>> steps;
      for (int64_t dim = 0; dim < static_cast<int64_t>(mapping.bits.size()); ++dim)
        steps.push_back(strideAlong(access.map, strides, dim));
      if (llvm::is_contained(steps, std::nullopt))
        continue;
      int64_t bytes = access.type.getElementBytes();
      for (int64_t thread = 0; thread < std::min<int64_t>(mapping.threads, 1 << kWarpBits); ++thread) {
        int64_t address = 0;
        for (auto [dim, range, step] : llvm::enumerate(mapping.bits, steps))
          address += range.indexOf(thread) * *step * bytes * (static_cast<int64_t>(dim) == vector ? mapping.lanes : 1);
        addresses.push_back(address);
      }
      sum += bankPasses(addresses, steps[vector] == 1 ? mapping.lanes * bytes : bytes);
    }
    return sum;
  }

  ComputeOp compute;
  BlockShape shape;
  int64_t vector; ///< vector dim, or -1
  NestMapping mapping;
  bool opaque;
  unsigned next = 0;
};
} // namespace

std::string NestMapping::verify() const {
  unsigned seen = idle;
  for (const BitRange &range : bits) {
    if (seen & range.mask())
      return "two dims share a bit of the thread index";
    seen |= range.mask();
  }
  return seen == static_cast<unsigned>(threads - 1) ? ""
                                                    : "a bit of the thread index belongs to no dim and is not idle";
}

void NestMapping::print(llvm::raw_ostream &os) const {
  os << threads << " threads, " << lanes << " lanes, bits";
  for (const BitRange &range : bits) {
    os << " [" << range.first << ", " << range.first + range.count << ")";
    if (range.turned > 0)
      os << " turned by " << range.turned;
  }
  os << llvm::format(", reduced 0x%x, idle 0x%x", reduced, idle);
}

BlockShape tilewright::blockShapeOf(ParallelOp part) {
  auto threads = part->getAttrOfType<IntegerAttr>(kThreadsAttr), group = part->getAttrOfType<IntegerAttr>(kGroupAttr);
  return {threads ? threads.getInt() : kDefaultThreads, group ? group.getInt() : 0};
}

NestMapping tilewright::mapNest(ComputeOp compute, BlockShape shape) { return BitAssigner(compute, shape).assign(); }

Type tilewright::storedAs(Type element) {
  MLIRContext *context = element.getContext();
  if (element.isIndex())
    return IntegerType::get(context, 64);
  return element.isInteger(1) ? Type(IntegerType::get(context, 8)) : element;
}

int64_t tilewright::combiningScratchBytes(ComputeOp compute, const NestMapping &mapping) {
  if (!mapping.crossesWarps())
    return 0;
  int64_t widest = 0;
  for (BlockArgument accumulator : compute.getBodyBlock().getArguments())
    widest = std::max(widest, elementBytes(storedAs(accumulator.getType())));
  auto vector = static_cast<int64_t>(compute.getVector());
  bool lanesReduced = vector >= 0 && compute.isReduced(vector);
  return mapping.threads * widest * (lanesReduced ? 1 : mapping.lanes);
}

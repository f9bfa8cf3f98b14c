// Readers must follow the contraction, visit exactly its points, and be pointwise or reduce along rows in any order.
// Then each thread finds all elements it needs among its own accumulators, or combines rows with the threads that share
// them.
#include "passes/program/RegisterHandover.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/MatchContraction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns the dim that an index into a tile's buffer is, apart from its offset.
static std::optional<int64_t> dimOfIndex(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dim.getPosition();
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!sum || expr.getKind() != AffineExprKind::Add)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(sum.getLHS());
  auto negated = dyn_cast<AffineBinaryOpExpr>(sum.getRHS());
  if (!dim || !negated || negated.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto symbol = dyn_cast<AffineSymbolExpr>(negated.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(negated.getRHS());
  bool isOffset = symbol && factor && factor.getValue() == -1 && symbol.getPosition() == dim.getPosition();
  return isOffset ? std::optional<int64_t>(dim.getPosition()) : std::nullopt;
}

static bool isOnGpu(ComputeOp compute) {
  auto part = compute->getParentOfType<ParallelOp>();
  return part && part->hasAttr(kThreadsAttr);
}

/// Returns true if a thread can compute an element of the nest from elements of its own, without guards.
static bool isPointwise(ComputeOp compute) {
  return llvm::all_of(compute.getBodyBlock(), [](Operation &op) {
    if (auto load = dyn_cast<LoadOp>(op))
      return !load.getGuard() && !load.getSlice().getType().getElementType().isInteger(1);
    if (auto store = dyn_cast<StoreOp>(op))
      return !store.getSlice().getType().getElementType().isInteger(1);
    return isa<YieldOp, IndexOp>(op) || op.hasTrait<OpTrait::ConstantLike>() ||
           OpTrait::hasElementwiseMappableTraits(&op);
  });
}

static Value offsetOf(ComputeOp compute, int64_t dim) {
  for (auto [own, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
    if (own == dim)
      return offset;
  return {};
}

static bool sameRange(ComputeOp a, int64_t i, ComputeOp b, int64_t j) {
  return a.getExtents()[i] == b.getExtents()[j] && a.getSizes()[i] == b.getSizes()[j] &&
         offsetOf(a, i) == offsetOf(b, j);
}

/// Returns the contraction that accumulates in the buffer, or null.
static ComputeOp contractionAccumulatingIn(Value slice) {
  if (slice.getDefiningOp<AllocOp>())
    for (Operation *user : slice.getUsers())
      if (auto compute = dyn_cast<ComputeOp>(user);
          compute && compute.getMicroKernel() && llvm::is_contained(compute.getAccs(), slice))
        return compute;
  return {};
}

static Type sumsType(ComputeOp contraction) { return contraction.getBodyBlock().getArgument(0).getType(); }

/// Returns true if the accumulators are those of a single matrix: all operands are then read before the first
/// accumulator is handed over.
static bool isOneMatrix(ComputeOp contraction) {
  SmallVector<LoadOp> operands(contraction.getBodyBlock().getOps<LoadOp>());
  llvm::SmallDenseSet<Value> spanned;
  for (auto [dim, size] : llvm::enumerate(contraction.getSizes())) {
    if (size == 1 || contraction.isReduced(dim))
      continue;
    unsigned along = dim;
    SmallVector<LoadOp> changed(
        llvm::make_filter_range(operands, [&](LoadOp load) { return load.getMap().isFunctionOfDim(along); }));
    if (changed.size() != 1 || !spanned.insert(changed.front()).second)
      return false;
  }
  return true;
}

/// Returns true if no nest between the two writes memory that the operands occupied.
static bool followsAtOnce(ComputeOp contraction, ComputeOp reader) {
  Operation *next = contraction->getNextNode();
  while (isa_and_nonnull<SyncOp>(next))
    next = next->getNextNode();
  return reader && next == reader;
}

/// Returns the nests that read the buffer, if the contraction may be computed right before the first of them. Nests in
/// between must have nothing to do with either, such as one that copies a bias for the tile. The accumulators occupy
/// registers until the last reader has run.
static SmallVector<ComputeOp> readersOf(ComputeOp contraction, Value buffer) {
  bool readsBuffer = llvm::any_of(contraction.getBodyBlock().getOps<LoadOp>(),
                                  [](LoadOp load) { return load.getSlice().getType().getSpace() != Space::global; });
  if (readsBuffer && !isOneMatrix(contraction))
    return {};
  llvm::SmallDenseSet<Operation *> users;
  for (Operation *user : buffer.getUsers())
    if (user != contraction.getOperation())
      users.insert(isa<LoadOp>(user) ? user->getParentOp() : user);
  SmallVector<ComputeOp> readers;
  for (Operation *next = contraction->getNextNode(); next && readers.size() < users.size();
       next = next->getNextNode()) {
    if (isa<SyncOp>(next))
      continue;
    auto nest = dyn_cast<ComputeOp>(next);
    if (!nest || llvm::is_contained(nest.getAccs(), buffer))
      return {};
    if (nest.getMicroKernel() && (users.contains(nest) || !readers.empty()))
      return {};
    if (users.contains(nest))
      readers.push_back(nest);
  }
  if (readers.empty() || readers.size() < users.size() || (readsBuffer && !followsAtOnce(contraction, readers.front())))
    return {};
  // A nest that reads accumulators of two contractions could have only one of them in registers.
  for (ComputeOp reader : readers)
    for (LoadOp load : reader.getBodyBlock().getOps<LoadOp>())
      if (load.getSlice() != buffer && contractionAccumulatingIn(load.getSlice()))
        return {};
  return readers;
}

/// Returns the index map with which a load or store accesses the slice.
static std::optional<AffineMap> mapInto(Operation &op, Value slice) {
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getSlice() == slice ? std::optional(load.getMap()) : std::nullopt;
  auto store = dyn_cast<StoreOp>(op);
  return store && store.getSlice() == slice ? std::optional(store.getMap()) : std::nullopt;
}

static AffineMap writtenMap(ComputeOp contraction) {
  return cast<AffineMapAttr>(contraction.getAccMaps()[0]).getValue();
}

/// Returns `nest` as a reader of the accumulators, which the contraction stores with the map `written`, if the points
/// of the nest are exactly those of the contraction.
static std::optional<EpilogueNest> readerAlike(ComputeOp contraction, AffineMap written, ComputeOp nest, Value buffer) {
  EpilogueNest reader{nest, SmallVector<int64_t>(nest.getSizes().size(), -1)};
  SmallVector<bool> covered(contraction.getSizes().size(), false);
  for (Operation &op : nest.getBodyBlock()) {
    std::optional<AffineMap> map = mapInto(op, buffer);
    if (!map)
      continue;
    for (auto [from, to] : llvm::zip(written.getResults(), map->getResults())) {
      if (isa<AffineConstantExpr>(from) && from == to)
        continue;
      std::optional<int64_t> dim = dimOfIndex(from), own = dimOfIndex(to);
      if (!dim || !own || !sameRange(contraction, *dim, nest, *own) ||
          (reader.dims[*own] >= 0 && reader.dims[*own] != *dim))
        return std::nullopt;
      reader.dims[*own] = *dim;
      covered[*dim] = true;
    }
  }
  for (auto [dim, size] : llvm::enumerate(contraction.getSizes()))
    if (size > 1 && !contraction.isReduced(dim) && !covered[dim])
      return std::nullopt;
  for (auto [own, size] : llvm::enumerate(nest.getSizes()))
    if (reader.dims[own] < 0 && size > 1)
      return std::nullopt;
  return reader;
}

/// Returns true if the nest reduces only along rows of the contraction's result, each row on its own and in any order.
static bool reducesRows(ComputeOp contraction, const EpilogueNest &reader) {
  ComputeOp nest = reader.nest;
  if (nest.getAccs().empty())
    return true;
  for (auto [dim, size] : llvm::enumerate(nest.getSizes())) {
    bool isLane = reader.dims[dim] == static_cast<int64_t>(contraction.getVector()), isReduced = nest.isReduced(dim);
    if (isLane ? !isReduced : isReduced && size > 1)
      return false;
  }
  return !nest.getRunning() && llvm::none_of(nest.getInits(), llvm::IsaPred<UnitAttr>) &&
         !llvm::is_contained(nest.getKinds().getAsValueRange<StringAttr>(), "none");
}

/// Returns true if all batch dims of the contraction have size one, so that a thread holds all its accumulators at
/// once.
static bool isOneTile(ComputeOp contraction) {
  std::optional<Contraction> roles = matchContraction(contraction, OperandGuards::allowed);
  return roles && llvm::all_of(roles->batch, [&](int64_t dim) { return contraction.getSizes()[dim] == 1; });
}

/// Returns the handover of a contraction outside a walk. Growing accumulators are not considered.
static std::optional<RegisterHandover> handoverOf(ComputeOp contraction) {
  if (!contraction.getMicroKernel() || contraction.getAccs().size() != 1 || !isOnGpu(contraction))
    return std::nullopt;
  auto buffer = contraction.getAccs()[0].getDefiningOp<AllocOp>();
  if (!buffer)
    return std::nullopt;
  RegisterHandover handover;
  for (ComputeOp nest : readersOf(contraction, buffer.getSlice())) {
    std::optional<EpilogueNest> reader = readerAlike(contraction, writtenMap(contraction), nest, buffer.getSlice());
    if (!reader || !isPointwise(nest) || !reducesRows(contraction, *reader))
      return std::nullopt;
    handover.readers.push_back(*reader);
  }
  if (handover.readers.empty() || (handover.keepsAccumulators() && !isOneTile(contraction)))
    return std::nullopt;
  return handover;
}

std::optional<RegisterHandover> tilewright::registerHandover(ComputeOp contraction) {
  std::optional<RegisterHandover> handover = handoverOf(contraction);
  if (auto loop = dyn_cast<scf::ForOp>(contraction->getParentOp()); handover && loop)
    handover->grows =
        llvm::any_of(grownIn(loop), [&](const GrowingAccumulators &grown) { return grown.contraction == contraction; });
  return handover;
}

/// Returns the constant that a nest stores to all points of the slice, if it does nothing else.
static TypedAttr constantStored(ComputeOp nest, Value slice) {
  auto stores = llvm::to_vector(nest.getBodyBlock().getOps<StoreOp>());
  TypedAttr constant;
  if (nest.getAccs().empty() && stores.size() == 1 && stores[0].getSlice() == slice)
    matchPattern(stores[0].getValue(), m_Constant(&constant));
  return constant;
}

/// Returns true if a nest in a loop adds a contraction's result to the buffer.
static bool isAddedTo(Value slice) {
  return slice.getDefiningOp<AllocOp>() && llvm::any_of(slice.getUsers(), [](Operation *user) {
           auto nest = dyn_cast<ComputeOp>(user->getParentOp());
           return nest && isa<scf::ForOp>(nest->getParentOp()) && isa<StoreOp>(user) &&
                  llvm::any_of(nest.getBodyBlock().getOps<LoadOp>(),
                               [](LoadOp load) { return contractionAccumulatingIn(load.getSlice()); });
         });
}

/// Returns true if the nest also reads accumulators of other loops or contractions: only those of one could be in
/// registers.
static bool readsOthers(ComputeOp nest, Value slice) {
  return llvm::any_of(nest.getBodyBlock().getOps<LoadOp>(), [&](LoadOp load) {
    return load.getSlice() != slice && (isAddedTo(load.getSlice()) || contractionAccumulatingIn(load.getSlice()));
  });
}

std::optional<GrowingAccumulators> tilewright::growingAccumulators(AllocOp buffer) {
  Value slice = buffer.getSlice();
  llvm::SmallSetVector<Operation *, 4> nests;
  for (Operation *user : slice.getUsers())
    nests.insert(isa<LoadOp, StoreOp>(user) ? user->getParentOp() : user);
  GrowingAccumulators grown{slice, {}, {}, {}, {}, {}};
  SmallVector<ComputeOp> behind;
  for (Operation *op : nests) {
    auto nest = dyn_cast<ComputeOp>(op);
    if (!nest || nest.getMicroKernel() || llvm::is_contained(nest.getAccs(), slice))
      return std::nullopt;
    if (isa<scf::ForOp>(nest->getParentOp())) {
      if (grown.joining)
        return std::nullopt;
      grown.joining = nest;
    } else if (TypedAttr constant = constantStored(nest, slice); constant && !grown.starting) {
      grown.start = constant;
      grown.starting = nest;
    } else {
      behind.push_back(nest);
    }
  }
  if (!grown.joining || !grown.starting || behind.empty())
    return std::nullopt;
  for (LoadOp load : grown.joining.getBodyBlock().getOps<LoadOp>())
    if (ComputeOp contraction = contractionAccumulatingIn(load.getSlice()))
      grown.contraction = contraction;
  Operation *loop = grown.joining->getParentOp();
  std::optional<RegisterHandover> handover = grown.contraction ? handoverOf(grown.contraction) : std::nullopt;
  if (!handover || handover->keepsAccumulators() || handover->readers.front().nest != grown.joining ||
      grown.contraction->getParentOp() != loop || loop->getBlock() != buffer->getBlock() ||
      !isOneTile(grown.contraction) || buffer.getType().getElementType() != sumsType(grown.contraction))
    return std::nullopt;
  // Index map of the accumulators in the buffer, as the nest that adds to them has it.
  SmallVector<AffineExpr> places(handover->readers.front().dims.size());
  for (auto [own, dim] : llvm::enumerate(handover->readers.front().dims))
    places[own] = dim < 0 ? getAffineConstantExpr(0, buffer.getContext()) : getAffineDimExpr(dim, buffer.getContext());
  AffineMap written;
  for (Operation &op : grown.joining.getBodyBlock())
    if (std::optional<AffineMap> map = mapInto(op, slice))
      written = *map;
  SmallVector<AffineExpr> sums;
  for (AffineExpr result : written.getResults()) {
    std::optional<int64_t> own = dimOfIndex(result);
    if (!own && !isa<AffineConstantExpr>(result))
      return std::nullopt;
    sums.push_back(own ? places[*own] : result);
  }
  written = AffineMap::get(grown.contraction.getSizes().size(), 0, sums, buffer.getContext());
  if (!readerAlike(grown.contraction, written, grown.joining, slice) ||
      !readerAlike(grown.contraction, written, grown.starting, slice))
    return std::nullopt;
  for (ComputeOp nest : behind) {
    std::optional<EpilogueNest> reader = readerAlike(grown.contraction, written, nest, slice);
    if (nest->getBlock() != buffer->getBlock() || !loop->isBeforeInBlock(nest) || !reader || !isPointwise(nest) ||
        !nest.getAccs().empty() || readsOthers(nest, slice))
      return std::nullopt;
    grown.readers.push_back(*reader);
  }
  return grown;
}

SmallVector<GrowingAccumulators> tilewright::grownIn(scf::ForOp loop) {
  SmallVector<GrowingAccumulators> all;
  for (auto buffer : loop->getBlock()->getOps<AllocOp>())
    if (std::optional<GrowingAccumulators> grown = growingAccumulators(buffer);
        grown && grown->joining->getParentOp() == loop)
      all.push_back(*grown);
  return all;
}

std::optional<GrowingAccumulators> tilewright::grownBeside(ComputeOp nest) {
  for (Operation &op : nest.getBodyBlock()) {
    auto load = dyn_cast<LoadOp>(op);
    auto store = dyn_cast<StoreOp>(op);
    Value slice = load ? load.getSlice() : store ? store.getSlice() : Value();
    auto buffer = slice ? slice.getDefiningOp<AllocOp>() : AllocOp();
    if (std::optional<GrowingAccumulators> grown = buffer ? growingAccumulators(buffer) : std::nullopt;
        grown && grown->joining != nest)
      return grown;
  }
  return std::nullopt;
}

static ComputeOp contractionInto(Value slice) {
  ComputeOp contraction = contractionAccumulatingIn(slice);
  return contraction && handoverOf(contraction) ? contraction : ComputeOp();
}

bool tilewright::staysInRegisters(AllocOp buffer) {
  return contractionInto(buffer.getSlice()) || growingAccumulators(buffer);
}

ComputeOp tilewright::contractionHandedTo(ComputeOp reader) {
  for (LoadOp load : reader.getBodyBlock().getOps<LoadOp>())
    if (ComputeOp contraction = contractionInto(load.getSlice()))
      return contraction;
  return {};
}

ComputeOp tilewright::contractionComputedWith(ComputeOp reader) {
  ComputeOp contraction = contractionHandedTo(reader);
  return contraction && registerHandover(contraction)->readers.front().nest == reader ? contraction : ComputeOp();
}

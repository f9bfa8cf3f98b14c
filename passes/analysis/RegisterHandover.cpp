#include "passes/analysis/RegisterHandover.h"

#include "passes/Passes.h"
#include "passes/analysis/MatchContraction.h"

#include "mlir/IR/OpDefinition.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// The dim that an index into a tile's buffer is, less its offset.
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

/// What a thread can do with an element of its own: nothing is guarded.
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

static bool isSumOfContraction(Value slice) {
  return slice.getDefiningOp<AllocOp>() && llvm::any_of(slice.getUsers(), [&](Operation *user) {
           auto compute = dyn_cast<ComputeOp>(user);
           return compute && compute.getMicroKernel() && llvm::is_contained(compute.getAccs(), slice);
         });
}

/// Whether the sums are those of one matrix: then all of the operands is read before the first of them is handed over.
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

/// Whether no nest between the two writes memory that the operands had.
static bool followsAtOnce(ComputeOp contraction, ComputeOp reader) {
  Operation *next = contraction->getNextNode();
  while (isa_and_nonnull<SyncOp>(next))
    next = next->getNextNode();
  return reader && next == reader;
}

/// The nests that read the buffer, if the contraction may as well be computed right before the first: between are only
/// nests that have nothing to do with either, such as one that keeps a bias for the tile. Until the last one has read
/// the sums, registers are theirs.
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
    if (!nest || (nest.getMicroKernel() && !readers.empty()))
      return {};
    if (users.contains(nest))
      readers.push_back(nest);
  }
  if (readers.empty() || readers.size() < users.size() || (readsBuffer && !followsAtOnce(contraction, readers.front())))
    return {};
  // Sums of two contractions: only one of them could be in registers.
  for (ComputeOp reader : readers)
    for (LoadOp load : reader.getBodyBlock().getOps<LoadOp>())
      if (load.getSlice() != buffer && isSumOfContraction(load.getSlice()))
        return {};
  return readers;
}

/// The nest as a reader, if each of its points is one of the contraction's, and all of those are.
static std::optional<SumReader> readerAlike(ComputeOp contraction, ComputeOp nest, Value buffer) {
  SumReader reader{nest, SmallVector<int64_t>(nest.getSizes().size(), -1)};
  SmallVector<bool> covered(contraction.getSizes().size(), false);
  AffineMap written = cast<AffineMapAttr>(contraction.getAccMaps()[0]).getValue();
  for (LoadOp load : nest.getBodyBlock().getOps<LoadOp>()) {
    if (load.getSlice() != buffer)
      continue;
    for (auto [from, to] : llvm::zip(written.getResults(), load.getMap().getResults())) {
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

/// Whether all that it accumulates it does along rows of the contraction's sums, each on its own.
static bool reducesRows(ComputeOp contraction, const SumReader &reader) {
  ComputeOp nest = reader.nest;
  bool startsAnew = llvm::none_of(nest.getInits(), llvm::IsaPred<UnitAttr>);
  return startsAnew && !nest.getRunning() && llvm::all_of(nest.getReductions(), [&](int64_t dim) {
           return nest.getSizes()[dim] == 1 || reader.dims[dim] == static_cast<int64_t>(contraction.getVector());
         });
}

/// Whether the sums are those of one tile of rows and lanes, so that a thread has them all at once.
static bool isOneTile(ComputeOp contraction) {
  std::optional<Contraction> roles = matchContraction(contraction);
  return roles && llvm::all_of(roles->batch, [&](int64_t dim) { return contraction.getSizes()[dim] == 1; });
}

std::optional<RegisterHandover> tilewright::registerHandover(ComputeOp contraction) {
  if (!contraction.getMicroKernel() || contraction.getAccs().size() != 1 || !isOnGpu(contraction))
    return std::nullopt;
  auto buffer = contraction.getAccs()[0].getDefiningOp<AllocOp>();
  if (!buffer)
    return std::nullopt;
  RegisterHandover handover;
  for (ComputeOp nest : readersOf(contraction, buffer.getSlice())) {
    std::optional<SumReader> reader = readerAlike(contraction, nest, buffer.getSlice());
    if (!reader || !isPointwise(nest) || !reducesRows(contraction, *reader))
      return std::nullopt;
    handover.readers.push_back(*reader);
  }
  if (handover.readers.empty() || (handover.keepsSums() && !isOneTile(contraction)))
    return std::nullopt;
  return handover;
}

static ComputeOp contractionInto(Value slice) {
  if (!slice.getDefiningOp<AllocOp>())
    return {};
  for (Operation *user : slice.getUsers())
    if (auto compute = dyn_cast<ComputeOp>(user); compute && llvm::is_contained(compute.getAccs(), slice))
      return registerHandover(compute) ? compute : ComputeOp();
  return {};
}

bool tilewright::staysInRegisters(AllocOp buffer) { return static_cast<bool>(contractionInto(buffer.getSlice())); }

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

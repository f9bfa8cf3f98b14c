// Roots are placed into nests in program order, each into the earliest nest that fits; nests are then ordered by phase.
// Buffers follow from the nests: results read by another nest are buffered. The plan says which inputs are copied.
#include "passes/program/Movement.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/layout/BufferedSlice.h"
#include "passes/graph/Form.h"
#include "passes/graph/SubprogramWalk.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static Value lookThroughConnects(Value value) {
  while (auto connect = value.getDefiningOp<ConnectOp>())
    value = connect.getValue();
  return value;
}

static int64_t spaceRank(ExprOp root) { return cast<SubprogramOp>(root->getParentOp()).getExtents().size(); }

int64_t tilewright::keptAlong(SubprogramOp subprogram, const Nest &nest) {
  ArrayRef<int64_t> grid = subprogram.getGrid();
  if (nest.phase == WalkPhase::inside)
    return 0; // a nest inside the walk holds only one block of its values at a time
  int64_t along = 0;
  while (along < static_cast<int64_t>(grid.size()) && !llvm::is_contained(nest.dims, grid[grid.size() - 1 - along]))
    ++along;
  return along;
}

ArrayRef<int64_t> tilewright::placeOf(ExprOp root) {
  std::optional<ArrayRef<int64_t>> dims = root.getDims();
  assert(dims && "a root without dims in the iteration space");
  return *dims;
}

SpaceAccess tilewright::accessInSpace(ExprOp root, unsigned i) {
  MLIRContext *context = root.getContext();
  SmallVector<AffineExpr> place;
  for (int64_t dim : placeOf(root))
    place.push_back(dim < 0 ? getAffineConstantExpr(0, context) : getAffineDimExpr(dim, context));
  int64_t rank = spaceRank(root);
  SpaceAccess access;
  access.tensor = lookThroughConnects(root.getInputs()[i]);
  access.map = root.getInputMap(i).replaceDimsAndSymbols(place, {}, rank, 0);
  if (IntegerSet guard = root.getGuard(i))
    access.guard = guard.replaceDimsAndSymbols(place, {}, rank, 0);
  return access;
}

/// Returns true if, at every point of the consumer's tile, the element it reads is the one that the producer computes
/// at the same point of the iteration space.
static bool readsOwnPlace(ExprOp consumer, unsigned input, ExprOp producer, unsigned result) {
  if (consumer.getGuard(input))
    return false;
  SpaceAccess access = accessInSpace(consumer, input);
  AffineMap written = producer.getResultMap(result);
  for (auto [read, write] : llvm::zip(access.map.getResults(), written.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(write);
    int64_t place = dim ? placeOf(producer)[dim.getPosition()] : -1;
    AffineExpr expected =
        place < 0 ? getAffineConstantExpr(0, consumer.getContext()) : getAffineDimExpr(place, consumer.getContext());
    if (read != expected)
      return false;
  }
  return true;
}

/// Returns true if the consumer reads the producer's value at the same point and nothing is reduced. The value can then
/// be handed over in a register of one nest.
static bool readsSamePoint(ExprOp consumer, unsigned input, ExprOp producer, unsigned result) {
  return !producer.isReduction() && readsOwnPlace(consumer, input, producer, result);
}

namespace {
/// Knows which roots may use a maximum while it is being accumulated (online softmax), and records which do.
class OnlineMaxima {
public:
  OnlineMaxima(SubprogramOp subprogram, int64_t least) : least(least) {
    allowed = namesForm(subprogram.getNumerics(), [](Form form) { return form == Form::onlineSoftmax; });
    for (auto root : subprogram.getBody().getOps<ExprOp>()) {
      FailureOr<TensorExpr> expr = describe(root);
      allowed &= succeeded(expr);
      if (!allowed)
        return;
      indices[root] = exprs.size();
      exprs.push_back(*expr);
    }
    yields = cast<YieldOp>(subprogram.getBody().front().getTerminator());
    vector = subprogram.getVector();
  }

  /// Returns true if `root`, in the nest of `maximum`, may read the maximum accumulated so far.
  bool mayUse(ExprOp root, ExprOp maximum) {
    if (!allowed || !isRunnable(maximum))
      return false;
    auto [known, isNew] = relations.try_emplace(maximum);
    if (isNew)
      known->second = relateTo(exprs, indices.lookup(maximum), [&](unsigned expr, unsigned input) -> int64_t {
        auto producer = lookThroughConnects(exprs[expr].inputs[input].tensor).getDefiningOp<ExprOp>();
        return producer ? static_cast<int64_t>(indices.lookup(producer)) : -1;
      });
    Relation relation = known->second[indices.lookup(root)];
    return relation == Relation::sum ||
           (relation == Relation::proportional && !llvm::is_contained(yields.getValues(), root.getResult(0)));
  }

  llvm::DenseMap<Operation *, ExprOp> references; ///< for each root that is relative to a maximum: that maximum

private:
  bool isRunnable(ExprOp maximum) {
    const TensorExpr &expr = exprs[indices.lookup(maximum)];
    return isRowMaximum(expr, least) && placeOf(maximum)[expr.reductions.front()] == vector;
  }

  bool allowed;
  int64_t least, vector;
  YieldOp yields;
  SmallVector<TensorExpr, 0> exprs;
  llvm::DenseMap<Operation *, unsigned> indices;
  llvm::DenseMap<Operation *, SmallVector<Relation>> relations;
};

class Decider {
public:
  Decider(SubprogramOp subprogram, int64_t onlineRow) : subprogram(subprogram), maxima(subprogram, onlineRow) {}

  Movement decide() {
    decideWalk();
    for (auto root : subprogram.getBody().getOps<ExprOp>())
      place(root);
    orderByPhase();
    collectBuffered();
    stageInputs();
    return std::move(movement);
  }

private:
  static SmallVector<int64_t> sortedDims(ExprOp root) {
    SmallVector<int64_t> dims(llvm::make_filter_range(placeOf(root), [](int64_t dim) { return dim >= 0; }));
    llvm::sort(dims);
    return dims;
  }

  void decideWalk() {
    movement.walked = walkedDim(subprogram.getExtents(), subprogram.getTiles(), subprogram.getGrid());
    if (movement.walked < 0)
      return;
    Walk walk = walkAlong(subprogram, movement.walked);
    assert(walk.refused.empty() && "tile-verify-planned refuses it");
    SmallVector<ExprOp> roots(subprogram.getBody().getOps<ExprOp>());
    for (auto [root, phase] : llvm::zip(roots, walk.phases))
      phases[root] = phase;
    for (unsigned root : walk.grown)
      movement.grown.push_back(roots[root]);
    for (unsigned root : walk.rescaled)
      movement.rescaled.push_back(roots[root]);
    if (walk.maximum >= 0)
      movement.maximum = roots[walk.maximum];
  }

  void orderByPhase() {
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, movement.nests.size()));
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return movement.nests[a].phase < movement.nests[b].phase; });
    SmallVector<Nest> nests;
    for (unsigned n : order)
      nests.push_back(movement.nests[n]);
    movement.nests = std::move(nests);
    for (auto [n, nest] : llvm::enumerate(movement.nests))
      for (ExprOp root : nest.roots)
        movement.nestOf[root] = n;
  }

  static bool contracts(ExprOp root) { return root.getMicroKernel().has_value(); }

  /// Adds the root to the first nest that has the same dims and runs after everything that the root reads, else to a
  /// new last nest.
  void place(ExprOp root) {
    SmallVector<int64_t> dims = sortedDims(root), reductions;
    for (int64_t dim : root.getReductions())
      if (placeOf(root)[dim] >= 0)
        reductions.push_back(placeOf(root)[dim]);
    llvm::sort(reductions);
    unsigned earliest = 0;
    ExprOp reference;
    for (unsigned i = 0; i < root.getInputs().size(); ++i)
      if (auto producer = lookThroughConnects(root.getInputs()[i]).getDefiningOp<ExprOp>()) {
        unsigned result = cast<OpResult>(lookThroughConnects(root.getInputs()[i])).getResultNumber();
        bool shared = dims == sortedDims(producer) &&
                      (readsSamePoint(root, i, producer, result) ? sharesReference(root, producer, reference)
                                                                 : takesReference(root, i, producer, reference));
        earliest = std::max(earliest, movement.nestOf.lookup(producer) + (shared ? 0 : 1));
      }
    for (unsigned n = earliest; n < movement.nests.size(); ++n) {
      Nest &nest = movement.nests[n];
      // A contraction has its nest to itself, because its loops are those of its register block.
      if (contracts(root) || contracts(nest.roots.front()) || nest.dims != dims || nest.phase != phases.lookup(root) ||
          (!reductions.empty() && !nest.reductions.empty() && nest.reductions != reductions))
        continue;
      add(nest, n, root, reductions);
      if (reference && movement.nestOf.lookup(reference) == n) {
        nest.running = reference;
        maxima.references[root] = reference;
      }
      return;
    }
    movement.nests.push_back({dims, {}, {}, {}, phases.lookup(root)});
    add(movement.nests.back(), movement.nests.size() - 1, root, reductions);
  }

  /// Returns true if the producer is relative to a maximum that the root may use as well: the value is then handed over
  /// in a register.
  bool sharesReference(ExprOp root, ExprOp producer, ExprOp &reference) {
    ExprOp own = maxima.references.lookup(producer);
    if (own && maxima.mayUse(root, own))
      reference = own;
    return !own || reference == own;
  }

  /// Returns true if the root may read the producer's maximum while it is being accumulated.
  bool takesReference(ExprOp root, unsigned input, ExprOp producer, ExprOp &reference) {
    ExprOp running = movement.nests[movement.nestOf.lookup(producer)].running;
    if ((running && running != producer) || !maxima.mayUse(root, producer) || !readsOwnPlace(root, input, producer, 0))
      return false;
    reference = producer;
    return true;
  }

  void add(Nest &nest, unsigned n, ExprOp root, ArrayRef<int64_t> reductions) {
    nest.roots.push_back(root);
    if (!reductions.empty())
      nest.reductions.assign(reductions.begin(), reductions.end());
    movement.nestOf[root] = n;
  }

  void collectBuffered() {
    for (auto [n, nest] : llvm::enumerate(movement.nests))
      for (ExprOp root : nest.roots)
        for (Value input : root.getInputs()) {
          Value tensor = lookThroughConnects(input);
          auto producer = tensor.getDefiningOp<ExprOp>();
          if (producer && movement.nestOf.lookup(producer) != n)
            buffer(tensor, producer);
        }
    // A maximum that only its own nest reads, from a register, still needs a buffer to be accumulated in.
    auto yield = cast<YieldOp>(subprogram.getBody().front().getTerminator());
    for (Nest &nest : movement.nests)
      if (nest.running && !llvm::is_contained(yield.getValues(), nest.running.getResult(0)))
        movement.buffered.insert(nest.running.getResult(0));
    // Accumulators that grow along the walk have a buffer. It takes no memory where threads keep them in registers
    // (GrowingAccumulators).
    for (ExprOp root : movement.grown)
      if (subprogram->hasAttr(kThreadsAttr) && root.getMicroKernel())
        movement.buffered.insert(root.getResult(0));
  }

  /// Buffers a result. A value that is stored relative to a maximum so far is corrected once the maximum is final, so
  /// that maximum is buffered, too.
  void buffer(Value tensor, ExprOp producer) {
    movement.buffered.insert(tensor);
    ExprOp maximum = maxima.references.lookup(producer);
    if (!maximum || producer.isReduction())
      return;
    movement.buffered.insert(maximum.getResult(0));
    movement.relative[tensor] = maximum.getResult(0);
  }

  bool repeatsInTile(AffineMap map, const Nest &nest) {
    return isReadAgain(map,
                       llvm::filter_to_vector(nest.dims, [&](int64_t dim) { return subprogram.getTiles()[dim] > 1; }));
  }

  /// Copies inputs as the plan says (tile.staged): those of a workgroup whole, and of those of a tile what is read
  /// several times, by the first nest that reads it.
  void stageInputs() {
    auto staged = subprogram->getAttrOfType<ArrayAttr>(kStagedAttr);
    if (!staged)
      return;
    struct Read {
      SpaceAccess access;
      unsigned nest;
      bool isAgain;
    };
    SmallVector<Read> reads; // of copies for a tile
    for (auto [n, nest] : llvm::enumerate(movement.nests))
      for (ExprOp root : nest.roots)
        for (unsigned i = 0; i < root.getInputs().size(); ++i) {
          SpaceAccess access = accessInSpace(root, i);
          auto input = dyn_cast<BlockArgument>(access.tensor);
          // Register blocks read inputs in place, because the cache holds them. A nest whose results are kept for later
          // tiles runs before those tiles.
          if (!input || root.isTable(i) || contracts(root) || keptAlong(subprogram, nest) > 0)
            continue;
          Lifetime lifetime = cast<LifetimeAttr>(staged[input.getArgNumber()]).getValue();
          if (lifetime == Lifetime::workgroup)
            movement.workgroupStaged.insert(access.tensor);
          if (lifetime != Lifetime::tile)
            continue;
          auto known = llvm::find_if(reads, [&](const Read &read) { return read.access == access; });
          if (known == reads.end())
            reads.push_back({access, static_cast<unsigned>(n), repeatsInTile(access.map, nest)});
          else
            known->isAgain |= known->nest != n;
        }
    for (const Read &read : reads) {
      auto shape = cast<RankedTensorType>(read.access.tensor.getType()).getShape();
      if (!read.isAgain || read.access.guard != IntegerSet() ||
          !isKeptByPoints(read.access.map, subprogram.getExtents(), shape))
        continue;
      bool inNest = coversNest(read.access, movement.nests[read.nest]);
      movement.tileStaged.push_back({read.access, inNest ? read.nest : beforeAccumulators(read.nest), inNest});
    }
  }

  /// Returns the nest before which a copy for `nest` is made. On a GPU no copy may stand between a contraction and the
  /// nest that reads its accumulators, since they stay in registers only if that nest follows at once.
  unsigned beforeAccumulators(unsigned nest) const {
    if (nest == 0 || !subprogram->hasAttr(kThreadsAttr))
      return nest;
    const Nest &before = movement.nests[nest - 1];
    bool isSummed = contracts(before.roots.front()) && keptAlong(subprogram, before) == 0;
    return isSummed && before.phase == movement.nests[nest].phase ? nest - 1 : nest;
  }

  /// Returns true if the nest visits each element of the slice exactly once.
  bool coversNest(const SpaceAccess &access, const Nest &nest) {
    return llvm::all_of(
        nest.dims, [&](int64_t dim) { return subprogram.getExtents()[dim] == 1 || access.map.isFunctionOfDim(dim); });
  }

  SubprogramOp subprogram;
  OnlineMaxima maxima;
  llvm::DenseMap<Operation *, WalkPhase> phases; ///< phase of each root, if the tile walks a dim
  Movement movement;
};
} // namespace

Movement tilewright::decideMovement(SubprogramOp subprogram, int64_t onlineRow) {
  return Decider(subprogram, onlineRow).decide();
}

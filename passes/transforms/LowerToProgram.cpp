// Level 2 to level 3: each subprogram becomes a tile program with explicit movement. The decision (loop nests, staging)
// is Movement; this file carries it out: block edges become buffers, roots become the bodies of loop nests, loads and
// stores go to bindings or buffers. Adjacent subprograms of one name are parts packed into one program.
#include "passes/Passes.h"
#include "passes/analysis/Contraction.h"
#include "passes/analysis/CountedPoints.h"
#include "passes/analysis/Rounding.h"
#include "passes/analysis/RunningMaximum.h"
#include "passes/target/TargetOrError.h"
#include "passes/transforms/Movement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tilewright {
#define GEN_PASS_DEF_LOWERTOPROGRAM
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// One subprogram
//===----------------------------------------------------------------------===//

namespace {
/// What one loop nest accumulates while its body is built.
struct Accumulators {
  SmallVector<Value> slices, yields;
  SmallVector<AffineMap> maps;
  SmallVector<Attribute> inits;
  SmallVector<std::string> kinds;
  std::optional<unsigned> running; ///< the one that is used while it is accumulated
};

class PartBuilder {
public:
  PartBuilder(SubprogramOp subprogram, ValueRange bindings, int64_t workgroupStaging, int64_t referenceBlock)
      : subprogram(subprogram), bindings(bindings), referenceBlock(referenceBlock),
        movement(decideMovement(subprogram, workgroupStaging, referenceBlock)), extents(subprogram.getExtents()),
        tiles(subprogram.getTiles()) {}

  void build(OpBuilder &builder) {
    Location loc = subprogram.getLoc();
    SmallVector<int64_t> gridExtents, gridTiles;
    for (int64_t dim : subprogram.getGrid()) {
      gridExtents.push_back(extents[dim]);
      gridTiles.push_back(tiles[dim]);
    }
    auto parallel = ParallelOp::create(builder, loc, gridExtents, gridTiles, subprogram.getWorkgroups());
    for (StringRef attr : {kThreadsAttr, kGroupAttr})
      if (Attribute value = subprogram->getAttr(attr))
        parallel->setAttr(attr, value);
    Block &workgroup = parallel.getBody().emplaceBlock();
    OpBuilder workgroupBuilder = OpBuilder::atBlockEnd(&workgroup);
    for (Value input : movement.workgroupStaged)
      stageForWorkgroup(workgroupBuilder, input);

    auto walk = WalkOp::create(workgroupBuilder, loc);
    Block &body = walk.getBody().emplaceBlock();
    for (size_t i = 0; i < gridExtents.size(); ++i)
      body.addArgument(builder.getIndexType(), loc);
    offsets.assign(body.args_begin(), body.args_end());

    OpBuilder bodyBuilder = OpBuilder::atBlockEnd(&body), before(walk);
    for (Value tensor : movement.buffered)
      buffers[tensor] = allocateTile(keptAlong(nestOf(tensor)) > 0 ? before : bodyBuilder, tensor);
    for (Value maximum : llvm::make_second_range(movement.relative))
      if (!references.contains(maximum))
        references[maximum] = allocateReferences(bodyBuilder, maximum);
    for (const TileStaging &staging : movement.tileStaged)
      stagingBuffers.push_back(allocateSlice(bodyBuilder, staging.access));
    buildNests(bodyBuilder, WalkPhase::before);
    if (movement.walked >= 0)
      buildWalk(bodyBuilder);
    buildNests(bodyBuilder, WalkPhase::after);
    copyOutBufferedReductions(bodyBuilder);
  }

private:
  MLIRContext *context() { return subprogram.getContext(); }

  void buildNests(OpBuilder &builder, WalkPhase phase) {
    for (unsigned n = 0; n < movement.nests.size(); ++n) {
      const Nest &nest = movement.nests[n];
      if (nest.phase != phase)
        continue;
      bool copies = false;
      for (auto [i, staging] : llvm::enumerate(movement.tileStaged))
        if (staging.nest == n && !staging.inNest) {
          buildCopyIn(builder, staging.access, stagingBuffers[i]);
          copies = true;
        }
      if (n != 0 || copies)
        SyncOp::create(builder, subprogram.getLoc(), Scope::block);
      buildNest(builder, n);
      if (ExprOp running = nest.running; running && references.contains(running.getResult(0)))
        buildFactors(builder, running);
      for (ExprOp root : nest.roots)
        if (root == movement.maximum)
          joinMaximum(builder);
        else if (llvm::is_contained(movement.grown, root))
          joinBlock(builder, root, /*last=*/false);
    }
  }

  /// Whether a tile begins elsewhere than at zero of a dim.
  bool hasOffset(int64_t dim) { return dim == movement.walked || llvm::is_contained(subprogram.getGrid(), dim); }
  AffineExpr offsetOf(int64_t dim) {
    AffineExpr expr = getAffineDimExpr(dim, context());
    return hasOffset(dim) ? expr - getAffineSymbolExpr(dim, context()) : expr;
  }

  /// Where in the space the domain dim stands that a result index is, or -1.
  static int64_t placeOfIndex(ExprOp root, AffineExpr index) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    return dim ? placeOf(root)[dim.getPosition()] : -1;
  }

  // --- buffers -----------------------------------------------------------------------------------------------------

  Value bindingOf(Value argument) { return bindings[cast<BlockArgument>(argument).getArgNumber()]; }
  Value outputBinding(unsigned result) { return bindings[subprogram.getInputs().size() + result]; }

  void stageForWorkgroup(OpBuilder &builder, Value input) {
    auto type = cast<RankedTensorType>(input.getType());
    Value buffer =
        AllocOp::create(builder, subprogram.getLoc(),
                        SliceType::get(context(), type.getShape(), type.getElementType(), Space::block), IntegerAttr());
    MoveOp::create(builder, subprogram.getLoc(), bindingOf(input), buffer);
    workgroupBuffers[input] = buffer;
  }

  /// A buffer for the tile of a root result: its dims have the tile sizes of the space.
  Value allocateTile(OpBuilder &builder, Value tensor) {
    auto root = tensor.getDefiningOp<ExprOp>();
    AffineMap written = root.getResultMap(cast<OpResult>(tensor).getResultNumber());
    SmallVector<int64_t> shape;
    for (AffineExpr expr : written.getResults()) {
      int64_t place = placeOfIndex(root, expr);
      shape.push_back(place < 0 ? 1 : tiles[place]);
    }
    Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
    bool meetsContraction = feedsContraction(tensor) || (!root.isReduction() && followsContraction(root));
    if (subprogram->hasAttr(kThreadsAttr) && meetsContraction && !shape.empty())
      shape.back() = paddedLine(shape.back(), elementBytes(element));
    return AllocOp::create(builder, root.getLoc(), SliceType::get(context(), shape, element, Space::block),
                           IntegerAttr());
  }

  static bool feedsContraction(Value tensor) {
    return llvm::any_of(tensor.getUsers(), [](Operation *user) {
      if (auto connect = dyn_cast<ConnectOp>(user))
        return feedsContraction(connect.getResult());
      auto root = dyn_cast<ExprOp>(user);
      return root && root.getMicroKernel();
    });
  }

  static bool followsContraction(ExprOp root) {
    return llvm::any_of(root.getInputs(), [](Value input) {
      while (auto connect = input.getDefiningOp<ConnectOp>())
        input = connect.getValue();
      auto producer = input.getDefiningOp<ExprOp>();
      return producer && producer.getMicroKernel();
    });
  }

  /// A buffer for a staged slice of an input, one dim per dim of the space that the access uses.
  Value allocateSlice(OpBuilder &builder, const SpaceAccess &access) {
    SmallVector<int64_t> shape;
    for (AffineExpr expr : access.map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        shape.push_back(tiles[dim.getPosition()]);
    Type element = cast<RankedTensorType>(access.tensor.getType()).getElementType();
    return AllocOp::create(builder, subprogram.getLoc(), SliceType::get(context(), shape, element, Space::block),
                           IntegerAttr());
  }

  /// Maps over the whole space to maps over the dims of a nest (with a symbol per dim for its offset).
  AffineMap toNest(ArrayRef<AffineExpr> exprs, const Nest &nest) {
    SmallVector<AffineExpr> dims(extents.size(), getAffineConstantExpr(0, context())), symbols(dims);
    for (auto [position, dim] : llvm::enumerate(nest.dims)) {
      dims[dim] = getAffineDimExpr(position, context());
      symbols[dim] = getAffineSymbolExpr(position, context());
    }
    return AffineMap::get(extents.size(), extents.size(), exprs, context())
        .replaceDimsAndSymbols(dims, symbols, nest.dims.size(), nest.dims.size());
  }

  IntegerSet toNest(IntegerSet set, const Nest &nest) {
    SmallVector<AffineExpr> dims(extents.size(), getAffineConstantExpr(0, context()));
    for (auto [position, dim] : llvm::enumerate(nest.dims))
      dims[dim] = getAffineDimExpr(position, context());
    return set.replaceDimsAndSymbols(dims, {}, nest.dims.size(), nest.dims.size());
  }

  AffineMap stagedIndex(const SpaceAccess &access, const Nest &nest) {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : access.map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        exprs.push_back(offsetOf(dim.getPosition()));
    return toNest(exprs, nest);
  }

  /// A tile buffer holds the elements of the tile alone: its index is the tensor's less the tile's offsets.
  AffineMap bufferIndex(Value tensor, AffineMap map, const Nest &nest) {
    auto root = tensor.getDefiningOp<ExprOp>();
    AffineMap written = root.getResultMap(cast<OpResult>(tensor).getResultNumber());
    SmallVector<AffineExpr> exprs;
    for (auto [index, expr] : llvm::zip(map.getResults(), written.getResults())) {
      int64_t place = placeOfIndex(root, expr);
      exprs.push_back(place >= 0 && hasOffset(place) ? index - getAffineSymbolExpr(place, context()) : index);
    }
    return toNest(exprs, nest);
  }

  // --- what is relative to references of a running maximum -----------------------------------------------------------

  int64_t reducedTile() { return tiles[subprogram.getVector()]; }

  /// One number for each element of the maximum's tile and each block of what it reduces.
  Value allocateReferences(OpBuilder &builder, Value maximum) {
    auto root = maximum.getDefiningOp<ExprOp>();
    SmallVector<int64_t> shape;
    for (AffineExpr expr : root.getResultMap(0).getResults()) {
      int64_t place = placeOfIndex(root, expr);
      shape.push_back(place < 0 ? 1 : tiles[place]);
    }
    shape.push_back(llvm::divideCeil(reducedTile(), referenceBlock));
    return AllocOp::create(builder, root.getLoc(), SliceType::get(context(), shape, builder.getF32Type(), Space::block),
                           IntegerAttr());
  }

  /// The nest of the maximum leaves the reference of each block where its factor will be.
  void storeReference(OpBuilder &builder, ExprOp root, Value reference, const Nest &nest) {
    Value slice = references.lookup(root.getResult(0));
    if (!slice)
      return;
    SmallVector<AffineExpr> index = resultIndex(root, 0, /*inBuffer=*/true);
    index.push_back(getAffineDimExpr(subprogram.getVector(), context()).floorDiv(referenceBlock));
    StoreOp::create(builder, root.getLoc(), reference, slice, toNest(index, nest));
  }

  /// Makes factors of the references r: exp(r - maximum), and one where they are equal, infinities too.
  void buildFactors(OpBuilder &builder, ExprOp root) {
    Location loc = root.getLoc();
    Value slice = references.lookup(root.getResult(0)), maximum = buffers.lookup(root.getResult(0));
    Nest rows;
    for (AffineExpr expr : root.getResultMap(0).getResults())
      if (int64_t place = placeOfIndex(root, expr); place >= 0)
        rows.dims.push_back(place);
    llvm::sort(rows.dims);
    unsigned rank = rows.dims.size();
    AffineMap row = toNest(resultIndex(root, 0, /*inBuffer=*/true), rows);
    SmallVector<AffineExpr> each(row.getResults());
    each.push_back(getAffineDimExpr(rank, context()));
    auto rowMap = AffineMap::get(rank + 1, rank + 1, row.getResults(), context());
    auto eachMap = AffineMap::get(rank + 1, rank + 1, each, context());

    SyncOp::create(builder, loc, Scope::block);
    auto makeFactor = [&](OpBuilder &body) {
      Type type = body.getF32Type();
      Value reference = LoadOp::create(body, loc, type, slice, eachMap, IntegerSetAttr());
      Value final = LoadOp::create(body, loc, type, maximum, rowMap, IntegerSetAttr());
      Value difference = arith::SubFOp::create(body, loc, reference, final);
      Value factor = math::ExpOp::create(body, loc, difference);
      Value same = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ, reference, final);
      Value one = arith::ConstantOp::create(body, loc, body.getF32FloatAttr(1));
      StoreOp::create(body, loc, arith::SelectOp::create(body, loc, same, one, factor), slice, eachMap);
    };
    buildElementwise(builder, rows, makeFactor, llvm::divideCeil(reducedTile(), referenceBlock));
  }

  /// An element that was stored relative to a reference, relative to the maximum.
  Value corrected(OpBuilder &builder, Value value, const SpaceAccess &access, const Nest &nest) {
    Value maximum = movement.relative.lookup(access.tensor);
    auto root = maximum.getDefiningOp<ExprOp>(), stored = access.tensor.getDefiningOp<ExprOp>();
    auto indexAt = [&](int64_t place) {
      for (auto [written, read] : llvm::zip(stored.getResultMap(0).getResults(), access.map.getResults()))
        if (placeOfIndex(stored, written) == place)
          return llvm::is_contained(subprogram.getGrid(), place) ? read - getAffineSymbolExpr(place, context()) : read;
      return getAffineConstantExpr(0, context());
    };
    SmallVector<AffineExpr> index;
    for (AffineExpr expr : root.getResultMap(0).getResults())
      index.push_back(indexAt(placeOfIndex(root, expr)));
    index.push_back(indexAt(subprogram.getVector()).floorDiv(referenceBlock));
    Location loc = stored.getLoc();
    Value factor = LoadOp::create(builder, loc, builder.getF32Type(), references.lookup(maximum), toNest(index, nest),
                                  IntegerSetAttr());
    // The factor may join another one that all points of a block share.
    return arith::MulFOp::create(builder, loc, value, factor, arith::FastMathFlags::reassoc);
  }

  // --- blocks of a reduced dim -------------------------------------------------------------------------------------

  /// What is reduced along the walked dim starts before its blocks, and each block is joined to those before it.
  void buildWalk(OpBuilder &builder) {
    Location loc = subprogram.getLoc();
    for (ExprOp root : movement.grown)
      walk.block[root] = allocateTile(builder, root.getResult(0));
    if (ExprOp maximum = movement.maximum) {
      walk.reference = allocateTile(builder, maximum.getResult(0));
      walk.factor = allocateTile(builder, maximum.getResult(0));
    }
    for (ExprOp root : movement.grown)
      buildElementwise(builder, rowsOf(root), [&](OpBuilder &body) {
        Value start = arith::ConstantOp::create(body, loc, cast<TypedAttr>(root.getInits()[0]));
        StoreOp::create(body, loc, start, grownSlice(root), grownIndex(root, rowsOf(root)));
      });
    SyncOp::create(builder, loc, Scope::block);
    auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value).getResult(); };
    Value end = constant(extents[movement.walked]);
    if (auto counted = subprogram->getAttrOfType<AffineMapAttr>(kCountedAttr))
      end = arith::MinSIOp::create(builder, loc, endInTile(builder, counted.getValue().getResult(0)), end);
    auto loop = scf::ForOp::create(builder, loc, constant(0), end, constant(tiles[movement.walked]));
    OpBuilder block = OpBuilder::atBlockTerminator(loop.getBody());
    walkOffset = loop.getInductionVar();
    buildNests(block, WalkPhase::inside);
    walkOffset = Value();
    if (movement.rescaled.empty())
      return;
    markEmptyRows(builder);
    for (ExprOp root : movement.rescaled)
      joinBlock(builder, root, /*last=*/true);
  }

  /// The largest value of a linear expression over a tile, where tiles at the border count as whole ones.
  Value endInTile(OpBuilder &builder, AffineExpr linear) {
    Location loc = subprogram.getLoc();
    ArrayRef<int64_t> grid = subprogram.getGrid();
    SmallVector<int64_t> low(extents.size()), high;
    for (auto [dim, tile] : llvm::enumerate(tiles))
      high.push_back((llvm::is_contained(grid, dim) ? tile : extents[dim]) - 1);
    Value end = arith::ConstantIndexOp::create(builder, loc, largestOver(linear, low, high));
    for (auto [offset, dim] : llvm::zip(offsets, grid))
      if (int64_t slope = slopeAlong(linear, dim, extents.size())) {
        Value scale = arith::ConstantIndexOp::create(builder, loc, slope);
        end = arith::AddIOp::create(builder, loc, end, arith::MulIOp::create(builder, loc, offset, scale));
      }
    return end;
  }

  /// A nest over the elements that a root leaves.
  Nest rowsOf(ExprOp root) {
    Nest rows;
    for (AffineExpr expr : root.getResultMap(0).getResults())
      if (int64_t place = placeOfIndex(root, expr); place >= 0)
        rows.dims.push_back(place);
    llvm::sort(rows.dims);
    return rows;
  }

  Value grownSlice(ExprOp root) {
    Value tensor = root.getResult(0), buffer = buffers.lookup(tensor);
    return buffer ? buffer : outputBinding(escapingAs(tensor).front());
  }
  AffineMap grownIndex(ExprOp root, const Nest &nest) {
    return toNest(resultIndex(root, 0, buffers.contains(root.getResult(0))), nest);
  }
  AffineMap blockIndex(ExprOp root, const Nest &nest) { return toNest(resultIndex(root, 0, /*inBuffer=*/true), nest); }

  Value loadAt(OpBuilder &body, Value slice, AffineMap at) {
    return LoadOp::create(body, subprogram.getLoc(), cast<SliceType>(slice.getType()).getElementType(), slice, at,
                          IntegerSetAttr());
  }

  /// The sum so far, made relative to what the maximum is now, and that of the block; at last, the sum alone.
  void joinBlock(OpBuilder &builder, ExprOp root, bool last) {
    Location loc = subprogram.getLoc();
    Nest own = rowsOf(root);
    SyncOp::create(builder, loc, Scope::block);
    buildElementwise(builder, own, [&](OpBuilder &body) {
      Value sum = loadAt(body, grownSlice(root), grownIndex(root, own));
      if (llvm::is_contained(movement.rescaled, root))
        sum = arith::MulFOp::create(body, loc, sum, loadAt(body, walk.factor, blockIndex(movement.maximum, own)));
      if (!last)
        sum = arith::AddFOp::create(body, loc, sum, loadAt(body, walk.block[root], blockIndex(root, own)));
      StoreOp::create(body, loc, sum, grownSlice(root), grownIndex(root, own));
    });
  }

  /// The maximum m of all blocks so far, and the factor exp(old - m) for what was summed relative to the old one: one
  /// where they are equal, infinities too. Rows of which nothing counts yet are relative to zero, so that their
  /// exponentials are zero.
  void joinMaximum(OpBuilder &builder) {
    Location loc = subprogram.getLoc();
    ExprOp root = movement.maximum;
    Nest rows = rowsOf(root);
    SyncOp::create(builder, loc, Scope::block);
    buildElementwise(builder, rows, [&](OpBuilder &body) {
      Value old = loadAt(body, grownSlice(root), grownIndex(root, rows));
      Value now = arith::MaximumFOp::create(body, loc, old, loadAt(body, walk.block[root], blockIndex(root, rows)));
      Value factor = math::ExpOp::create(body, loc, arith::SubFOp::create(body, loc, old, now));
      StoreOp::create(body, loc, now, grownSlice(root), grownIndex(root, rows));
      StoreOp::create(body, loc, selectIfEqual(body, old, now, 1, factor), walk.factor, blockIndex(root, rows));
      StoreOp::create(body, loc, selectIfEqual(body, now, -std::numeric_limits<float>::infinity(), 0, now),
                      walk.reference, blockIndex(root, rows));
    });
  }

  /// Of rows in which nothing counted the graph's exponentials are exp(-inf + inf).
  void markEmptyRows(OpBuilder &builder) {
    ExprOp root = movement.maximum;
    Nest rows = rowsOf(root);
    SyncOp::create(builder, subprogram.getLoc(), Scope::block);
    buildElementwise(builder, rows, [&](OpBuilder &body) {
      Value maximum = loadAt(body, grownSlice(root), grownIndex(root, rows));
      Value factor = selectIfEqual(body, maximum, -std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN(), number(body, 1));
      StoreOp::create(body, subprogram.getLoc(), factor, walk.factor, blockIndex(root, rows));
    });
  }

  Value number(OpBuilder &body, float value) {
    return arith::ConstantOp::create(body, subprogram.getLoc(), body.getF32FloatAttr(value));
  }
  Value selectIfEqual(OpBuilder &body, Value a, Value b, float then, Value otherwise) {
    Value same = arith::CmpFOp::create(body, subprogram.getLoc(), arith::CmpFPredicate::OEQ, a, b);
    return arith::SelectOp::create(body, subprogram.getLoc(), same, number(body, then), otherwise);
  }
  Value selectIfEqual(OpBuilder &body, Value a, float b, float then, Value otherwise) {
    return selectIfEqual(body, a, number(body, b), then, otherwise);
  }

  // --- nests -------------------------------------------------------------------------------------------------------

  /// Where in the space the dim stands along which the register block of a contraction has its lanes.
  static std::optional<int64_t> laneOfContraction(ExprOp root) {
    FailureOr<TensorExpr> expr = describe(root);
    if (!root.getMicroKernel() || failed(expr) || expr->inputs.size() != 2)
      return std::nullopt;
    std::optional<ContractionRoles> roles = contractionRoles(*expr, expr->inputs[0].map, expr->inputs[1].map);
    return roles && placeOf(root)[roles->lane] >= 0 ? std::optional(placeOf(root)[roles->lane]) : std::nullopt;
  }

  static bool bindsInput(Value tensor) { return isa<BlockArgument>(tensor); }

  static StringAttr microKernelOf(const Nest &nest) {
    return nest.roots.empty() ? StringAttr() : ExprOp(nest.roots.front()).getMicroKernelAttr();
  }

  ComputeOp createCompute(OpBuilder &builder, Location loc, const Nest &nest, Accumulators &accs, Block *body,
                          int64_t blocks = 0) {
    SmallVector<int64_t> nestExtents, sizes, offsetDims, reductions;
    SmallVector<Value> nestOffsets;
    int64_t vector = -1;
    for (auto [position, dim] : llvm::enumerate(nest.dims)) {
      nestExtents.push_back(extents[dim]);
      sizes.push_back(tiles[dim]);
      auto grid = llvm::find(subprogram.getGrid(), dim);
      if (grid != subprogram.getGrid().end()) {
        offsetDims.push_back(position);
        nestOffsets.push_back(offsets[grid - subprogram.getGrid().begin()]);
      } else if (dim == movement.walked) {
        offsetDims.push_back(position);
        nestOffsets.push_back(walkOffset);
      }
      if (llvm::is_contained(nest.reductions, dim))
        reductions.push_back(position);
      if (dim == static_cast<int64_t>(subprogram.getVector()))
        vector = position;
    }
    if (!nest.roots.empty())
      if (std::optional<int64_t> lane = laneOfContraction(nest.roots.front()))
        vector = llvm::find(nest.dims, *lane) - nest.dims.begin();
    if (blocks > 0) {
      vector = nestExtents.size();
      nestExtents.push_back(blocks);
      sizes.push_back(blocks);
    }
    // A nest without the vector dim of the space fills lanes with its own innermost dim.
    for (int64_t position = nest.dims.size() - 1; vector < 0 && position >= 0; --position)
      if (sizes[position] > 1)
        vector = position;
    SmallVector<StringRef> kinds(accs.kinds.begin(), accs.kinds.end());
    auto compute = ComputeOp::create(builder, loc, nestOffsets, accs.slices, nestExtents, sizes, offsetDims, reductions,
                                     vector, builder.getAffineMapArrayAttr(accs.maps), builder.getArrayAttr(accs.inits),
                                     builder.getStrArrayAttr(kinds), microKernelOf(nest), RunningAttr());
    compute.getBody().push_back(body);
    return compute;
  }

  void buildNest(OpBuilder &builder, unsigned n) {
    const Nest &nest = movement.nests[n];
    auto *body = new Block();
    OpBuilder bodyBuilder(context());
    bodyBuilder.setInsertionPointToEnd(body);
    Accumulators accs;
    loads.clear();
    forwarded.clear();
    for (ExprOp root : nest.roots)
      cloneRoot(bodyBuilder, n, root, body, accs);
    YieldOp::create(bodyBuilder, subprogram.getLoc(), accs.yields);
    auto nestOp = [&](OpBuilder &where) {
      ComputeOp compute = createCompute(where, subprogram.getLoc(), nest, accs, body);
      if (accs.running)
        compute.setRunningAttr(RunningAttr::get(context(), *accs.running, referenceBlock));
    };
    int64_t along = keptAlong(nest);
    if (along == 0) {
      nestOp(builder);
      return;
    }
    auto keep = KeepOp::create(builder, subprogram.getLoc(), along);
    OpBuilder kept = OpBuilder::atBlockEnd(&keep.getBody().emplaceBlock());
    nestOp(kept);
  }

  int64_t keptAlong(const Nest &nest) { return tilewright::keptAlong(subprogram, nest); }
  const Nest &nestOf(Value tensor) { return movement.nests[movement.nestOf.lookup(tensor.getDefiningOp())]; }

  void buildCopyIn(OpBuilder &builder, const SpaceAccess &access, Value buffer) {
    Nest copy;
    for (AffineExpr expr : access.map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        copy.dims.push_back(dim.getPosition());
    llvm::sort(copy.dims);
    buildElementwise(builder, copy, [&](OpBuilder &body) {
      Location loc = subprogram.getLoc();
      Value binding = bindingOf(access.tensor);
      Value value = LoadOp::create(body, loc, cast<SliceType>(binding.getType()).getElementType(), binding,
                                   toNest(access.map.getResults(), copy), IntegerSetAttr());
      StoreOp::create(body, loc, value, buffer, stagedIndex(access, copy));
    });
  }

  /// A nest over the dims of `nest`, and inside them over `blocks` blocks, if there are any.
  void buildElementwise(OpBuilder &builder, const Nest &nest, function_ref<void(OpBuilder &)> fill,
                        int64_t blocks = 0) {
    auto *body = new Block();
    OpBuilder bodyBuilder(context());
    bodyBuilder.setInsertionPointToEnd(body);
    fill(bodyBuilder);
    YieldOp::create(bodyBuilder, subprogram.getLoc(), ValueRange());
    Accumulators none;
    createCompute(builder, subprogram.getLoc(), nest, none, body, blocks);
  }

  Value readInput(OpBuilder &builder, unsigned n, ExprOp root, unsigned input) {
    const Nest &nest = movement.nests[n];
    SpaceAccess access = accessInSpace(root, input);
    if (auto producer = access.tensor.getDefiningOp<ExprOp>())
      if (Value value = movement.nestOf.lookup(producer) == n ? forwarded.lookup(access.tensor) : Value())
        return value;
    for (auto &[known, value] : loads)
      if (known == access)
        return value;
    Value value = load(builder, n, access);
    loads.push_back({access, value});
    for (auto [i, staging] : llvm::enumerate(movement.tileStaged))
      if (staging.nest == n && staging.inNest && staging.access == access)
        StoreOp::create(builder, root.getLoc(), value, stagingBuffers[i], stagedIndex(access, nest));
    return value;
  }

  Value load(OpBuilder &builder, unsigned n, const SpaceAccess &access) {
    const Nest &nest = movement.nests[n];
    Value slice;
    AffineMap map;
    // A register block reads inputs where they lie: what another nest keeps of them may not be there yet.
    bool direct = (microKernelOf(nest) || keptAlong(nest) > 0) && bindsInput(access.tensor);
    if (Value buffer = direct ? Value() : workgroupBuffers.lookup(access.tensor)) {
      slice = buffer;
      map = toNest(access.map.getResults(), nest);
    } else if (Value buffer = buffers.lookup(access.tensor)) {
      bool grows =
          nest.phase == WalkPhase::inside && movement.maximum && access.tensor == movement.maximum.getResult(0);
      slice = grows ? walk.reference : buffer;
      map = bufferIndex(access.tensor, access.map, nest);
    } else {
      slice = bindingOf(access.tensor);
      map = toNest(access.map.getResults(), nest);
      for (auto [i, staging] : llvm::enumerate(movement.tileStaged))
        if (!direct && staging.access == access && (staging.nest != n || !staging.inNest)) {
          slice = stagingBuffers[i];
          map = stagedIndex(access, nest);
        }
    }
    IntegerSetAttr guard;
    if (access.guard != IntegerSet())
      guard = IntegerSetAttr::get(toNest(access.guard, nest));
    Value value = LoadOp::create(builder, subprogram.getLoc(), cast<SliceType>(slice.getType()).getElementType(), slice,
                                 map, guard);
    return movement.relative.contains(access.tensor) ? corrected(builder, value, access, nest) : value;
  }

  /// Copies the body of a root into the nest, with its dims placed in the nest.
  void cloneRoot(OpBuilder &builder, unsigned n, ExprOp root, Block *body, Accumulators &accs) {
    const Nest &nest = movement.nests[n];
    Block &source = root.getBodyBlock();
    auto yield = cast<YieldOp>(source.getTerminator());
    IRMapping mapping;
    unsigned numInputs = root.getInputs().size();
    for (unsigned i = 0; i < numInputs; ++i)
      mapping.map(source.getArgument(i), readInput(builder, n, root, i));

    SmallVector<std::optional<vector::CombiningKind>> kinds;
    if (root.isReduction())
      for (auto [i, yielded] : llvm::enumerate(yield.getValues())) {
        BlockArgument arg = source.getArgument(numInputs + i);
        kinds.push_back(combiningKind(arg, yielded));
        if (root.getInOrder() && isa<FloatType>(arg.getType()) && isSumOrProduct(kinds.back()))
          kinds.back() = std::nullopt;
        mapping.map(arg, body->addArgument(arg.getType(), arg.getLoc()));
      }
    SmallVector<AffineExpr> place, symbols;
    for (int64_t dim : placeOf(root))
      place.push_back(dim < 0 ? getAffineConstantExpr(0, context())
                              : getAffineDimExpr(llvm::find(nest.dims, dim) - nest.dims.begin(), context()));
    for (Operation &op : source.without_terminator())
      cloneBodyOp(builder, op, mapping, place, nest.dims.size());
    for (auto [i, yielded] : llvm::enumerate(yield.getValues())) {
      if (root.isReduction()) {
        addAccumulator(root, i, kinds[i], mapping.lookup(yielded), nest, accs);
        if (root == nest.running)
          storeReference(builder, root, mapping.lookup(yielded), nest);
      } else
        storeResult(builder, root, i, mapping.lookup(yielded), nest);
    }
  }

  static void cloneBodyOp(OpBuilder &builder, Operation &op, IRMapping &mapping, ArrayRef<AffineExpr> place,
                          unsigned rank) {
    if (auto index = dyn_cast<IndexOp>(op)) {
      Value value = IndexOp::create(builder, op.getLoc(), builder.getIndexType(),
                                    index.getMap().replaceDimsAndSymbols(place, {}, rank, 0));
      mapping.map(index.getResult(), value);
      return;
    }
    if (auto within = dyn_cast<WithinOp>(op)) {
      Value value = WithinOp::create(builder, op.getLoc(), builder.getI1Type(),
                                     within.getSet().replaceDimsAndSymbols(place, {}, rank, 0));
      mapping.map(within.getResult(), value);
      return;
    }
    builder.clone(op, mapping);
  }

  SmallVector<AffineExpr> resultIndex(ExprOp root, unsigned result, bool inBuffer) {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : root.getResultMap(result).getResults()) {
      int64_t place = placeOfIndex(root, expr);
      exprs.push_back(place < 0  ? getAffineConstantExpr(0, context())
                      : inBuffer ? offsetOf(place)
                                 : getAffineDimExpr(place, context()));
    }
    return exprs;
  }

  SmallVector<unsigned> escapingAs(Value tensor) {
    SmallVector<unsigned> outputs;
    auto yield = cast<YieldOp>(subprogram.getBody().front().getTerminator());
    for (auto [i, value] : llvm::enumerate(yield.getValues()))
      if (value == tensor)
        outputs.push_back(i);
    return outputs;
  }

  void storeResult(OpBuilder &builder, ExprOp root, unsigned i, Value value, const Nest &nest) {
    Value tensor = root.getResult(i);
    forwarded[tensor] = value;
    for (unsigned output : escapingAs(tensor)) {
      auto store = StoreOp::create(builder, root.getLoc(), value, outputBinding(output),
                                   toNest(resultIndex(root, i, /*inBuffer=*/false), nest));
      store.setStreamed(llvm::is_contained(subprogram.getStreamed().value_or(ArrayRef<int64_t>()), output));
    }
    if (Value buffer = buffers.lookup(tensor))
      StoreOp::create(builder, root.getLoc(), value, buffer, toNest(resultIndex(root, i, /*inBuffer=*/true), nest));
  }

  void addAccumulator(ExprOp root, unsigned i, std::optional<vector::CombiningKind> kind, Value yielded,
                      const Nest &nest, Accumulators &accs) {
    Value tensor = root.getResult(i);
    Value buffer = buffers.lookup(tensor);
    SmallVector<unsigned> outputs = escapingAs(tensor);
    assert((buffer || !outputs.empty()) && "a dead reduction was not removed");
    if (root == nest.running) {
      accs.running = accs.slices.size();
      forwarded[tensor] = yielded;
    }
    Value block = walk.block.lookup(root);
    accs.slices.push_back(block ? block : buffer ? buffer : outputBinding(outputs.front()));
    accs.maps.push_back(toNest(resultIndex(root, i, block || buffer), nest));
    accs.inits.push_back(root.getInits()[i]);
    accs.kinds.push_back(kind ? vector::stringifyCombiningKind(*kind).str() : "none");
    accs.yields.push_back(yielded);
    for (unsigned output : ArrayRef(outputs).drop_front(buffer ? 0 : 1))
      copyOut.push_back({tensor, output});
  }

  /// A reduction that later nests read and that also leaves the kernel is copied from its buffer at the end.
  void copyOutBufferedReductions(OpBuilder &builder) {
    for (const auto &entry : copyOut) {
      Value tensor = entry.first;
      unsigned output = entry.second;
      auto root = tensor.getDefiningOp<ExprOp>();
      unsigned i = cast<OpResult>(tensor).getResultNumber();
      Nest nest;
      for (AffineExpr expr : root.getResultMap(i).getResults())
        if (int64_t place = placeOfIndex(root, expr); place >= 0)
          nest.dims.push_back(place);
      llvm::sort(nest.dims);
      Value source = buffers.lookup(tensor) ? buffers.lookup(tensor) : outputBinding(escapingAs(tensor).front());
      bool inBuffer = static_cast<bool>(buffers.lookup(tensor));
      SyncOp::create(builder, subprogram.getLoc(), Scope::block);
      buildElementwise(builder, nest, [&](OpBuilder &body) {
        Value value = LoadOp::create(body, root.getLoc(), cast<SliceType>(source.getType()).getElementType(), source,
                                     toNest(resultIndex(root, i, inBuffer), nest), IntegerSetAttr());
        StoreOp::create(body, root.getLoc(), value, outputBinding(output),
                        toNest(resultIndex(root, i, /*inBuffer=*/false), nest));
      });
    }
  }

  SubprogramOp subprogram;
  ValueRange bindings;
  int64_t referenceBlock; ///< points of a row that share a reference
  Movement movement;
  ArrayRef<int64_t> extents, tiles;
  SmallVector<Value> offsets; ///< of the grid dims, as in the subprogram's `grid`
  Value walkOffset;           ///< of the block of the walked dim
  /// Where a dim is walked: what each reduction along it finds in a block, and for each element of the maximum what
  /// exponentials are relative to, and the factor for those of the blocks before.
  struct {
    DenseMap<Operation *, Value> block;
    Value reference, factor;
  } walk;
  DenseMap<Value, Value> buffers, workgroupBuffers;
  DenseMap<Value, Value> references; ///< by a running maximum: its references, then the factors of what is relative
  SmallVector<Value> stagingBuffers;
  SmallVector<std::pair<SpaceAccess, Value>> loads; ///< of the current nest
  DenseMap<Value, Value> forwarded;                 ///< root results in registers of the current nest
  SmallVector<std::pair<Value, unsigned>> copyOut;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct LowerToProgram : tilewright::impl::LowerToProgramBase<LowerToProgram> {
  using LowerToProgramBase::LowerToProgramBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    LowerToProgramBase::getDependentDialects(registry);
    registry.insert<scf::SCFDialect>();
  }

  /// The subprograms of one kernel: those of one name that stand next to each other.
  static SmallVector<SmallVector<SubprogramOp>> collectKernels(ModuleOp module) {
    SmallVector<SmallVector<SubprogramOp>> kernels;
    module.walk([&](SubprogramOp op) {
      auto previous = dyn_cast_or_null<SubprogramOp>(op->getPrevNode());
      if (previous && previous.getSymName() == op.getSymName())
        kernels.back().push_back(op);
      else
        kernels.push_back({op});
    });
    return kernels;
  }

  static ModuleOp kernelModule(ModuleOp module) {
    for (auto nested : module.getOps<ModuleOp>())
      if (nested.getSymName() == kKernelModule)
        return nested;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    return ModuleOp::create(builder, module.getLoc(), kKernelModule);
  }

  /// Repeated layers give equal programs: the first serves them all. Returns the name to launch.
  StringRef shareEqual(ProgramOp program) {
    std::string name = program.getSymName().str(), text;
    program.setSymName("");
    llvm::raw_string_ostream stream(text);
    program->print(stream, OpPrintingFlags().useLocalScope());
    program.setSymName(name);
    auto [known, isNew] = programsByText.try_emplace(text, program.getSymNameAttr());
    if (!isNew)
      program.erase();
    else
      ++programs;
    return known->second.getValue();
  }

  static bool isMadeBy(ArrayRef<SubprogramOp> parts, Value value) {
    return llvm::is_contained(parts, value.getDefiningOp<SubprogramOp>());
  }

  /// A part that reads what parts before it made waits for them: at a barrier of the grid (scope grid).
  void lower(ArrayRef<SubprogramOp> parts, ModuleOp kernels, StringRef name) {
    OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
    SubprogramOp first = parts.front(), last = parts.back();
    Location loc = first.getLoc();
    SmallVector<Value> inputs;
    SmallVector<Type> results, bindings;
    for (SubprogramOp part : parts) {
      llvm::copy_if(part.getInputs(), std::back_inserter(inputs), [&](Value input) { return !isMadeBy(parts, input); });
      llvm::append_range(results, part.getResultTypes());
    }
    for (Type type : llvm::concat<Type>(SmallVector<Type>(TypeRange(ValueRange(inputs))), results)) {
      auto tensor = cast<RankedTensorType>(type);
      bindings.push_back(SliceType::get(&getContext(), tensor.getShape(), tensor.getElementType(), Space::global));
    }
    auto program =
        ProgramOp::create(builder, loc, name, results.size(), first.getTargetAttr(), /*in_place=*/ArrayAttr());
    Block &body = program.getBody().emplaceBlock();
    for (Type type : bindings)
      body.addArgument(type, loc);
    OpBuilder bodyBuilder = OpBuilder::atBlockEnd(&body);
    unsigned firstInput = 0, firstResult = inputs.size(), phase = 0;
    DenseMap<Value, Value> made; // bindings of results
    for (unsigned i = 0; i < parts.size(); ++i) {
      SubprogramOp part = parts[i];
      auto waitsFor = [&](Value input) { return isMadeBy(parts.slice(phase, i - phase), input); };
      if (llvm::any_of(part.getInputs(), waitsFor)) {
        SyncOp::create(bodyBuilder, part.getLoc(), Scope::grid);
        phase = i;
      }
      SmallVector<Value> own;
      for (Value input : part.getInputs())
        own.push_back(isMadeBy(parts, input) ? made.lookup(input) : Value(body.getArgument(firstInput++)));
      for (Value result : part.getResults())
        own.push_back(made[result] = body.getArgument(firstResult++));
      PartBuilder(part, own, workgroupStaging, referenceBlock).build(bodyBuilder);
    }
    name = shareEqual(program);
    builder.setInsertionPointAfter(last);
    auto symbol = SymbolRefAttr::get(&getContext(), kKernelModule, {FlatSymbolRefAttr::get(&getContext(), name)});
    auto launch = LaunchOp::create(builder, loc, results, symbol, inputs, /*tied=*/DenseI64ArrayAttr());
    unsigned next = 0;
    for (SubprogramOp part : parts)
      for (Value result : part.getResults())
        result.replaceAllUsesWith(launch.getResult(next++));
    for (SubprogramOp part : llvm::reverse(parts))
      part.erase();
  }

  llvm::StringMap<StringAttr> programsByText;
  int64_t referenceBlock = 1;

  /// Every expression that composing left is a root, which has a place in the index space.
  LogicalResult checkComposed(ArrayRef<SubprogramOp> parts) {
    for (SubprogramOp part : parts)
      for (auto expr : part.getBody().getOps<ExprOp>())
        if (!expr.getDims())
          return expr.emitOpError("has no dims: run tile-compose before tile-lower-to-program");
    return success();
  }

  void runOnOperation() override {
    programsByText.clear();
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    referenceBlock = pointsPerReference(machine->vectorBytes, machine->vectorRegisters);
    SmallVector<SmallVector<SubprogramOp>> kernels = collectKernels(getOperation());
    if (kernels.empty())
      return;
    for (ArrayRef<SubprogramOp> parts : kernels)
      if (failed(checkComposed(parts)))
        return signalPassFailure();
    ModuleOp module = kernelModule(getOperation());
    llvm::StringSet<> names;
    for (SmallVector<SubprogramOp> &parts : kernels) {
      std::string name = parts.front().getSymName().str();
      for (unsigned suffix = 0; !names.insert(name).second; ++suffix)
        name = (parts.front().getSymName() + "_" + Twine(suffix)).str();
      lower(parts, module, name);
    }
  }
};
} // namespace

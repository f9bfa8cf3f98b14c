// Emits, for each nest, the copies of the inputs staged before it, a sync of the block, one tile.compute with the
// bodies of its roots, and the code that completes an online maximum or merges a block of a walk.
#include "passes/program/PartBuilder.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/graph/Rounding.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

void PartBuilder::build(OpBuilder &builder) {
  Location loc = subprogram.getLoc();
  SmallVector<int64_t> gridExtents, gridTiles;
  for (int64_t dim : subprogram.getGrid()) {
    gridExtents.push_back(extents[dim]);
    gridTiles.push_back(tiles[dim]);
  }
  auto parallel = ParallelOp::create(builder, loc, gridExtents, gridTiles, subprogram.getWorkgroups(),
                                     subprogram->getAttrOfType<IntegerAttr>(kStepsAttr), /*partials=*/Value());
  for (StringRef attr : {kThreadsAttr, kGroupAttr, kClusterAttr})
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
  copyOutBufferedReductions(bodyBuilder, WalkPhase::after);
}

void PartBuilder::stageForWorkgroup(OpBuilder &builder, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  Value buffer = allocate(builder, subprogram.getLoc(), type.getShape(), type.getElementType());
  MoveOp::create(builder, subprogram.getLoc(), bindingOf(input), buffer);
  workgroupBuffers[input] = buffer;
}

// --- nests ----------------------------------------------------------------------------------------------------------

void PartBuilder::buildNests(OpBuilder &builder, WalkPhase phase) {
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

void PartBuilder::buildNest(OpBuilder &builder, unsigned n) {
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
    ComputeOp compute = createCompute(where, nest, accs, body);
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

void PartBuilder::buildCopyIn(OpBuilder &builder, const SpaceAccess &access, Value buffer) {
  Nest copy;
  copy.dims = dimsAsTheyLie(access.map, extents);
  llvm::sort(copy.dims);
  buildElementwise(builder, copy, [&](OpBuilder &body) {
    Value value = loadAt(body, bindingOf(access.tensor), toNest(access.map.getResults(), copy));
    StoreOp::create(body, subprogram.getLoc(), value, buffer, stagedIndex(access, copy));
  });
}

void PartBuilder::copyOutBufferedReductions(OpBuilder &builder, WalkPhase phase) {
  for (const auto &entry : copyOut) {
    Value tensor = entry.first;
    unsigned output = entry.second;
    auto root = tensor.getDefiningOp<ExprOp>();
    unsigned i = cast<OpResult>(tensor).getResultNumber();
    Nest nest = rowsOf(root, i);
    // A buffer that a walk fills block by block has another block in each step.
    bool isInside = movement.walked >= 0 && llvm::is_contained(nest.dims, movement.walked);
    if (isInside != (phase == WalkPhase::inside))
      continue;
    SyncOp::create(builder, subprogram.getLoc(), Scope::block);
    buildElementwise(builder, nest, [&](OpBuilder &body) {
      Value value = loadAt(body, sliceOf(tensor), toNest(resultIndex(root, i, buffers.contains(tensor)), nest));
      StoreOp::create(body, root.getLoc(), value, outputBinding(output),
                      toNest(resultIndex(root, i, /*inBuffer=*/false), nest));
    });
  }
}

void PartBuilder::buildElementwise(OpBuilder &builder, const Nest &nest, function_ref<void(OpBuilder &)> fill,
                                   int64_t blocks) {
  auto *body = new Block();
  OpBuilder bodyBuilder(context());
  bodyBuilder.setInsertionPointToEnd(body);
  fill(bodyBuilder);
  YieldOp::create(bodyBuilder, subprogram.getLoc(), ValueRange());
  Accumulators none;
  createCompute(builder, nest, none, body, blocks);
}

/// Returns the dim of the iteration space that is the N dim of a contraction's register block.
static std::optional<int64_t> nOfContraction(ExprOp root) {
  FailureOr<TensorExpr> expr = describe(root);
  if (!root.getMicroKernel() || failed(expr) || expr->inputs.size() != 2)
    return std::nullopt;
  std::optional<ContractionRoles> roles = contractionRoles(*expr, expr->inputs[0].map, expr->inputs[1].map);
  return roles && placeOf(root)[roles->n] >= 0 ? std::optional(placeOf(root)[roles->n]) : std::nullopt;
}

/// Returns the dim along which most accesses of a nest are contiguous, with more weight on global memory. `bound` dims
/// are excluded, because threads cannot share them. `preferred` wins ties, and if nothing is contiguous.
static int64_t mostContiguousDim(Block &body, ArrayRef<int64_t> bound, int64_t preferred, size_t rank,
                                 const CommonCosts &costs) {
  SmallVector<int64_t> votes(rank, 0);
  auto vote = [&](SliceType type, AffineMap map) {
    if (map.getNumResults() == 0)
      return;
    int64_t dim = unitStrideDim(map.getResults().back());
    if (dim >= 0 && !llvm::is_contained(bound, dim))
      votes[dim] += type.getSpace() == Space::global ? costs.globalWeight : 1;
  };
  for (Operation &op : body) {
    if (auto load = dyn_cast<LoadOp>(op))
      vote(load.getSlice().getType(), load.getMap());
    else if (auto store = dyn_cast<StoreOp>(op))
      vote(store.getSlice().getType(), store.getMap());
  }
  int64_t best = llvm::max_element(votes) - votes.begin();
  return rank == 0 || votes[best] == 0 || (preferred >= 0 && votes[preferred] == votes[best]) ? preferred : best;
}

static StringAttr microKernelOf(const Nest &nest) {
  return nest.roots.empty() ? StringAttr() : ExprOp(nest.roots.front()).getMicroKernelAttr();
}

static GemmAttr gemmOf(const Nest &nest) {
  return nest.roots.empty() ? GemmAttr() : ExprOp(nest.roots.front()).getGemmAttr();
}

ComputeOp PartBuilder::createCompute(OpBuilder &builder, const Nest &nest, Accumulators &accs, Block *body,
                                     int64_t blocks) {
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
    if (std::optional<int64_t> n = nOfContraction(nest.roots.front()))
      vector = llvm::find(nest.dims, *n) - nest.dims.begin();
  if (blocks > 0) {
    vector = nestExtents.size();
    nestExtents.push_back(blocks);
    sizes.push_back(blocks);
  }
  // A nest without the vector dim of the iteration space vectorises its own innermost dim, or, on a CPU and without
  // reductions, the dim along which most of its accesses are contiguous.
  bool hasVector = vector >= 0;
  for (int64_t position = nest.dims.size() - 1; vector < 0 && position >= 0; --position)
    if (sizes[position] > 1)
      vector = position;
  if (!hasVector && accs.slices.empty() && !subprogram->hasAttr(kThreadsAttr))
    vector = mostContiguousDim(*body, /*bound=*/{}, vector, nest.dims.size(), costs.common);
  SmallVector<StringRef> kinds(accs.kinds.begin(), accs.kinds.end());
  // Beside contractions, the vector dim of the iteration space is the N dim of one of them; other nests choose their
  // own.
  if (contractsOnGpu() && !microKernelOf(nest) && blocks == 0) {
    bool inOrder = llvm::is_contained(kinds, "none");
    vector = mostContiguousDim(*body, inOrder ? ArrayRef(reductions) : ArrayRef<int64_t>(), vector, nest.dims.size(),
                               costs.common);
  }
  auto compute =
      ComputeOp::create(builder, subprogram.getLoc(), nestOffsets, accs.slices, nestExtents, sizes, offsetDims,
                        reductions, vector, builder.getAffineMapArrayAttr(accs.maps), builder.getArrayAttr(accs.inits),
                        builder.getStrArrayAttr(kinds), microKernelOf(nest), gemmOf(nest), RunningAttr());
  if (!nest.roots.empty())
    for (StringRef name : {kSwizzledAttr, kFactorsAttr, kBlockingAttr})
      if (Attribute own = ExprOp(nest.roots.front())->getAttr(name))
        compute->setAttr(name, own);
  for (ExprOp root : nest.roots)
    if (Attribute form = root->getAttr(kFormAttr))
      compute->setAttr(kFormAttr, form);
  compute.getBody().push_back(body);
  return compute;
}

// --- the body of a nest ---------------------------------------------------------------------------------------------

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

void PartBuilder::cloneRoot(OpBuilder &builder, unsigned n, ExprOp root, Block *body, Accumulators &accs) {
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
  SmallVector<AffineExpr> place;
  for (int64_t dim : placeOf(root))
    place.push_back(dim < 0 ? getAffineConstantExpr(0, context())
                            : getAffineDimExpr(llvm::find(nest.dims, dim) - nest.dims.begin(), context()));
  for (Operation &op : source.without_terminator())
    cloneBodyOp(builder, op, mapping, place, nest.dims.size());
  for (auto [i, yielded] : llvm::enumerate(yield.getValues())) {
    if (!root.isReduction()) {
      storeResult(builder, root, i, mapping.lookup(yielded), nest);
      continue;
    }
    addAccumulator(root, i, kinds[i], mapping.lookup(yielded), nest, accs);
    if (root == nest.running)
      storeReference(builder, root, mapping.lookup(yielded), nest);
  }
}

Value PartBuilder::readInput(OpBuilder &builder, unsigned n, ExprOp root, unsigned input) {
  const Nest &nest = movement.nests[n];
  SpaceAccess access = accessInSpace(root, input);
  if (root.isTable(input))
    return bindingOf(access.tensor);
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

Value PartBuilder::load(OpBuilder &builder, unsigned n, const SpaceAccess &access) {
  const Nest &nest = movement.nests[n];
  Value slice;
  AffineMap map;
  // A register block reads inputs from global memory: the buffer that another nest fills may not be complete yet.
  bool direct = (microKernelOf(nest) || keptAlong(nest) > 0) && isa<BlockArgument>(access.tensor);
  if (Value buffer = direct ? Value() : workgroupBuffers.lookup(access.tensor)) {
    slice = buffer;
    map = toNest(access.map.getResults(), nest);
  } else if (Value buffer = buffers.lookup(access.tensor)) {
    bool grows = nest.phase == WalkPhase::inside && movement.maximum && access.tensor == movement.maximum.getResult(0);
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

Value PartBuilder::sliceOf(Value tensor) {
  Value buffer = buffers.lookup(tensor);
  return buffer ? buffer : outputBinding(escapingAs(tensor).front());
}

Value PartBuilder::loadAt(OpBuilder &body, Value slice, AffineMap at) {
  return LoadOp::create(body, subprogram.getLoc(), cast<SliceType>(slice.getType()).getElementType(), slice, at,
                        IntegerSetAttr());
}

void PartBuilder::storeResult(OpBuilder &builder, ExprOp root, unsigned i, Value value, const Nest &nest) {
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

void PartBuilder::addAccumulator(ExprOp root, unsigned i, std::optional<vector::CombiningKind> kind, Value yielded,
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
  accs.slices.push_back(block ? block : sliceOf(tensor));
  accs.maps.push_back(toNest(resultIndex(root, i, block || buffer), nest));
  accs.inits.push_back(root.getInits()[i]);
  accs.kinds.push_back(kind ? vector::stringifyCombiningKind(*kind).str() : "none");
  accs.yields.push_back(yielded);
  for (unsigned output : ArrayRef(outputs).drop_front(buffer ? 0 : 1))
    copyOut.push_back({tensor, output});
}

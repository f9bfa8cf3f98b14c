// Verifiers of level 3: programs, their parts, and the movement in them.
#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/Phases.h"
#include "dialects/tile/TileVerifiers.h"

#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tilewright::tile;

int64_t ProgramOp::getWorkgroups() {
  int64_t workgroups = 0;
  for (ArrayRef<ParallelOp> phase : phasesOf(*this))
    workgroups = std::max(workgroups, workgroupsOf(phase));
  return workgroups;
}

int64_t ProgramOp::getBlockBytes() {
  int64_t bytes = 0;
  getBody().walk([&](AllocOp alloc) {
    if (alloc.getOffset())
      bytes = std::max<int64_t>(bytes, *alloc.getOffset() + bufferBytes(alloc));
  });
  return bytes;
}

/// Returns true if `tied` maps each result to an input of its type or to none (-1), and no input is used twice.
static bool fits(ArrayRef<int64_t> tied, TypeRange inputs, TypeRange results) {
  if (tied.size() != results.size())
    return false;
  llvm::SmallDenseSet<int64_t> taken;
  for (auto [input, result] : llvm::zip(tied, results)) {
    if (input == -1)
      continue;
    if (input < 0 || input >= static_cast<int64_t>(inputs.size()) || inputs[input] != result ||
        !taken.insert(input).second)
      return false;
  }
  return true;
}

LogicalResult ProgramOp::verify() {
  for (Type type : getBody().getArgumentTypes()) {
    auto slice = dyn_cast<SliceType>(type);
    if (!slice || slice.getSpace() != Space::global || !slice.getStrides().empty())
      return emitOpError("P1: arguments must be dense global slices, not ") << type;
  }
  if (getOutputs() > getBody().getNumArguments())
    return emitOpError("P2: more outputs than arguments");
  bool between = false; // true after a part: a barrier must have parts on both sides
  for (Operation &op : getBody().front()) {
    auto sync = dyn_cast<SyncOp>(op);
    if (!isa<ParallelOp>(op) && !(sync && sync.getScope() == Scope::grid))
      return op.emitOpError("P3: a tile program holds only tile.parallel, and tile.sync <grid> between them");
    if (sync && (!between || !op.getNextNode()))
      return op.emitOpError("P3: a grid barrier must be between two parts");
    between = !sync;
  }
  if (!getInPlace())
    return success();
  TypeRange bindings = getBody().getArgumentTypes();
  for (auto tied : getInPlaceAttr().getAsRange<DenseI64ArrayAttr>())
    if (!fits(tied, bindings.drop_back(getOutputs()), bindings.take_back(getOutputs())))
      return emitOpError("P4: outputs cannot take the memory of inputs as ") << tied << " says";
  return success();
}

/// Checks parts whose workgroups wait for each other within a tile, and resident tiles: a workgroup finds in such a
/// buffer the tile that it left there, which is determined by the workgroup's number.
LogicalResult ProgramOp::verifyRegions() {
  for (ArrayRef<ParallelOp> phase : phasesOf(*this))
    for (ParallelOp part : phase)
      if (!gridSyncsIn(part).empty() &&
          (phase.size() > 1 || part.getNumTiles() != static_cast<int64_t>(part.getWorkgroups())))
        return part.emitOpError("P6: a part with a grid barrier in its walk is alone in its phase and has one tile for "
                                "each workgroup");
  DenseMap<int64_t, AllocOp> first;
  WalkResult checked = walk([&](AllocOp alloc) -> WalkResult {
    if (residentTileNumber(alloc) < 0)
      return WalkResult::advance();
    auto part = alloc->getParentOfType<ParallelOp>();
    auto [known, isNew] = first.try_emplace(residentTileNumber(alloc), alloc);
    bool isAlike = bufferBytes(alloc) == bufferBytes(known->second) &&
                   part.getNumTiles() == known->second->getParentOfType<ParallelOp>().getNumTiles() &&
                   part.getNumTiles() == static_cast<int64_t>(part.getWorkgroups());
    if (isAlike && !isa_and_nonnull<ParallelOp>(part->getPrevNode()) && isa<WalkOp>(alloc->getParentOp()))
      return WalkResult::advance();
    return alloc.emitOpError("P5: buffers of one resident tile must have the same size, and be in the first parts of "
                             "their phases, with one tile for each workgroup");
  });
  return failure(checked.wasInterrupted());
}

int64_t ParallelOp::getNumTiles() {
  int64_t tiles = 1;
  for (auto [extent, tile] : llvm::zip(getExtents(), getTiles()))
    tiles *= llvm::divideCeil(extent, tile);
  return tiles;
}

LogicalResult LaunchOp::verify() {
  if (getTied() && !fits(*getTied(), getInputs().getTypes(), getResultTypes()))
    return emitOpError("H2: results cannot take the memory of inputs as ") << getTiedAttr() << " says";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto program = symbols.lookupNearestSymbolFrom<ProgramOp>(*this, getProgramAttr());
  if (!program) // already compiled, or not yet created
    return success();
  SmallVector<Type> bindings;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(getInputs().getTypes()), SmallVector<Type>(getResultTypes()))) {
    auto tensor = cast<RankedTensorType>(type);
    bindings.push_back(SliceType::get(getContext(), tensor.getShape(), tensor.getElementType(), Space::global));
  }
  if (program.getBody().getArgumentTypes() != TypeRange(bindings) || program.getOutputs() != getNumResults())
    return emitOpError("H1: inputs and results do not fit the bindings of ") << getProgram();
  if (getTied() && !(program.getInPlace() && llvm::is_contained(*program.getInPlace(), getTiedAttr())))
    return emitOpError("H3: ") << getProgram() << " does not list " << getTiedAttr() << " in its in_place";
  return success();
}

WalkOp ParallelOp::getWalk() { return cast<WalkOp>(getBody().front().back()); }

LogicalResult ParallelOp::verify() {
  if (getExtents().size() != getTiles().size())
    return emitOpError("L1: expected one tile per extent");
  for (auto [extent, tile] : llvm::zip(getExtents(), getTiles()))
    if (extent <= 0 || tile <= 0 || tile > extent)
      return emitOpError("L1: tile ") << tile << " does not fit extent " << extent;
  int64_t workgroups = getWorkgroups(), steps = getSteps().value_or(1);
  if (steps < 1 || workgroups < 1 || workgroups > getNumUnits())
    return emitOpError("L2: ") << workgroups << " workgroups for " << getNumTiles() << " tiles"
                               << (getSteps() ? " of " + std::to_string(steps) + " steps" : "");
  if (!getPartials())
    return success();
  SliceType partials = getPartials().getType();
  if (!getSteps() || partials.getSpace() != Space::global || partials.getRank() < 1 ||
      partials.getShape()[0] != workgroups)
    return emitOpError("L4: partials need steps, global space, and a row for each workgroup, not ") << partials;
  return success();
}

void ParallelOp::build(OpBuilder &builder, OperationState &state, ArrayRef<int64_t> extents, ArrayRef<int64_t> tiles,
                       int64_t workgroups) {
  build(builder, state, extents, tiles, workgroups, /*steps=*/IntegerAttr(), /*partials=*/Value());
}

LogicalResult ParallelOp::verifyRegions() {
  Block &body = getBody().front();
  if (body.empty() || !isa<WalkOp>(body.back()) || !llvm::hasSingleElement(body.getOps<WalkOp>()))
    return emitOpError("L3: the body must end in its only tile.walk");
  return success();
}

LogicalResult WalkOp::verify() {
  auto parallel = cast<ParallelOp>((*this)->getParentOp());
  TypeRange types = getBody().getArgumentTypes();
  if (types.size() != parallel.getExtents().size() || !llvm::all_of(types, llvm::IsaPred<IndexType>))
    return emitOpError("N1: expected one index argument per dim of the grid");
  return success();
}

LogicalResult KeepOp::verify() {
  int64_t dims = (*this)->getParentOfType<ParallelOp>().getExtents().size(), along = getAlong();
  if (along < 1 || along > dims)
    return emitOpError("F1: along must count from 1 to the ") << dims << " dims of the grid";
  return success();
}

LogicalResult AllocOp::verify() {
  if (getType().getSpace() != Space::block || !getType().getStrides().empty())
    return emitOpError("B1: only dense block slices are allocated");
  return success();
}

llvm::SetVector<Operation *> ComputeOp::getRelativeOps() {
  llvm::SetVector<Operation *> relative;
  if (!getRunning())
    return relative;
  Value maximum = cast<YieldOp>(getBodyBlock().getTerminator()).getValues()[getRunning()->getAccumulator()];
  for (Operation &op : getBodyBlock().without_terminator())
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return operand == maximum || relative.contains(operand.getDefiningOp()); }))
      relative.insert(&op);
  return relative;
}

static LogicalResult verifyRunning(ComputeOp op, RunningAttr running) {
  int64_t accumulator = running.getAccumulator(), numAccs = op.getAccs().size();
  auto kindOf = [&](int64_t i) { return cast<StringAttr>(op.getKinds()[i]).getValue(); };
  if (accumulator < 0 || accumulator >= numAccs || running.getBlock() <= 0 || kindOf(accumulator) != "maximumf" ||
      !op.getBodyBlock().getArgument(accumulator).getType().isF32())
    return op.emitOpError("K6: a running accumulator is a maximum of f32, with a block of points");
  if (op.getReductions().size() != 1 || op.getReductions()[0] != static_cast<int64_t>(op.getVector()))
    return op.emitOpError("K6: a nest with a running maximum reduces the vector dim alone");
  llvm::SetVector<Operation *> relative = op.getRelativeOps();
  auto yield = cast<YieldOp>(op.getBodyBlock().getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    if (static_cast<int64_t>(i) == accumulator || !relative.contains(value.getDefiningOp()))
      continue;
    auto init = dyn_cast<FloatAttr>(op.getInits()[i]);
    if (kindOf(i) != "add" || !value.getType().isF32() || !init || !init.getValue().isZero())
      return op.emitOpError("K6: accumulator ")
             << i << " depends on the running maximum and is not a sum of f32 from zero";
  }
  return success();
}

LogicalResult ComputeOp::verify() {
  int64_t rank = getExtents().size();
  if (getSizes().size() != getExtents().size())
    return emitOpError("K1: expected one size per extent");
  for (auto [extent, size] : llvm::zip(getExtents(), getSizes()))
    if (size <= 0 || size > extent)
      return emitOpError("K1: size ") << size << " does not fit extent " << extent;
  if (getOffsetDims().size() != getOffsets().size() || !distinctDims(getOffsetDims(), rank))
    return emitOpError("K2: expected one distinct dim per offset");
  size_t numAccs = getAccs().size();
  if (getAccMaps().size() != numAccs || getInits().size() != numAccs || getKinds().size() != numAccs ||
      getBodyBlock().getNumArguments() != numAccs)
    return emitOpError("K3: expected one map, init, kind and body argument per accumulator");
  auto yield = dyn_cast<YieldOp>(getBodyBlock().getTerminator());
  if (!yield || yield.getValues().getTypes() != getBodyBlock().getArgumentTypes())
    return emitOpError("K3: the body must yield its accumulators");
  if (!getMicroKernel() && llvm::any_of(getInits(), llvm::IsaPred<UnitAttr>))
    return emitOpError("K3: only a micro kernel can continue from the values in the slice");
  for (Attribute attr : getAccMaps()) {
    AffineMap map = cast<AffineMapAttr>(attr).getValue();
    for (int64_t dim : getReductions())
      if (map.isFunctionOfDim(dim))
        return emitOpError("K4: accumulator map uses reduced dim ") << dim;
  }
  int64_t vector = getVector();
  if (vector < -1 || vector >= rank)
    return emitOpError("K5: vector dim ") << vector << " of " << rank << " dims";
  if (getGemm() && !getMicroKernel())
    return emitOpError("K7: only a contraction with a micro kernel has a gemm");
  return getRunning() ? verifyRunning(*this, *getRunning()) : success();
}

static LogicalResult verifyAccess(Operation *op, SliceType slice, AffineMap map, StringRef constraint) {
  if (static_cast<int64_t>(map.getNumResults()) != slice.getRank())
    return op->emitOpError() << constraint << ": the map has " << map.getNumResults() << " results for a slice of rank "
                             << slice.getRank();
  return verifySpace(op, map.getNumDims(), map.getNumSymbols(), constraint);
}

LogicalResult LoadOp::verify() {
  if (getValue().getType() != getSlice().getType().getElementType())
    return emitOpError("M1: the value must have the slice's element type");
  if (std::optional<IntegerSet> guard = getGuard())
    if (failed(verifySpace(*this, guard->getNumDims(), guard->getNumSymbols(), "M1")))
      return failure();
  return verifyAccess(*this, getSlice().getType(), getMap(), "M1");
}

LogicalResult StoreOp::verify() {
  if (getValue().getType() != getSlice().getType().getElementType())
    return emitOpError("M2: the value must have the slice's element type");
  if (getStreamed() && getSlice().getType().getSpace() != Space::global)
    return emitOpError("M3: only a store to a global slice is streamed");
  return verifyAccess(*this, getSlice().getType(), getMap(), "M2");
}

LogicalResult MoveOp::verify() {
  SliceType source = getSource().getType(), target = getTarget().getType();
  if (source.getShape() != target.getShape() || source.getElementType() != target.getElementType() ||
      !source.getStrides().empty() || !target.getStrides().empty())
    return emitOpError("V1: expected dense slices of one shape and element type");
  return success();
}

LogicalResult SyncOp::verify() {
  if (getScope() >= Scope::launch)
    return emitOpError("Y1: a kernel cannot wait at scope ") << stringifyScope(getScope());
  return success();
}

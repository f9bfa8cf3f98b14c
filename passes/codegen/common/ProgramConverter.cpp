// Converts the phases, parts, tiles and loops of a tile program. Every phase runs in all workgroups, and a branch skips
// workgroups without work, so that all workgroups reach the grid barriers.
#include "passes/codegen/common/ProgramConverter.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/Slices.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns the bindings that may share memory with another binding.
static llvm::SmallDenseSet<int64_t> sharedBindings(ProgramOp program) {
  llvm::SmallDenseSet<int64_t> shared;
  if (!program.getInPlace())
    return shared;
  int64_t inputs = program.getBody().getNumArguments() - program.getOutputs();
  for (auto tied : program.getInPlaceAttr().getAsRange<DenseI64ArrayAttr>())
    for (auto [output, input] : llvm::enumerate(tied.asArrayRef()))
      if (input >= 0)
        shared.insert_range(ArrayRef<int64_t>{input, inputs + static_cast<int64_t>(output)});
  return shared;
}

FailureOr<func::FuncOp> ProgramConverter::convert(OpBuilder &builder) {
  Location loc = program.getLoc();
  Block &source = program.getBody().front();
  int64_t bytes = blockBytes();
  SmallVector<Type> types;
  for (Type type : source.getArgumentTypes())
    types.push_back(memrefOf(cast<SliceType>(type), globalSpace()));
  types.push_back(
      MemRefType::get({std::max<int64_t>(bytes, 1)}, builder.getI8Type(), MemRefLayoutAttrInterface(), blockSpace()));
  types.push_back(builder.getIndexType());
  auto function = func::FuncOp::create(builder, loc, program.getSymName(), builder.getFunctionType(types, {}));
  llvm::SmallDenseSet<int64_t> shared = sharedBindings(program);
  for (unsigned i = 0; i + 1 < types.size(); ++i)
    if (!shared.contains(i))
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  function->setAttr(kWorkgroupsAttr, builder.getI64IntegerAttr(launchedWorkgroups()));
  function->setAttr(kOutputsAttr, builder.getI64IntegerAttr(program.getOutputs()));
  function->setAttr(kBlockBytesAttr, builder.getI64IntegerAttr(givenBytes()));
  SmallVector<int64_t> bindingBytes;
  for (Type type : source.getArgumentTypes())
    bindingBytes.push_back(cast<SliceType>(type).getNumBytes());
  function->setAttr(kBindingBytesAttr, builder.getDenseI64ArrayAttr(bindingBytes));
  for (StringRef attr : {kTargetAttr, kVariantOfAttr})
    if (Attribute value = program->getAttr(attr))
      function->setAttr(attr, value);
  if (ArrayAttr ties = program.getInPlaceAttr())
    function->setAttr(kInPlaceAttr, ties);
  Block *entry = function.addEntryBlock();
  OpBuilder body = OpBuilder::atBlockEnd(entry);
  IRMapping values;
  for (auto [argument, memref] : llvm::zip(source.getArguments(), entry->getArguments()))
    values.map(argument, memref);
  memory = placeMemory(body, entry->getArgument(types.size() - 2));
  Value workgroup = entry->getArgument(types.size() - 1);
  convertPhases(body, workgroup, values);
  finish(body);
  func::ReturnOp::create(body, loc);
  if (!isConverted)
    return failure();
  return function;
}

/// Emits one phase after another. A workgroup that has no work in a phase waits for the others.
void ProgramConverter::convertPhases(OpBuilder &builder, Value workgroup, IRMapping &values) {
  SmallVector<SyncOp> syncs(gridSyncsOf(program));
  int64_t workgroups = program.getWorkgroups();
  for (auto [i, phase] : llvm::enumerate(phasesOf(program))) {
    if (i > 0 && phase.size() == 1 && beginsEarly(phase.front()))
      convertEarly(builder, phase.front(), workgroup, values);
    if (i > 0)
      isConverted &= succeeded(emitGridSync(builder, syncs[i - 1]));
    int64_t own = workgroupsOf(phase);
    if (own == workgroups) {
      convertParts(builder, phase, workgroup, values);
      continue;
    }
    Location loc = phase.front().getLoc();
    Value count = arith::ConstantIndexOp::create(builder, loc, own);
    Value takesPart = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, workgroup, count);
    SmallVector<SyncOp> inside = gridSyncsIn(phase.front());
    auto branch = scf::IfOp::create(builder, loc, takesPart, /*withElseRegion=*/!inside.empty());
    OpBuilder then = OpBuilder::atBlockTerminator(branch.thenBlock());
    convertParts(then, phase, workgroup, values);
    for (SyncOp sync : inside) {
      OpBuilder otherwise = OpBuilder::atBlockTerminator(branch.elseBlock());
      isConverted &= succeeded(emitGridSync(otherwise, sync));
    }
  }
}

/// Emits the parts of a phase, each on its own range of workgroups. A phase between two barriers may have none.
void ProgramConverter::convertParts(OpBuilder &builder, ArrayRef<ParallelOp> parts, Value workgroup,
                                    IRMapping &values) {
  if (parts.empty())
    return;
  ParallelOp part = parts.front();
  Location loc = part.getLoc();
  if (parts.size() == 1)
    return convertPart(builder, part, workgroup, values);
  Value own = arith::ConstantIndexOp::create(builder, loc, part.getWorkgroups());
  Value mine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, workgroup, own);
  auto branch = scf::IfOp::create(builder, loc, mine, /*withElseRegion=*/true);
  OpBuilder then = OpBuilder::atBlockTerminator(branch.thenBlock());
  convertPart(then, part, workgroup, values);
  OpBuilder otherwise = OpBuilder::atBlockTerminator(branch.elseBlock());
  Value rest = arith::SubIOp::create(otherwise, loc, workgroup, own);
  convertParts(otherwise, parts.drop_front(), rest, values);
}

/// Maps the offset of tile number `tile` along each grid dim. The last dim varies fastest.
static void mapOffsets(OpBuilder &builder, ParallelOp part, Value tile, IRMapping &values) {
  Location loc = part.getLoc();
  for (int64_t dim = part.getExtents().size() - 1; dim >= 0; --dim) {
    int64_t size = part.getTiles()[dim], count = llvm::divideCeil(part.getExtents()[dim], size);
    Value position = tile;
    if (count == 1) {
      position = arith::ConstantIndexOp::create(builder, loc, 0);
    } else if (dim > 0) {
      Value radix = arith::ConstantIndexOp::create(builder, loc, count);
      position = arith::RemUIOp::create(builder, loc, tile, radix);
      tile = arith::DivUIOp::create(builder, loc, tile, radix);
    }
    Value scale = arith::ConstantIndexOp::create(builder, loc, size);
    values.map(part.getWalk().getBody().getArgument(dim),
               size == 1 ? position : arith::MulIOp::create(builder, loc, position, scale).getResult());
  }
}

/// Returns the workgroup's first tile of a part or, for stream-K, its first step of all tiles.
static Value firstUnit(OpBuilder &builder, ParallelOp part, Value workgroup) {
  Location loc = part.getLoc();
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value scaled = arith::MulIOp::create(builder, loc, workgroup, constant(part.getNumUnits()));
  return arith::DivUIOp::create(builder, loc, scaled, constant(part.getWorkgroups()));
}

void ProgramConverter::enterTile(OpBuilder &builder, ParallelOp part, Value first, Value tile, IRMapping &values) {
  mapOffsets(builder, part, tile, values);
  current = {first, tile};
}

void ProgramConverter::convertEarly(OpBuilder &builder, ParallelOp part, Value workgroup, IRMapping values) {
  Location loc = part.getLoc();
  OpBuilder body = builder;
  if (static_cast<int64_t>(part.getWorkgroups()) < program.getWorkgroups()) {
    Value own = arith::ConstantIndexOp::create(builder, loc, part.getWorkgroups());
    Value takesPart = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, workgroup, own);
    auto branch = scf::IfOp::create(builder, loc, takesPart, /*withElseRegion=*/false);
    body = OpBuilder::atBlockTerminator(branch.thenBlock());
  }
  mapOffsets(body, part, firstUnit(body, part, workgroup), values);
  isConverted &= succeeded(emitEarly(body, part, values));
}

Value ProgramConverter::isLaterTile(OpBuilder &builder, ParallelOp part) const {
  if (part.getNumTiles() <= static_cast<int64_t>(part.getWorkgroups()))
    return Value();
  return arith::CmpIOp::create(builder, part.getLoc(), arith::CmpIPredicate::ne, current.tile, current.first);
}

void ProgramConverter::convertPart(OpBuilder &builder, ParallelOp part, Value workgroup, IRMapping values) {
  Location loc = part.getLoc();
  beginPart(builder, part);
  for (Operation &op : part.getBody().front())
    convertOp(builder, op, values);
  int64_t tiles = part.getNumTiles(), workgroups = part.getWorkgroups();
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value low = constant(0), high = constant(part.getNumUnits());
  if (workgroups > 1) {
    low = firstUnit(builder, part, workgroup);
    high = firstUnit(builder, part, arith::AddIOp::create(builder, loc, workgroup, constant(1)));
  }
  if (part.getSteps()) {
    isConverted &= succeeded(convertSteps(builder, part, workgroup, low, high, values));
    return;
  }
  OpBuilder body = builder;
  Value tile = low;
  bool several = tiles > workgroups;
  if (several && convertTiles(body, part, low, high, values))
    return;
  if (several) {
    auto loop = scf::ForOp::create(builder, loc, low, high, constant(1));
    body = OpBuilder::atBlockTerminator(loop.getBody());
    tile = loop.getInductionVar();
  }
  enterTile(body, part, low, tile, values);
  for (Operation &op : part.getWalk().getBody().front())
    convertOp(body, op, values);
  if (several)
    endTile(body, part);
}

/// Returns the offset of a buffer in the workgroup's memory, in bytes.
static Value bufferOffset(OpBuilder &builder, AllocOp alloc, const IRMapping &values) {
  Location loc = alloc.getLoc();
  Value base = arith::ConstantIndexOp::create(builder, loc, alloc.getOffset().value_or(0));
  auto start = alloc->getAttrOfType<AffineMapAttr>(kAlignedAsAttr);
  if (!start)
    return base;
  SmallVector<Value> offsets;
  for (Value offset : alloc->getParentOfType<WalkOp>().getBody().getArguments())
    offsets.push_back(values.lookup(offset));
  AffineExpr bytes = start.getValue().getResult(0) * alloc.getType().getElementBytes();
  Value shift = affine::expandAffineExpr(builder, loc, bytes % kCopyBytes, offsets, {});
  return arith::AddIOp::create(builder, loc, base, shift);
}

void ProgramConverter::convertOp(OpBuilder &builder, Operation &op, IRMapping &values) {
  Location loc = op.getLoc();
  if (auto alloc = dyn_cast<AllocOp>(op)) {
    Value offset = bufferOffset(builder, alloc, values);
    values.map(alloc.getSlice(), memref::ViewOp::create(builder, loc, memrefOf(alloc.getType(), blockSpace()), memory,
                                                        offset, ValueRange()));
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    convertLoop(builder, loop, values);
  } else if (auto keep = dyn_cast<KeepOp>(op)) {
    convertKeep(builder, keep, values);
  } else if (isa<arith::ArithDialect>(op.getDialect())) {
    builder.clone(op, values);
  } else if (auto compute = dyn_cast<ComputeOp>(op)) {
    isConverted &= succeeded(emitCompute(builder, compute, values));
  } else if (auto move = dyn_cast<MoveOp>(op)) {
    ComputeOp copy = copyNest(move);
    isConverted &= succeeded(emitCompute(builder, copy, values));
    copy.erase();
  } else if (auto sync = dyn_cast<SyncOp>(op)) {
    emitSync(builder, sync);
  }
}

void ProgramConverter::convertLoop(OpBuilder &builder, scf::ForOp loop, IRMapping &values) {
  Location loc = loop.getLoc();
  SmallVector<Value> carried = startLoop(builder, loop);
  auto copy = scf::ForOp::create(builder, loc, values.lookup(loop.getLowerBound()), values.lookup(loop.getUpperBound()),
                                 values.lookup(loop.getStep()), carried);
  values.map(loop.getInductionVar(), copy.getInductionVar());
  if (!carried.empty()) { // a loop without carried values has a terminator already
    OpBuilder end = OpBuilder::atBlockEnd(copy.getBody());
    scf::YieldOp::create(end, loc, copy.getRegionIterArgs());
  }
  OpBuilder body = OpBuilder::atBlockTerminator(copy.getBody());
  enterLoop(loop, copy.getRegionIterArgs());
  for (Operation &op : loop.getBody()->without_terminator())
    convertOp(body, op, values);
  endBlock(body, loc);
  copy.getBody()->getTerminator()->setOperands(carriedBy(loop));
  enterLoop(loop, copy.getResults());
}

/// Emits the body of a tile.keep, which runs at the workgroup's first tile and whenever the dims before the last
/// `along` ones advance. The tiles of a workgroup follow each other along the last dims of the grid.
void ProgramConverter::convertKeep(OpBuilder &builder, KeepOp keep, IRMapping &values) {
  Location loc = keep.getLoc();
  auto part = keep->getParentOfType<ParallelOp>();
  int64_t around = 1;
  for (auto [extent, size] :
       llvm::zip(part.getExtents().take_back(keep.getAlong()), part.getTiles().take_back(keep.getAlong())))
    around *= llvm::divideCeil(extent, size);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        length = arith::ConstantIndexOp::create(builder, loc, around);
  Value position = arith::RemUIOp::create(builder, loc, current.tile, length);
  Value isNew = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, position, zero);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, current.tile, current.first);
  auto branch =
      scf::IfOp::create(builder, loc, arith::OrIOp::create(builder, loc, isNew, isFirst), /*withElseRegion=*/false);
  OpBuilder body = OpBuilder::atBlockTerminator(branch.thenBlock());
  for (Operation &op : keep.getBody().front())
    convertOp(body, op, values);
}

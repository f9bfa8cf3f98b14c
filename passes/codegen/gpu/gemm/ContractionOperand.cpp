// An operand has the same order in shared memory as in global memory, line after line, so that the 16 bytes that are
// copied at once (an atom) are also read at once. Lines have a power of two of bytes. The layout is swizzled: the atoms
// of a line are permuted depending on the number of the line. Eight threads that read the same offset of 8 lines, or
// neighbouring offsets of one, then access different banks.
#include "passes/codegen/gpu/gemm/ContractionOperand.h"

#include "passes/codegen/common/EmitLoops.h"
#include "passes/layout/BufferLines.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/program/Slices.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

ContractionOperand::ContractionOperand(ContractionFrame &frame, LoadOp load, OperandShape shape)
    : frame(frame), load(load), shape(shape), type(load.getSlice().getType().getElementType()),
      bytes(elementBytes(type)), alongK(true) {
  alongK = liesByK(load, shape);
  granule = tilewright::copyGranule(load, shape);
  resident = isResident(frame.compute, load, shape);
  swizzledSource = isSwizzled(frame.compute, load);
}

void ContractionOperand::setOffset(int64_t byteOffset, int64_t slotBytes, int64_t stages) {
  if (resident)
    return;
  slotElements = slotBytes / bytes;
  auto space = cast<MemRefType>(frame.scratch.getType()).getMemorySpace();
  auto memory = MemRefType::get({stages * slotElements}, type, MemRefLayoutAttrInterface(), space);
  shared =
      memref::ViewOp::create(frame.builder, frame.loc, memory, frame.scratch, frame.constant(byteOffset), ValueRange());
}

void ContractionOperand::setBarrierOffset(int64_t byteOffset, int64_t count) {
  if (!swizzledSource)
    return;
  stages = count;
  auto space = cast<MemRefType>(frame.scratch.getType()).getMemorySpace();
  auto memory = MemRefType::get({stages}, frame.builder.getI64Type(), MemRefLayoutAttrInterface(), space);
  barriers =
      memref::ViewOp::create(frame.builder, frame.loc, memory, frame.scratch, frame.constant(byteOffset), ValueRange());
}

//===----------------------------------------------------------------------===//
// Offsets in shared memory
//===----------------------------------------------------------------------===//

Value ContractionOperand::swizzled(Value line, Value inner) {
  int64_t atoms = pitch() / atom();
  if (atoms <= 1 || shape.shifted)
    return inner;
  if (pairs) {
    Value group = frame.divide(line, kBankAtoms / std::min(atoms, kBankAtoms));
    Value pair = frame.modulo(group, std::min(atoms, kBankAtoms) / 2);
    return frame.builder.createOrFold<arith::XOrIOp>(frame.loc, inner, frame.multiply(pair, 2 * atom()));
  }
  Value turn = atoms >= kBankAtoms ? frame.modulo(line, kBankAtoms)
                                   : frame.modulo(frame.divide(line, kBankAtoms / atoms), atoms);
  return frame.builder.createOrFold<arith::XOrIOp>(frame.loc, inner, frame.multiply(turn, atom()));
}

/// Returns the offset of the panel that an element of a line is in.
Value ContractionOperand::panelOf(Value inner) {
  return frame.multiply(frame.divide(inner, pitch()), lines() * pitch());
}

/// Swizzles lines along K that are shorter than all banks together: they swap places with neighbouring lines depending
/// on the K slice that reads them. Otherwise the lines of different slices, which are a power of two apart, would be in
/// the same banks.
Value ContractionOperand::offsetOfLine(Value line) {
  int64_t beside = kBankAtoms * atom() / pitch();
  if (alongK || kOfSlice == 0 || beside <= 1 || shape.shifted)
    return line;
  Value unit = frame.modulo(frame.divide(line, kOfSlice), beside);
  return frame.builder.createOrFold<arith::XOrIOp>(frame.loc, line, unit);
}

Value ContractionOperand::inSlot(Value slot, Value point, Value k) {
  Value line = alongK ? point : k, inner = alongK ? k : point, panel;
  if (shape.shifted)
    inner = frame.add(inner, shiftOf(line, current));
  if (hasPanels()) {
    panel = panelOf(inner);
    inner = frame.modulo(inner, pitch());
  }
  Value place = frame.add(frame.multiply(offsetOfLine(line), pitch()), swizzled(line, inner));
  place = frame.add(frame.multiply(slot, slotElements), place);
  return panel ? frame.add(panel, place) : place;
}

Value ContractionOperand::matrix(Value slot, Value point, Value k) {
  slot = holdsAllSteps ? currentStep : slot;
  Value line = alongK ? point : k, inner = alongK ? k : point;
  Value place = frame.add(frame.multiply(slot, slotElements), frame.multiply(line, pitch()));
  if (hasPanels()) {
    place = frame.add(place, panelOf(inner));
    inner = frame.modulo(inner, pitch());
  }
  return frame.pointer(shared, frame.add(place, inner));
}

/// Returns the index of a point of the nest in the buffer that another nest filled.
SmallVector<Value> ContractionOperand::inBuffer(Value point, Value k) {
  SmallVector<Value> before = frame.indices;
  frame.indices[shape.k] = k;
  frame.indices[shape.dim] = point;
  SmallVector<Value> index = frame.at(load.getMap());
  frame.indices = before;
  return index;
}

Value ContractionOperand::ofTile(Value point) { return frame.add(frame.offsets[shape.dim], point); }

Value ContractionOperand::read(Value slot, Value point, Value k, int64_t count) {
  slot = holdsAllSteps ? currentStep : slot;
  auto vector = VectorType::get({count}, type);
  Value memory = resident ? frame.values.lookup(load.getSlice()) : shared;
  SmallVector<Value> index =
      resident ? inBuffer(ofTile(point), frame.add(current, k)) : SmallVector<Value>{inSlot(slot, point, k)};
  auto loaded = vector::LoadOp::create(frame.builder, frame.loc, vector, memory, index);
  loaded.setAlignment(count * bytes);
  return loaded;
}

Value ContractionOperand::pointer(Value slot, Value point, Value k) {
  slot = holdsAllSteps ? currentStep : slot;
  if (!resident)
    return frame.pointer(shared, inSlot(slot, point, k));
  Value buffer = frame.values.lookup(load.getSlice());
  return frame.pointer(buffer, frame.linear(buffer, inBuffer(ofTile(point), frame.add(current, k))));
}

/// Zeroes two regions of the buffer: the ends of lines, and whole lines after the last one. Tiles that are cut at the
/// border of a dim end at different offsets, so the regions start where the shortest tile ends.
void ContractionOperand::fillUp() {
  if (!resident)
    return;
  ArrayRef<int64_t> sizes = frame.compute.getSizes(), extents = frame.compute.getExtents();
  auto shortest = [&](int64_t dim) {
    int64_t cut = extents[dim] % sizes[dim];
    return cut == 0 ? sizes[dim] : cut;
  };
  Stretch k{shape.k, shortest(shape.k), kOfSteps(frame.compute, shape)};
  Stretch points{shape.dim, shortest(shape.dim), shape.points};
  Stretch line = alongK ? points : k, inner = alongK ? k : points;
  int64_t piece = pieceOfLines(), whole = inner.begin / piece * piece;
  bool endsInAtom = inner.begin % atom() != 0 || sizes[inner.dim] % atom() != 0;
  OpBuilder::InsertionGuard guard(frame.builder);
  if (sizes[k.dim] == k.end && sizes[points.dim] == points.end) {
    auto isCut = [&](int64_t dim) { return frame.isBelow(frame.ends[dim], frame.add(frame.offsets[dim], sizes[dim])); };
    Value either = frame.builder.createOrFold<arith::OrIOp>(frame.loc, isCut(k.dim), isCut(points.dim));
    auto branch = scf::IfOp::create(frame.builder, frame.loc, either, /*withElseRegion=*/false);
    frame.builder.setInsertionPointToStart(branch.thenBlock());
  }
  zeroBeyond({line.dim, 0, line.end}, {inner.dim, whole, inner.end}, endsInAtom ? 1 : atom());
  zeroBeyond({line.dim, line.begin / kBankAtoms * kBankAtoms, line.end}, {inner.dim, 0, whole}, atom());
}

/// Returns the elements by which neighbouring lines are shifted in the banks (operandLine): a line is an odd number of
/// them.
int64_t ContractionOperand::pieceOfLines() {
  int64_t line = load.getSlice().getType().getShape().back();
  return line / atom() % 2 == 0 ? 2 * atom() : atom();
}

/// Zeroes a region. Threads that store at the same time take one piece of a line each, or parts of it, then the same
/// piece of the next line.
void ContractionOperand::zeroBeyond(Stretch lines, Stretch inner, int64_t together) {
  OpBuilder &builder = frame.builder;
  OpBuilder::InsertionGuard guard(builder);
  int64_t count = lines.end - lines.begin, piece = pieceOfLines(), ofPiece = piece / together;
  int64_t total = count * llvm::divideCeil(inner.end - inner.begin, piece) * ofPiece;
  if (total == 0)
    return;
  auto loop =
      scf::ForOp::create(builder, frame.loc, frame.thread, frame.constant(total), frame.constant(frame.threads));
  builder.setInsertionPointToStart(loop.getBody());
  Value own = loop.getInductionVar(), rest = frame.divide(own, ofPiece);
  Value inPiece = frame.multiply(frame.modulo(own, ofPiece), together);
  Value place = frame.add(frame.multiply(frame.divide(rest, count), piece), inPiece);
  place = frame.add(place, inner.begin);
  Value isFilled = frame.isBelow(place, frame.constant(inner.end)); // the last piece may be shorter
  place = frame.add(frame.offsets[inner.dim], place);
  Value line = frame.add(frame.offsets[lines.dim], frame.add(frame.modulo(rest, count), lines.begin));
  Value none = arith::ConstantIntOp::create(builder, frame.loc, 0, 1);
  Value isInTile = frame.both(frame.isBelow(line, frame.ends[lines.dim]), frame.isBelow(place, frame.ends[inner.dim]));
  Value isBeyond = arith::SelectOp::create(builder, frame.loc, isInTile, none, isFilled);
  auto branch = scf::IfOp::create(builder, frame.loc, isBeyond, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  auto vector = VectorType::get({together}, type);
  Value zeros = arith::ConstantOp::create(builder, frame.loc, builder.getZeroAttr(vector));
  vector::StoreOp::create(builder, frame.loc, zeros, frame.values.lookup(load.getSlice()),
                          alongK ? inBuffer(line, place) : inBuffer(place, line))
      .setAlignment(together * bytes);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Emits the thread's share of `total` iterations that are divided among all threads; at most `together` of them are
/// emitted without a loop.
static void shareOut(ContractionFrame &frame, int64_t total, int64_t together, llvm::function_ref<void(Value)> body) {
  OpBuilder &builder = frame.builder;
  OpBuilder::InsertionGuard guard(builder);
  Value first = frame.thread;
  if (total < frame.threads) { // both are powers of two; otherwise all threads have the same number of iterations
    auto branch = scf::IfOp::create(builder, frame.loc, frame.isBelow(first, frame.constant(total)),
                                    /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
  } else if (int64_t turn = together * frame.threads; turn < total) {
    auto loop = scf::ForOp::create(builder, frame.loc, frame.constant(0), frame.constant(total), frame.constant(turn));
    builder.setInsertionPointToStart(loop.getBody());
    first = frame.add(first, loop.getInductionVar());
    total = turn;
  }
  for (int64_t begin = 0; begin < total; begin += frame.threads)
    body(frame.add(first, begin));
}

int64_t ContractionOperand::loadsTogether() {
  if (resident || swizzledSource || isAsync())
    return 0;
  int64_t copies = lines() * (alongK ? shape.step : shape.points) / granule;
  return std::min<int64_t>(llvm::divideCeil(copies, frame.threads), frame.costs.loadsTogether);
}

void ContractionOperand::copy(Value slot, Value first) {
  if (resident)
    return;
  if (swizzledSource)
    return copySwizzled(slot, first);
  if (shape.shifted)
    return copyPieces(slot, first);
  int64_t inner = alongK ? shape.step : shape.points, lines = alongK ? shape.points : shape.step;
  int64_t perLine = inner / granule;
  shareOut(frame, lines * perLine, isAsync() ? frame.costs.copiesTogether : frame.costs.loadsTogether, [&](Value own) {
    Value line = frame.divide(own, perLine), place = frame.multiply(frame.modulo(own, perLine), granule);
    copyGranule(slot, alongK ? line : place, alongK ? place : line, first);
  });
}

//===----------------------------------------------------------------------===//
// Lines that begin inside words: copies start at the piece in which a line begins
//===----------------------------------------------------------------------===//

/// Returns the offset in the operand of a line's first element, in the step that begins with K element `first`.
Value ContractionOperand::startOfLine(Value line, Value first) {
  SmallVector<Value> before = frame.indices;
  frame.indices[shape.k] = alongK ? first : frame.add(first, line);
  if (shape.dim >= 0)
    frame.indices[shape.dim] = alongK ? ofTile(line) : frame.offsets[shape.dim];
  Value start = frame.linear(frame.values.lookup(load.getSlice()), frame.at(load.getMap()));
  frame.indices = before;
  return start;
}

/// Returns the number of elements before the line's first element in the piece in which it begins.
Value ContractionOperand::shiftOf(Value line, Value first) { return frame.modulo(startOfLine(line, first), piece()); }

/// Reads both words that contain parts of the pair. Each is in a bank of its own for all threads of a warp; single
/// elements would not be, where every second line is shifted.
Value ContractionOperand::readWord(Value slot, Value point, Value k) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  slot = holdsAllSteps ? currentStep : slot;
  Value place = frame.add(frame.add(frame.multiply(slot, slotElements), frame.multiply(point, pitch())), k);
  SmallVector<Value> words;
  for (int64_t next : {int64_t(0), kWord}) {
    auto loaded = vector::LoadOp::create(builder, loc, VectorType::get({kWord}, type), shared, frame.add(place, next));
    loaded.setAlignment(kWord * bytes);
    Value word = vector::BitCastOp::create(builder, loc, VectorType::get({1}, builder.getI32Type()), loaded);
    words.push_back(vector::ExtractOp::create(builder, loc, word, 0));
  }
  Value bits = arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), shiftOf(point, current));
  bits = arith::ShLIOp::create(builder, loc, bits, arith::ConstantIntOp::create(builder, loc, 4, 32));
  return LLVM::FshrOp::create(builder, loc, words[1], words[0], bits);
}

/// Returns the line that a copy takes. Lines are one atom longer than a power of two and shorter than all banks
/// together; a warp takes lines that are in different banks.
Value ContractionOperand::lineOfCopy(Value number, int64_t atoms) {
  constexpr int64_t kPeriod = 8; ///< lines after which banks repeat
  int64_t together = kPeriod / std::max<int64_t>(atoms, 1);
  if (together <= 1 || atoms < 1 || lines() < kPeriod)
    return number;
  Value group = frame.multiply(frame.divide(number, kPeriod), kPeriod), own = frame.modulo(number, kPeriod);
  return frame.add(group, frame.add(frame.multiply(frame.modulo(own, together), atoms), frame.divide(own, together)));
}

/// Copies the pieces of all lines: as many per line as it has room for, and one more for lines that do not begin at the
/// first element of a piece.
void ContractionOperand::copyPieces(Value slot, Value first) {
  int64_t room = pitch() - atom(), pieces = room / piece();
  shareOut(frame, lines() * pieces, frame.costs.copiesTogether, [&](Value own) {
    copyPiece(slot, lineOfCopy(frame.divide(own, pieces), room / atom()), frame.modulo(own, pieces), first);
  });
  shareOut(frame, lines(), frame.costs.copiesTogether,
           [&](Value line) { copyPiece(slot, line, frame.constant(pieces), first); });
}

/// Copies one piece. If the line's end cuts the piece, copies the elements before the end and zeroes the rest.
void ContractionOperand::copyPiece(Value slot, Value line, Value number, Value first) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  int64_t inner = alongK ? shape.k : shape.dim, lineDim = alongK ? shape.dim : shape.k;
  Value lineBegin = alongK ? first : frame.offsets[shape.dim];
  Value start = startOfLine(line, first), shift = frame.modulo(start, piece());
  // Offset along the line, including the elements before it.
  Value place = frame.multiply(number, piece());
  int64_t whole = alongK ? shape.step : shape.points;
  Value count = frame.constant(whole);
  if (!frame.isWhole(inner, whole))
    count = builder.createOrFold<arith::MinUIOp>(
        loc, count, builder.createOrFold<arith::SubIOp>(loc, frame.ends[inner], lineBegin));
  Value end = frame.add(count, shift);
  Value hasFirst = frame.isBelow(place, end);
  if (lineDim >= 0 && !frame.isWhole(lineDim, alongK ? shape.points : shape.step)) {
    Value index = alongK ? ofTile(line) : frame.add(first, line);
    hasFirst = frame.both(hasFirst, frame.isBelow(index, frame.ends[lineDim]));
  }
  Value left = builder.createOrFold<arith::MinUIOp>(loc, builder.createOrFold<arith::SubIOp>(loc, end, place),
                                                    frame.constant(piece()));
  // If nothing is read, use a valid address of the operand.
  Value zero = frame.constant(0);
  Value read = builder.createOrFold<arith::SelectOp>(loc, hasFirst, frame.multiply(left, bytes), zero);
  read = arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), read);
  Value source = frame.add(builder.createOrFold<arith::SubIOp>(loc, start, shift), place);
  source = builder.createOrFold<arith::SelectOp>(loc, hasFirst, source, zero);
  Value target = frame.add(frame.add(frame.multiply(slot, slotElements), frame.multiply(line, pitch())), place);
  copyAsync(target, source, piece() * bytes, read);
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

void ContractionOperand::byOneThread(llvm::function_ref<void()> body) {
  emitIf(frame.builder, frame.loc, frame.isBelow(frame.thread, frame.constant(1)), body);
}

void ContractionOperand::initBarriers() {
  byOneThread([&] {
    Value one = arith::ConstantIntOp::create(frame.builder, frame.loc, 1, 32);
    for (int64_t stage = 0; stage < stages; ++stage)
      NVVM::MBarrierInitOp::create(frame.builder, frame.loc, frame.pointer(barriers, frame.constant(stage)), one,
                                   Value());
    NVVM::FenceMbarrierInitOp::create(frame.builder, frame.loc); // bulk copies use the async proxy
  });
}

void ContractionOperand::invalidateBarriers() {
  byOneThread([&] {
    for (int64_t stage = 0; stage < stages; ++stage)
      NVVM::MBarrierInvalOp::create(frame.builder, frame.loc, frame.pointer(barriers, frame.constant(stage)));
  });
}

/// Copies a step of a tile with a swizzled layout in one piece: its lines are contiguous, in the order of the slot.
void ContractionOperand::copySwizzled(Value slot, Value first) {
  byOneThread([&] {
    OpBuilder &builder = frame.builder;
    Location loc = frame.loc;
    Value memory = frame.values.lookup(load.getSlice()), barrier = frame.pointer(barriers, slot);
    Value bytesOfStep = arith::ConstantIntOp::create(builder, loc, shape.points * lineBytes(), 32);
    Value source = frame.linear(memory, {frame.divide(first, shape.step), frame.offsets[shape.dim], frame.constant(0)});
    NVVM::MBarrierArriveExpectTxOp::create(builder, loc, TypeRange(), barrier, bytesOfStep, NVVM::MemScopeKind::CTA,
                                           /*relaxed=*/false, Value());
    // PTX ISA 8.0 names the destination in the block's own shared memory only as an address of shared::cluster.
    auto cluster =
        LLVM::LLVMPointerType::get(builder.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    Value target =
        LLVM::AddrSpaceCastOp::create(builder, loc, cluster, frame.pointer(shared, frame.multiply(slot, slotElements)));
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(builder, loc, target, frame.pointer(memory, source), barrier,
                                                     bytesOfStep, Value(), Value());
  });
}

/// Waits for the copy of a step. A slot is filled once every `stages` steps; the parity of its phases alternates with
/// those fills.
void ContractionOperand::await(Value step) {
  if (!swizzledSource)
    return;
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  constexpr int64_t kTicks = 10000000; // time limit of one try
  auto word = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), value);
  };
  Value parity = word(frame.modulo(frame.divide(step, stages), 2));
  NVVM::MBarrierTryWaitParityOp::create(builder, loc, frame.pointer(barriers, frame.modulo(step, stages)), parity,
                                        arith::ConstantIntOp::create(builder, loc, kTicks, 32));
}

/// Emits cp.async from `source` to `target`. `read` is the number of bytes to read; the remaining ones are zeroed.
void ContractionOperand::copyAsync(Value target, Value source, int64_t size, Value read) {
  OpBuilder &builder = frame.builder;
  auto cache = size == kAtomBytes ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(builder, frame.loc, frame.pointer(shared, target),
                          frame.pointer(frame.values.lookup(load.getSlice()), source), builder.getI32IntegerAttr(size),
                          NVVM::LoadCacheModifierKindAttr::get(builder.getContext(), cache), read);
}

void ContractionOperand::copyGranule(Value slot, Value point, Value k, Value first) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value target = inSlot(slot, point, k);
  SmallVector<Value> before = frame.indices;
  auto locate = [&](int64_t dim, Value index, bool isWhole) {
    frame.indices[dim] = index;
    return isWhole ? Value() : frame.isBelow(index, frame.ends[dim]);
  };
  Value hasK = locate(shape.k, frame.add(first, k), frame.isWhole(shape.k, shape.step)), hasPoint;
  if (shape.dim >= 0)
    hasPoint = locate(shape.dim, ofTile(point), frame.isWhole(shape.dim, shape.points));
  Value valid = frame.both(hasK, hasPoint);
  if (std::optional<IntegerSet> guard = load.getGuard()) {
    valid = frame.both(valid, frame.isWithin(*guard));
    SmallVector<Value> source = frame.at(load.getMap());
    frame.indices = before;
    if (valid) // elsewhere nothing is read, but the address is still one of the operand
      for (Value &index : source)
        index = arith::SelectOp::create(builder, loc, valid, index, frame.constant(0));
    copyFrom(source, target, valid);
    return;
  }
  if (valid && isAsync()) {
    // Nothing is read here, but the address must be a valid one of the operand.
    for (int64_t dim : {shape.k, shape.dim})
      if (dim >= 0)
        frame.indices[dim] =
            arith::SelectOp::create(builder, loc, valid, frame.indices[dim], frame.offsets[dim]).getResult();
  } else if (valid) {
    // The value is not used: read the last element, whose sector other threads request as well.
    auto last = [&](int64_t dim) {
      return builder.createOrFold<arith::SubIOp>(loc, frame.ends[dim], frame.constant(1));
    };
    for (auto [dim, isThere] : {std::pair(shape.k, hasK), std::pair(shape.dim, hasPoint)})
      if (isThere)
        frame.indices[dim] = arith::MinUIOp::create(builder, loc, frame.indices[dim], last(dim)).getResult();
    int64_t inner = alongK ? shape.k : shape.dim;
    if (Value hasLine = alongK ? hasPoint : hasK)
      frame.indices[inner] = arith::SelectOp::create(builder, loc, hasLine, frame.indices[inner], last(inner));
  }
  SmallVector<Value> source = frame.at(load.getMap());
  frame.indices = before;
  copyFrom(source, target, valid);
}

/// Copies the elements at an index of the operand; zeros where `valid` (null: everywhere) does not hold.
void ContractionOperand::copyFrom(ValueRange source, Value target, Value valid) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  Value memory = frame.values.lookup(load.getSlice());
  if (!isAsync()) {
    Value value = memref::LoadOp::create(builder, loc, memory, source);
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    if (valid)
      value = arith::SelectOp::create(builder, loc, valid, value, zero);
    memref::StoreOp::create(builder, loc, value, shared, target);
    return;
  }
  int64_t size = copyBytes();
  Value read;
  if (valid) {
    auto word = [&](int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32).getResult(); };
    read = arith::SelectOp::create(builder, loc, valid, word(size), word(0));
  }
  copyAsync(target, frame.linear(memory, source), size, read);
}

// mma.sync m16n8 with 32 bytes of terms: k16 of f16 or bf16, k8 of tf32, k32 of bytes. A warp has whole 16 x 8 blocks
// of the tile; its lanes get the factors from shared memory with ldmatrix, which takes any bytes for pairs of them and
// so serves all types where the terms lie innermost. Where they do not, elements of two bytes are transposed on the
// way, words are read one by one, and bytes of the lane operand come in transposed pairs of neighbouring columns, which
// are then taken apart: of 16 columns the even ones are one block and the odd ones the other. Which lane has which
// element: PTX ISA, "Matrix fragments for mma.m16n8k16" and the others.
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLanes = 32, kRows = 16, kColumns = 8, kMatrix = 8, kWord = 4;
constexpr int64_t kColumnPair = 2 * kColumns; ///< what one ldmatrix of four brings of the lane operand

class WarpShare : public AccumulatorFragment, ShareInputs {
public:
  explicit WarpShare(const ShareInputs &inputs)
      : ShareInputs(inputs), builder(frame.builder), loc(frame.loc), depth(kernel.depth),
        bytes(2 * kAtomBytes / depth), deals(bytes == 1 && !lanes.liesAlongK()) {
    lane = frame.modulo(frame.thread, kLanes);
    Value warp = frame.modulo(frame.divide(frame.thread, kLanes), tiling.rowUnits * tiling.laneUnits);
    warpRow = frame.multiply(frame.divide(warp, tiling.laneUnits), tiling.ownRows);
    warpLane = frame.multiply(frame.modulo(warp, tiling.laneUnits), tiling.ownLanes);
    firstK = firstKOf(frame, tiling);
    firstRow = frame.add(warpRow, frame.divide(lane, 4));
    run = deals ? 4 : 2;
    firstLane = frame.add(warpLane, frame.multiply(frame.modulo(lane, 4), run));
    rowBits = 3 | (tiling.laneUnits - 1) * kLanes;
    for (int64_t row = 0; row < tiling.ownRows; row += kRows)
      for (int64_t column = 0; column < tiling.ownLanes; column += run * kColumns / 2)
        for (int64_t half : {0, 1})
          for (int64_t next = 0; next < run; ++next)
            places.push_back({row + half * kMatrix, column + next});
  }

  SmallVector<Value> multiplyAdd(ValueRange sums, Value slot) override {
    SmallVector<Value> next(sums);
    for (int64_t own = 0; own < tiling.ownK(); own += depth) {
      Value term = frame.add(firstK, own);
      SmallVector<SmallVector<Value>> a, b;
      for (int64_t row = 0; row < tiling.ownRows; row += kRows)
        a.push_back(loadRows(slot, row, term));
      for (int64_t column = 0; column < tiling.ownLanes; column += kColumnPair) {
        SmallVector<Value> pair = loadColumns(slot, column, term);
        b.push_back({pair[0], pair[1]});
        b.push_back({pair[2], pair[3]});
      }
      for (auto [i, left] : llvm::enumerate(a))
        for (auto [j, right] : llvm::enumerate(b))
          multiplyBlock(left, right, i, j, next);
    }
    return next;
  }

private:
  /// Terms of half an instruction: an atom.
  int64_t half() const { return depth / 2; }

  /// Matrices 0 and 1 are the upper and lower rows of the first terms, 2 and 3 those of the others.
  SmallVector<Value> loadRows(Value slot, int64_t row, Value term) {
    Value point = frame.add(warpRow, row);
    if (rows.isShifted() || (!rows.liesAlongK() && bytes != 2))
      return gather(rows, slot, point, term, {{0, 0}, {kMatrix, 0}, {0, half()}, {kMatrix, half()}});
    Value odd = frame.modulo(frame.divide(lane, kMatrix), 2), upper = frame.divide(lane, 2 * kMatrix);
    return load(rows, slot, frame.add(point, frame.multiply(odd, kMatrix)),
                frame.add(frame.multiply(upper, half()), term));
  }

  /// Matrices 0 and 1 are the first and the other terms of the first columns, 2 and 3 those of the next columns.
  SmallVector<Value> loadColumns(Value slot, int64_t column, Value term) {
    Value point = frame.add(warpLane, column);
    if (deals)
      return dealColumns(slot, point, term);
    if (lanes.isShifted() || (!lanes.liesAlongK() && bytes != 2))
      return gather(lanes, slot, point, term, {{0, 0}, {0, half()}, {kMatrix, 0}, {kMatrix, half()}});
    Value odd = frame.modulo(frame.divide(lane, kMatrix), 2), upper = frame.divide(lane, 2 * kMatrix);
    return load(lanes, slot, frame.add(point, frame.multiply(upper, kMatrix)),
                frame.add(frame.multiply(odd, half()), term));
  }

  /// Each lane gives the address of a line of a matrix that begins at the point and term.
  SmallVector<Value> load(ContractionOperand &operand, Value slot, Value point, Value term) {
    bool transposed = !operand.liesAlongK();
    (transposed ? term : point) = frame.add(transposed ? term : point, frame.modulo(lane, kMatrix));
    SmallVector<Value> words =
        loadMatrices(builder, loc, operand.pointer(slot, held(operand, point), term), transposed);
    return llvm::map_to_vector(words, [&](Value word) { return asFactor(word); });
  }

  /// What further rows would add up is not stored.
  Value held(ContractionOperand &operand, Value point) {
    return &operand == &rows && tiling.heldRows < tiling.rows ? frame.modulo(point, tiling.heldRows) : point;
  }

  /// The lane's words, each the terms of one point: from so many points and terms on.
  SmallVector<Value> gather(ContractionOperand &operand, Value slot, Value point, Value term,
                            ArrayRef<std::pair<int64_t, int64_t>> places) {
    point = frame.add(point, frame.divide(lane, 4));
    term = frame.add(term, frame.multiply(frame.modulo(lane, 4), kWord / bytes));
    return llvm::map_to_vector(places, [&](std::pair<int64_t, int64_t> place) {
      if (operand.isShifted() && operand.liesAlongK())
        return asFactor(
            operand.readWord(slot, held(operand, frame.add(point, place.first)), frame.add(term, place.second)));
      SmallVector<Value> elements;
      for (int64_t i = 0; i < kWord / bytes; ++i) {
        Value own = operand.read(slot, held(operand, frame.add(point, place.first)), frame.add(term, place.second + i),
                                 /*count=*/1);
        elements.push_back(vector::ExtractOp::create(builder, loc, own, 0));
      }
      Value packed =
          vector::FromElementsOp::create(builder, loc, VectorType::get({kWord / bytes}, operand.element()), elements);
      Value words = vector::BitCastOp::create(builder, loc, VectorType::get({1}, builder.getI32Type()), packed);
      return asFactor(vector::ExtractOp::create(builder, loc, words, 0));
    });
  }

  /// A line of a matrix is one term of 16 columns, in pairs. Matrices 0 and 1 have, of each four terms that a lane
  /// needs, two each: lines that are neighbours modulo 8, which meet in no bank. So the two change places for half the
  /// lanes.
  SmallVector<Value> dealColumns(Value slot, Value point, Value term) {
    Value line = frame.modulo(lane, kMatrix), matrix = frame.divide(lane, kMatrix);
    Value later = frame.modulo(frame.add(frame.divide(line, 4), frame.modulo(matrix, 2)), 2);
    Value own = frame.add(frame.multiply(frame.divide(line, 2), 4), frame.modulo(line, 2));
    own = frame.add(frame.add(own, frame.multiply(later, 2)), frame.multiply(frame.divide(matrix, 2), half()));
    SmallVector<Value> words =
        loadMatrices(builder, loc, lanes.pointer(slot, point, frame.add(term, own)), /*transposed=*/true);
    Value inOrder = frame.isBelow(frame.modulo(lane, 4), frame.constant(2));
    SmallVector<Value> even, odd;
    for (int64_t i : {0, 2}) {
      Value first = arith::SelectOp::create(builder, loc, inOrder, words[i], words[i + 1]);
      Value second = arith::SelectOp::create(builder, loc, inOrder, words[i + 1], words[i]);
      even.push_back(everySecond(first, second, 0));
      odd.push_back(everySecond(first, second, 1));
    }
    return {even[0], even[1], odd[0], odd[1]};
  }

  Value everySecond(Value first, Value second, int64_t begin) {
    auto fourBytes = VectorType::get({4}, builder.getI8Type());
    Value a = LLVM::BitcastOp::create(builder, loc, fourBytes, first),
          b = LLVM::BitcastOp::create(builder, loc, fourBytes, second);
    auto at = [&](int64_t i) { return static_cast<int32_t>(begin + 2 * i); };
    Value own = LLVM::ShuffleVectorOp::create(builder, loc, a, b, ArrayRef<int32_t>{at(0), at(1), at(2), at(3)});
    return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), own);
  }

  /// A word of shared memory as the instruction takes it.
  Value asFactor(Value word) {
    if (rows.element().isF16())
      return LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, builder.getF16Type()), word);
    if (!rows.element().isF32())
      return word;
    Value number = LLVM::BitcastOp::create(builder, loc, builder.getF32Type(), word);
    return NVVM::ConvertFloatToTF32Op::create(builder, loc, builder.getI32Type(), number, NVVM::FPRoundingMode::RNA,
                                              NVVM::SaturationMode::NONE, /*relu=*/false);
  }

  NVVM::MMATypes ptxType(const std::string &type) const {
    return llvm::StringSwitch<NVVM::MMATypes>(type)
        .Case("f16", NVVM::MMATypes::f16)
        .Case("bf16", NVVM::MMATypes::bf16)
        .Case("f32", NVVM::MMATypes::tf32)
        .Case("si8", NVVM::MMATypes::s8)
        .Default(NVVM::MMATypes::u8);
  }

  /// Where the block's sums are among all: four in a row where columns were dealt out to two blocks.
  int64_t indexOf(int64_t i, int64_t j, int64_t part) const {
    int64_t columns = tiling.ownLanes / kColumns, half = part / 2, next = part % 2;
    return deals ? ((i * columns + j / 2 * 2) * 2 + half * 2) * 2 + next * 2 + j % 2
                 : (i * columns + j) * 4 + half * 2 + next;
  }

  void multiplyBlock(ValueRange a, ValueRange b, int64_t i, int64_t j, MutableArrayRef<Value> sums) {
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), {sum, sum, sum, sum});
    SmallVector<Value> own;
    for (int64_t part = 0; part < 4; ++part)
      own.push_back(sums[indexOf(i, j, part)]);
    std::optional<NVVM::MMAIntOverflow> overflow;
    if (sum.isInteger())
      overflow = NVVM::MMAIntOverflow::wrapped;
    Value block =
        NVVM::MmaOp::create(builder, loc, type, a, b, own, ArrayRef<int64_t>{kRows, kColumns, depth}, std::nullopt,
                            overflow, std::array{ptxType(kernel.types.rows), ptxType(kernel.types.lanes)},
                            std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (int64_t part = 0; part < 4; ++part)
      sums[indexOf(i, j, part)] = LLVM::ExtractValueOp::create(builder, loc, block, part);
  }

  OpBuilder &builder;
  Location loc;
  int64_t depth, bytes; ///< terms of an instruction, bytes of a factor
  bool deals;           ///< columns, even and odd ones
  Value lane, warpRow, warpLane, firstK;
};
} // namespace

std::unique_ptr<AccumulatorFragment> tilewright::makeWarpShare(const ShareInputs &inputs) {
  return std::make_unique<WarpShare>(inputs);
}

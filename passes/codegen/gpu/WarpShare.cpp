// mma.sync m16n8k16 with factors in f16 or bf16 and sums in f32. A warp has whole 16 x 8 blocks of the tile; its lanes
// get the factors from shared memory with ldmatrix, transposed on the way where they lie the other way round. Which
// lane has which element: PTX ISA, "Matrix fragments for mma.m16n8k16".
#include "passes/codegen/gpu/SumShare.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLanes = 32, kRows = 16, kColumns = 8, kDepth = 16, kMatrix = 8;
constexpr int64_t kColumnPair = 2 * kColumns; ///< what one ldmatrix of four brings of the lane operand

class WarpShare : public SumShare {
public:
  explicit WarpShare(const ShareInputs &inputs)
      : frame(inputs.frame), builder(inputs.frame.builder), loc(inputs.frame.loc), rows(inputs.rows),
        lanes(inputs.lanes), tiling(inputs.tiling), isHalf(inputs.rows.element().isF16()) {
    lane = frame.modulo(frame.thread, kLanes);
    Value warp = frame.modulo(frame.divide(frame.thread, kLanes), tiling.rowUnits * tiling.laneUnits);
    warpRow = frame.multiply(frame.divide(warp, tiling.laneUnits), tiling.ownRows);
    warpLane = frame.multiply(frame.modulo(warp, tiling.laneUnits), tiling.ownLanes);
    firstRow = frame.add(warpRow, frame.divide(lane, 4));
    firstLane = frame.add(warpLane, frame.multiply(frame.modulo(lane, 4), 2));
    run = 2;
    for (int64_t row = 0; row < tiling.ownRows; row += kRows)
      for (int64_t column = 0; column < tiling.ownLanes; column += kColumns)
        for (int64_t half : {0, 1})
          for (int64_t next : {0, 1})
            places.push_back({row + half * kMatrix, column + next});
  }

  SmallVector<Value> multiplyAdd(ValueRange sums, Value slot) override {
    SmallVector<Value> next(sums);
    int64_t columns = tiling.ownLanes / kColumns;
    for (int64_t term = 0; term < tiling.step; term += kDepth) {
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
          multiplyBlock(left, right, MutableArrayRef(next).slice((i * columns + j) * 4, 4));
    }
    return next;
  }

private:
  /// Matrices 0 and 1 are the upper and lower rows of the first terms, 2 and 3 those of the others.
  SmallVector<Value> loadRows(Value slot, int64_t row, int64_t term) {
    Value inEight = frame.modulo(lane, kMatrix), odd = frame.modulo(frame.divide(lane, kMatrix), 2),
          upper = frame.divide(lane, 2 * kMatrix);
    Value point = frame.add(frame.add(warpRow, row), frame.multiply(odd, kMatrix));
    Value first = frame.add(frame.multiply(upper, kMatrix), term);
    return load(rows, slot, point, first, inEight);
  }

  /// Matrices 0 and 1 are the first and the other terms of the first columns, 2 and 3 those of the next columns.
  SmallVector<Value> loadColumns(Value slot, int64_t column, int64_t term) {
    Value inEight = frame.modulo(lane, kMatrix), odd = frame.modulo(frame.divide(lane, kMatrix), 2),
          upper = frame.divide(lane, 2 * kMatrix);
    Value point = frame.add(frame.add(warpLane, column), frame.multiply(upper, kMatrix));
    Value first = frame.add(frame.multiply(odd, kMatrix), term);
    return load(lanes, slot, point, first, inEight);
  }

  /// Each lane gives the address of a line of a matrix that begins at the point and term.
  SmallVector<Value> load(ContractionOperand &operand, Value slot, Value point, Value term, Value line) {
    bool transposed = !operand.liesAlongTerms();
    (transposed ? term : point) = frame.add(transposed ? term : point, line);
    Type word = builder.getI32Type();
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), {word, word, word, word});
    auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
    auto shape = NVVM::LdStMatrixShapeAttr::get(builder.getContext(), kMatrix, kMatrix);
    Value loaded = NVVM::LdMatrixOp::create(builder, loc, type, operand.pointer(slot, point, term), /*num=*/4, layout,
                                            shape, NVVM::LdStMatrixEltType::B16);
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i) {
      Value own = LLVM::ExtractValueOp::create(builder, loc, loaded, i);
      if (isHalf)
        own = LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, builder.getF16Type()), own);
      words.push_back(own);
    }
    return words;
  }

  void multiplyBlock(ValueRange a, ValueRange b, MutableArrayRef<Value> sums) {
    Type f32 = builder.getF32Type();
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), {f32, f32, f32, f32});
    auto element = isHalf ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    Value block = NVVM::MmaOp::create(
        builder, loc, type, a, b, ValueRange(sums), ArrayRef<int64_t>{kRows, kColumns, kDepth}, std::nullopt,
        std::nullopt, std::array{element, element}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = LLVM::ExtractValueOp::create(builder, loc, block, static_cast<int64_t>(i));
  }

  ContractionFrame &frame;
  OpBuilder &builder;
  Location loc;
  ContractionOperand &rows, &lanes;
  const SumTiling &tiling;
  bool isHalf;
  Value lane, warpRow, warpLane;
};
} // namespace

std::unique_ptr<SumShare> tilewright::makeWarpShare(const ShareInputs &inputs) {
  return std::make_unique<WarpShare>(inputs);
}

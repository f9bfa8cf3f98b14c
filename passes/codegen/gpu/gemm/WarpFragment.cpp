// Computes accumulators with mma.sync m16n8 and 32 bytes of K: k16 of f16 or bf16, k8 of tf32, k32 of bytes. A warp has
// whole 16 x 8 blocks of the tile. Its lanes load operands from shared memory with ldmatrix, which treats all types as
// pairs of bytes and therefore serves every operand that is contiguous along K. For other operands, two-byte elements
// are transposed by ldmatrix and words are read one by one. Bytes of the N operand are loaded as transposed pairs of
// neighbouring columns, which are then split: of 16 columns, the even ones form one block and the odd ones the other.
// The assignment of elements to lanes is that of the PTX ISA, "Matrix fragments for mma.m16n8k16" and the following
// sections.
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"
#include "passes/target/AccessBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kRows = 16, kColumns = 8, kMatrix = 8, kWord = 4;
constexpr int64_t kColumnPair = 2 * kColumns; ///< columns of the N operand that one ldmatrix of four matrices loads

class WarpFragment : public AccumulatorFragment, FragmentInputs {
public:
  explicit WarpFragment(const FragmentInputs &inputs)
      : FragmentInputs(inputs), builder(frame.builder), loc(frame.loc), depth(kernel.depth),
        bytes(2 * kAtomBytes / depth), splits(bytes == 1 && !rhs.liesAlongK()) {
    lane = frame.modulo(frame.thread, kWarpLanes);
    Value warp = frame.modulo(frame.divide(frame.thread, kWarpLanes), tiling.mUnits * tiling.nUnits);
    warpM = frame.multiply(frame.divide(warp, tiling.nUnits), tiling.ownM);
    warpN = frame.multiply(frame.modulo(warp, tiling.nUnits), tiling.ownN);
    firstK = firstKOf(frame, tiling);
    firstM = frame.add(warpM, frame.divide(lane, 4));
    run = splits ? 4 : 2;
    firstN = frame.add(warpN, frame.multiply(frame.modulo(lane, 4), run));
    rowBits = 3 | (tiling.nUnits - 1) * kWarpLanes;
    for (int64_t row = 0; row < tiling.ownM; row += kRows)
      for (int64_t column = 0; column < tiling.ownN; column += run * kColumns / 2)
        for (int64_t half : {0, 1})
          for (int64_t next = 0; next < run; ++next)
            offsets.push_back({row + half * kMatrix, column + next});
  }

  SmallVector<Value> multiplyAdd(ValueRange accumulators, Value slot) override {
    SmallVector<Value> next(accumulators);
    for (int64_t own = 0; own < tiling.ownK(); own += depth) {
      Value k = frame.add(firstK, own);
      SmallVector<SmallVector<Value>> a, b;
      for (int64_t row = 0; row < tiling.ownM; row += kRows)
        a.push_back(loadLhs(slot, row, k));
      for (int64_t column = 0; column < tiling.ownN; column += kColumnPair) {
        SmallVector<Value> pair = loadRhs(slot, column, k);
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
  /// K elements in half an instruction, which is one atom.
  int64_t half() const { return depth / 2; }

  /// Loads the M operand: matrices 0 and 1 are the upper and lower rows of the first half of K, 2 and 3 those of the
  /// second half.
  SmallVector<Value> loadLhs(Value slot, int64_t row, Value k) {
    Value point = frame.add(warpM, row);
    if (lhs.isShifted() || (!lhs.liesAlongK() && bytes != 2))
      return gather(lhs, slot, point, k, {{0, 0}, {kMatrix, 0}, {0, half()}, {kMatrix, half()}});
    Value odd = frame.modulo(frame.divide(lane, kMatrix), 2), upper = frame.divide(lane, 2 * kMatrix);
    return load(lhs, slot, frame.add(point, frame.multiply(odd, kMatrix)), frame.add(frame.multiply(upper, half()), k));
  }

  /// Loads the N operand: matrices 0 and 1 are the first and second half of K of the first columns, 2 and 3 those of
  /// the next columns.
  SmallVector<Value> loadRhs(Value slot, int64_t column, Value k) {
    Value point = frame.add(warpN, column);
    if (splits)
      return splitColumns(slot, point, k);
    if (rhs.isShifted() || (!rhs.liesAlongK() && bytes != 2))
      return gather(rhs, slot, point, k, {{0, 0}, {0, half()}, {kMatrix, 0}, {kMatrix, half()}});
    Value odd = frame.modulo(frame.divide(lane, kMatrix), 2), upper = frame.divide(lane, 2 * kMatrix);
    return load(rhs, slot, frame.add(point, frame.multiply(upper, kMatrix)), frame.add(frame.multiply(odd, half()), k));
  }

  /// Loads four matrices. Each lane gives the address of a line of a matrix that begins at the given point and K
  /// element.
  SmallVector<Value> load(ContractionOperand &operand, Value slot, Value point, Value k) {
    bool transposed = !operand.liesAlongK();
    (transposed ? k : point) = frame.add(transposed ? k : point, frame.modulo(lane, kMatrix));
    SmallVector<Value> words = loadMatrices(builder, loc, operand.pointer(slot, held(operand, point), k), transposed);
    return llvm::map_to_vector(words, [&](Value word) { return asOperand(word); });
  }

  /// Maps rows that are not stored to rows of the tile, because their accumulators are not used.
  Value held(ContractionOperand &operand, Value point) {
    return &operand == &lhs && tiling.heldM < tiling.m ? frame.modulo(point, tiling.heldM) : point;
  }

  /// Gathers the lane's words, each holding K elements of one point, at the given `distances` from the point and K
  /// element.
  SmallVector<Value> gather(ContractionOperand &operand, Value slot, Value point, Value k,
                            ArrayRef<std::pair<int64_t, int64_t>> distances) {
    point = frame.add(point, frame.divide(lane, 4));
    k = frame.add(k, frame.multiply(frame.modulo(lane, 4), kWord / bytes));
    return llvm::map_to_vector(distances, [&](std::pair<int64_t, int64_t> distance) {
      if (operand.isShifted() && operand.liesAlongK())
        return asOperand(
            operand.readWord(slot, held(operand, frame.add(point, distance.first)), frame.add(k, distance.second)));
      SmallVector<Value> elements;
      for (int64_t i = 0; i < kWord / bytes; ++i) {
        Value own =
            operand.read(slot, held(operand, frame.add(point, distance.first)), frame.add(k, distance.second + i),
                         /*count=*/1);
        elements.push_back(vector::ExtractOp::create(builder, loc, own, 0));
      }
      Value packed =
          vector::FromElementsOp::create(builder, loc, VectorType::get({kWord / bytes}, operand.element()), elements);
      Value words = vector::BitCastOp::create(builder, loc, VectorType::get({1}, builder.getI32Type()), packed);
      return asOperand(vector::ExtractOp::create(builder, loc, words, 0));
    });
  }

  /// Loads columns of bytes that are split into two blocks. A line of a matrix is one K element of 16 columns, in
  /// pairs. Of each four K elements that a lane needs, matrices 0 and 1 have two each, in lines that differ modulo 8
  /// and therefore do not conflict in banks. For this, half of the lanes swap the two matrices.
  SmallVector<Value> splitColumns(Value slot, Value point, Value k) {
    Value line = frame.modulo(lane, kMatrix), matrix = frame.divide(lane, kMatrix);
    Value later = frame.modulo(frame.add(frame.divide(line, 4), frame.modulo(matrix, 2)), 2);
    Value own = frame.add(frame.multiply(frame.divide(line, 2), 4), frame.modulo(line, 2));
    own = frame.add(frame.add(own, frame.multiply(later, 2)), frame.multiply(frame.divide(matrix, 2), half()));
    SmallVector<Value> words =
        loadMatrices(builder, loc, rhs.pointer(slot, point, frame.add(k, own)), /*transposed=*/true);
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

  /// Returns a word of shared memory with the type that the instruction takes.
  Value asOperand(Value word) {
    if (lhs.element().isF16())
      return LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, builder.getF16Type()), word);
    if (!lhs.element().isF32())
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

  /// Returns the index of a block's accumulator among all: four in a row if columns are split into two blocks.
  int64_t indexOf(int64_t i, int64_t j, int64_t part) const {
    int64_t columns = tiling.ownN / kColumns, half = part / 2, next = part % 2;
    return splits ? ((i * columns + j / 2 * 2) * 2 + half * 2) * 2 + next * 2 + j % 2
                  : (i * columns + j) * 4 + half * 2 + next;
  }

  void multiplyBlock(ValueRange a, ValueRange b, int64_t i, int64_t j, MutableArrayRef<Value> accumulators) {
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), {sum, sum, sum, sum});
    SmallVector<Value> own;
    for (int64_t part = 0; part < 4; ++part)
      own.push_back(accumulators[indexOf(i, j, part)]);
    std::optional<NVVM::MMAIntOverflow> overflow;
    if (sum.isInteger())
      overflow = NVVM::MMAIntOverflow::wrapped;
    Value block =
        NVVM::MmaOp::create(builder, loc, type, a, b, own, ArrayRef<int64_t>{kRows, kColumns, depth}, std::nullopt,
                            overflow, std::array{ptxType(kernel.types.lhs), ptxType(kernel.types.rhs)},
                            std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (int64_t part = 0; part < 4; ++part)
      accumulators[indexOf(i, j, part)] = LLVM::ExtractValueOp::create(builder, loc, block, part);
  }

  OpBuilder &builder;
  Location loc;
  int64_t depth, bytes; ///< K elements per instruction; bytes per element of an operand
  bool splits;          ///< true if even and odd columns are split into two blocks
  Value lane, warpM, warpN, firstK;
};
} // namespace

std::unique_ptr<AccumulatorFragment> tilewright::makeWarpFragment(const FragmentInputs &inputs) {
  return std::make_unique<WarpFragment>(inputs);
}

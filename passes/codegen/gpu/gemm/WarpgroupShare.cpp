// Computes accumulators with wgmma: four warps multiply 64 rows of the tile by up to 256 columns and 32 bytes of K at a
// time (k16 of f16 or bf16, k8 of tf32, k32 of bytes), and read both operands directly from shared memory through
// descriptors. Each warp has 16 of the rows; its lanes hold the accumulators like those of adjacent mma.sync m16n8
// blocks (PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16"). The instruction is asynchronous: accumulators
// may be neither read nor written until its commit group has been waited for.
//
// No descriptor can express the line layout of an M operand that another nest left in shared memory. 16-bit elements of
// it come from registers instead, in the layout of mma.sync m16n8k16, loaded with ldmatrix as for warps.
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLanes = 32, kRows = 64, kWarpRows = 16, kColumns = 8, kMatrix = 8;

class WarpgroupShare : public AccumulatorFragment, ShareInputs {
public:
  explicit WarpgroupShare(const ShareInputs &inputs) : ShareInputs(inputs), builder(frame.builder), loc(frame.loc) {
    Value lane = frame.modulo(frame.thread, kLanes);
    Value warp = frame.modulo(frame.divide(frame.thread, kLanes), kRows / kWarpRows);
    Value group = frame.divide(frame.thread, threadsOfStep(kernel));
    this->lane = lane;
    groupRow = frame.multiply(frame.divide(group, tiling.laneUnits), tiling.ownRows);
    warpRow = frame.add(groupRow, frame.multiply(warp, kWarpRows));
    groupLane = frame.multiply(frame.modulo(group, tiling.laneUnits), tiling.ownLanes);
    firstRow = frame.add(warpRow, frame.divide(lane, 4));
    firstLane = frame.add(groupLane, frame.multiply(frame.modulo(lane, 4), run = 2));
    rowBits = 3 | (tiling.laneUnits - 1) * threadsOfStep(kernel);
    for (int64_t row = 0; row < tiling.ownRows; row += kRows)
      for (int64_t column = 0; column < tiling.ownLanes; column += kColumns)
        for (int64_t half : {0, 1})
          for (int64_t next : {0, 1})
            places.push_back({row + half * kMatrix, column + next});
  }

  /// Pins the accumulators in registers, even if they begin as constants: the optimiser would write those after the
  /// fence.
  SmallVector<Value> begin(ValueRange sums) override { return sumsAsOfHere(builder, loc, sums); }

  SmallVector<Value> multiplyAdd(ValueRange sums, Value slot) override {
    int64_t blocks = tiling.ownRows / kRows, own = tiling.sums / blocks;
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(own, sum));
    SmallVector<Value> results;
    for (int64_t block = 0; block < blocks; ++block)
      results.push_back(pack(sums.slice(block * own, own), type));
    SmallVector<SmallVector<Value>> factors; // by K element and block; registers must be written before the fence
    for (int64_t term = 0; rows.isInPlace() && term < tiling.step; term += kernel.depth)
      for (int64_t block = 0; block < blocks; ++block)
        factors.push_back(loadRows(slot, block * kRows, term));
    NVVM::WgmmaFenceAlignedOp::create(builder, loc);
    for (int64_t term = 0; term < tiling.step; term += kernel.depth) {
      Value right = describe(lanes, slot, groupLane, frame.constant(term));
      for (auto [block, result] : llvm::enumerate(results))
        result = rows.isInPlace()
                     ? multiplyLoaded(factors[term / kernel.depth * blocks + block], right, result)
                     : multiply(describe(rows, slot, frame.add(groupRow, block * kRows), frame.constant(term)), right,
                                result);
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(builder, loc);
    wait(tiling.overlaps ? 1 : 0);
    SmallVector<Value> next;
    for (Value result : results)
      for (int64_t i = 0; i < own; ++i)
        next.push_back(LLVM::ExtractValueOp::create(builder, loc, result, i));
    return tiling.overlaps ? next : sumsAsOfHere(builder, loc, next);
  }

  SmallVector<Value> finish(ValueRange sums) override {
    if (!tiling.overlaps)
      return sums;
    wait(0);
    return sumsAsOfHere(builder, loc, sums);
  }

private:
  /// Waits for all products but those of the last `steps` steps.
  void wait(int64_t steps) { NVVM::WgmmaWaitGroupSyncOp::create(builder, loc, builder.getI64IntegerAttr(steps)); }

  Value pack(ValueRange values, Type type) {
    Value packed = LLVM::UndefOp::create(builder, loc, type);
    for (auto [i, value] : llvm::enumerate(values))
      packed = LLVM::InsertValueOp::create(builder, loc, packed, value, i);
    return packed;
  }

  /// Returns a matrix descriptor (PTX ISA, "Shared memory matrix layout"): address, distances in atoms of panels and of
  /// groups of 8 lines, and the swizzle, which is as wide as a line.
  Value describe(ContractionOperand &operand, Value slot, Value point, Value term) {
    constexpr int64_t kAtom = kAtomBytes, kWindow = 1 << 18;
    int64_t line = operand.lineBytes(), swizzle = line == 128 ? 1 : line == 64 ? 2 : 3;
    int64_t panel = operand.liesAlongK() ? 1 : operand.panelBytes() / kAtom; // 1 if there is only one panel
    uint64_t fixed = static_cast<uint64_t>(panel) << 16 | static_cast<uint64_t>(kMatrix * line / kAtom) << 32 |
                     static_cast<uint64_t>(swizzle) << 62;
    Type word = builder.getI64Type();
    auto constant = [&](uint64_t value) {
      return arith::ConstantIntOp::create(builder, loc, static_cast<int64_t>(value), 64).getResult();
    };
    Value address = LLVM::PtrToIntOp::create(builder, loc, word, operand.matrix(slot, point, term));
    address = arith::AndIOp::create(builder, loc, address, constant(kWindow - 1));
    address = arith::ShRUIOp::create(builder, loc, address, constant(4));
    return arith::OrIOp::create(builder, loc, address, constant(fixed));
  }

  /// Loads the M operand: matrices 0 and 1 are the upper and lower rows of the first half of K, 2 and 3 those of the
  /// second half.
  SmallVector<Value> loadRows(Value slot, int64_t row, int64_t term) {
    Value odd = frame.modulo(frame.divide(lane, kMatrix), 2), upper = frame.divide(lane, 2 * kMatrix);
    Value point = frame.add(frame.add(warpRow, row), frame.multiply(odd, kMatrix));
    Value place = frame.add(frame.multiply(upper, kernel.depth / 2), term);
    bool transposed = !rows.liesAlongK();
    (transposed ? place : point) = frame.add(transposed ? place : point, frame.modulo(lane, kMatrix));
    return loadMatrices(builder, loc, rows.pointer(slot, point, place), transposed);
  }

  /// Emits wgmma with an M operand in registers as inline assembly, because the dialect has the instruction with
  /// descriptors only. Operands are numbered starting with the results.
  Value multiplyLoaded(ArrayRef<Value> left, Value right, Value sums) {
    auto type = cast<LLVM::LLVMStructType>(sums.getType());
    size_t count = type.getBody().size(), next = 2 * count;
    auto numbers = [&](size_t first, size_t many) {
      std::string text;
      for (size_t i = 0; i < many; ++i)
        text += (i ? ", $" : "$") + std::to_string(first + i);
      return "{" + text + "}";
    };
    std::string types = kernel.types.rows, code, constraints;
    code = "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" +
           std::to_string(tiling.ownLanes) + "k16.f32." + types + "." + types + " " + numbers(0, count) + ", " +
           numbers(next, left.size()) + ", $" + std::to_string(next + left.size()) + ", p, 1, 1, " +
           (lanes.liesAlongK() ? "0" : "1") + ";\n}\n";
    SmallVector<Value> operands;
    for (size_t i = 0; i < count; ++i) {
      constraints += "=f,";
      operands.push_back(LLVM::ExtractValueOp::create(builder, loc, sums, i));
    }
    for (size_t i = 0; i < count; ++i)
      constraints += std::to_string(i) + ",";
    for (size_t i = 0; i < left.size(); ++i)
      constraints += "r,";
    llvm::append_range(operands, left);
    operands.push_back(right);
    return LLVM::InlineAsmOp::create(builder, loc, type, operands, code, constraints + "l", /*has_side_effects=*/true,
                                     /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                     LLVM::AsmDialectAttr(), ArrayAttr())
        ->getResult(0);
  }

  static NVVM::WGMMATypes ptxType(const std::string &type) {
    return llvm::StringSwitch<NVVM::WGMMATypes>(type)
        .Case("f16", NVVM::WGMMATypes::f16)
        .Case("bf16", NVVM::WGMMATypes::bf16)
        .Case("f32", NVVM::WGMMATypes::tf32)
        .Case("si8", NVVM::WGMMATypes::s8)
        .Default(NVVM::WGMMATypes::u8);
  }

  Value multiply(Value left, Value right, Value sums) {
    MLIRContext *context = builder.getContext();
    auto factor = [&](const std::string &type) { return NVVM::WGMMATypesAttr::get(context, ptxType(type)); };
    auto result = sum.isInteger() ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32;
    auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
    auto layout = [&](ContractionOperand &operand, NVVM::MMALayout along, NVVM::MMALayout across) {
      return NVVM::MMALayoutAttr::get(context, operand.liesAlongK() ? along : across);
    };
    return NVVM::WgmmaMmaAsyncOp::create(
        builder, loc, sums.getType(), sums, left, right,
        NVVM::MMAShapeAttr::get(context, kRows, tiling.ownLanes, kernel.depth), factor(kernel.types.rows),
        factor(kernel.types.lanes), NVVM::WGMMATypesAttr::get(context, result),
        NVVM::WGMMAScaleOutAttr::get(context, NVVM::WGMMAScaleOut::one), one, one,
        layout(rows, NVVM::MMALayout::row, NVVM::MMALayout::col),
        layout(lanes, NVVM::MMALayout::col, NVVM::MMALayout::row), NVVM::MMAIntOverflowAttr());
  }

  OpBuilder &builder;
  Location loc;
  Value groupRow, groupLane; ///< offset of the warpgroup in the tile
  Value warpRow, lane;       ///< offset of the warp in the tile; index of the thread in its warp
};
} // namespace

std::unique_ptr<AccumulatorFragment> tilewright::makeWarpgroupShare(const ShareInputs &inputs) {
  return std::make_unique<WarpgroupShare>(inputs);
}

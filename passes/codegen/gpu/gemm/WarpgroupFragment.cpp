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
constexpr int64_t kRows = 64, kWarpRows = 16, kColumns = 8, kMatrix = 8;

class WarpgroupFragment : public AccumulatorFragment, FragmentInputs {
public:
  explicit WarpgroupFragment(const FragmentInputs &inputs)
      : FragmentInputs(inputs), builder(frame.builder), loc(frame.loc) {
    Value lane = frame.modulo(frame.thread, kWarpLanes);
    Value warp = frame.modulo(frame.divide(frame.thread, kWarpLanes), kRows / kWarpRows);
    Value group = frame.divide(frame.thread, threadsOfStep(kernel));
    this->lane = lane;
    groupM = frame.multiply(frame.divide(group, tiling.nUnits), tiling.ownM);
    warpM = frame.add(groupM, frame.multiply(warp, kWarpRows));
    groupN = frame.multiply(frame.modulo(group, tiling.nUnits), tiling.ownN);
    firstM = frame.add(warpM, frame.divide(lane, 4));
    firstN = frame.add(groupN, frame.multiply(frame.modulo(lane, 4), run = 2));
    rowBits = 3 | (tiling.nUnits - 1) * threadsOfStep(kernel);
    for (int64_t row = 0; row < tiling.ownM; row += kRows)
      for (int64_t column = 0; column < tiling.ownN; column += kColumns)
        for (int64_t half : {0, 1})
          for (int64_t next : {0, 1})
            offsets.push_back({row + half * kMatrix, column + next});
  }

  /// Pins the accumulators in registers, even if they begin as constants: the optimiser would write those after the
  /// fence.
  SmallVector<Value> begin(ValueRange accumulators) override {
    return accumulatorsAsOfHere(builder, loc, accumulators);
  }

  SmallVector<Value> multiplyAdd(ValueRange accumulators, Value slot) override {
    int64_t blocks = tiling.ownM / kRows, own = tiling.accumulators / blocks;
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(own, sum));
    SmallVector<Value> results;
    for (int64_t block = 0; block < blocks; ++block)
      results.push_back(pack(accumulators.slice(block * own, own), type));
    SmallVector<SmallVector<Value>> operands; // by K element and block; registers must be written before the fence
    for (int64_t k = 0; lhs.isInPlace() && k < tiling.step; k += kernel.depth)
      for (int64_t block = 0; block < blocks; ++block)
        operands.push_back(loadLhs(slot, block * kRows, k));
    NVVM::WgmmaFenceAlignedOp::create(builder, loc);
    for (int64_t k = 0; k < tiling.step; k += kernel.depth) {
      Value right = describe(rhs, slot, groupN, frame.constant(k));
      for (auto [block, result] : llvm::enumerate(results))
        result = lhs.isInPlace() ? multiplyLoaded(operands[k / kernel.depth * blocks + block], right, result)
                                 : multiply(describe(lhs, slot, frame.add(groupM, block * kRows), frame.constant(k)),
                                            right, result);
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(builder, loc);
    wait(tiling.overlaps ? 1 : 0);
    SmallVector<Value> next;
    for (Value result : results)
      for (int64_t i = 0; i < own; ++i)
        next.push_back(LLVM::ExtractValueOp::create(builder, loc, result, i));
    return tiling.overlaps ? next : accumulatorsAsOfHere(builder, loc, next);
  }

  SmallVector<Value> finish(ValueRange accumulators) override {
    if (!tiling.overlaps)
      return accumulators;
    wait(0);
    return accumulatorsAsOfHere(builder, loc, accumulators);
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
  Value describe(ContractionOperand &operand, Value slot, Value point, Value k) {
    constexpr int64_t kAtom = kAtomBytes, kWindow = 1 << 18;
    int64_t line = operand.lineBytes(), swizzle = line == 128 ? 1 : line == 64 ? 2 : 3;
    int64_t panel = operand.liesAlongK() ? 1 : operand.panelBytes() / kAtom; // 1 if there is only one panel
    uint64_t fixed = static_cast<uint64_t>(panel) << 16 | static_cast<uint64_t>(kMatrix * line / kAtom) << 32 |
                     static_cast<uint64_t>(swizzle) << 62;
    Type word = builder.getI64Type();
    auto constant = [&](uint64_t value) {
      return arith::ConstantIntOp::create(builder, loc, static_cast<int64_t>(value), 64).getResult();
    };
    Value address = LLVM::PtrToIntOp::create(builder, loc, word, operand.matrix(slot, point, k));
    address = arith::AndIOp::create(builder, loc, address, constant(kWindow - 1));
    address = arith::ShRUIOp::create(builder, loc, address, constant(4));
    return arith::OrIOp::create(builder, loc, address, constant(fixed));
  }

  /// Loads the M operand: matrices 0 and 1 are the upper and lower rows of the first half of K, 2 and 3 those of the
  /// second half.
  SmallVector<Value> loadLhs(Value slot, int64_t row, int64_t k) {
    Value odd = frame.modulo(frame.divide(lane, kMatrix), 2), upper = frame.divide(lane, 2 * kMatrix);
    Value point = frame.add(frame.add(warpM, row), frame.multiply(odd, kMatrix));
    Value first = frame.add(frame.multiply(upper, kernel.depth / 2), k);
    bool transposed = !lhs.liesAlongK();
    (transposed ? first : point) = frame.add(transposed ? first : point, frame.modulo(lane, kMatrix));
    return loadMatrices(builder, loc, lhs.pointer(slot, point, first), transposed);
  }

  /// Emits wgmma with an M operand in registers as inline assembly, because the dialect has the instruction with
  /// descriptors only. Operands are numbered starting with the results.
  Value multiplyLoaded(ArrayRef<Value> left, Value right, Value accumulators) {
    auto type = cast<LLVM::LLVMStructType>(accumulators.getType());
    size_t count = type.getBody().size(), next = 2 * count;
    auto numbers = [&](size_t first, size_t many) {
      std::string text;
      for (size_t i = 0; i < many; ++i)
        text += (i ? ", $" : "$") + std::to_string(first + i);
      return "{" + text + "}";
    };
    std::string types = kernel.types.lhs, code, constraints;
    code = "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(tiling.ownN) +
           "k16.f32." + types + "." + types + " " + numbers(0, count) + ", " + numbers(next, left.size()) + ", $" +
           std::to_string(next + left.size()) + ", p, 1, 1, " + (rhs.liesAlongK() ? "0" : "1") + ";\n}\n";
    SmallVector<Value> operands;
    for (size_t i = 0; i < count; ++i) {
      constraints += "=f,";
      operands.push_back(LLVM::ExtractValueOp::create(builder, loc, accumulators, i));
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

  Value multiply(Value left, Value right, Value accumulators) {
    MLIRContext *context = builder.getContext();
    auto typeOf = [&](const std::string &type) { return NVVM::WGMMATypesAttr::get(context, ptxType(type)); };
    auto result = sum.isInteger() ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32;
    auto one = NVVM::WGMMAScaleInAttr::get(context, NVVM::WGMMAScaleIn::one);
    auto layout = [&](ContractionOperand &operand, NVVM::MMALayout along, NVVM::MMALayout across) {
      return NVVM::MMALayoutAttr::get(context, operand.liesAlongK() ? along : across);
    };
    return NVVM::WgmmaMmaAsyncOp::create(
        builder, loc, accumulators.getType(), accumulators, left, right,
        NVVM::MMAShapeAttr::get(context, kRows, tiling.ownN, kernel.depth), typeOf(kernel.types.lhs),
        typeOf(kernel.types.rhs), NVVM::WGMMATypesAttr::get(context, result),
        NVVM::WGMMAScaleOutAttr::get(context, NVVM::WGMMAScaleOut::one), one, one,
        layout(lhs, NVVM::MMALayout::row, NVVM::MMALayout::col),
        layout(rhs, NVVM::MMALayout::col, NVVM::MMALayout::row), NVVM::MMAIntOverflowAttr());
  }

  OpBuilder &builder;
  Location loc;
  Value groupM, groupN; ///< offset of the warpgroup in the tile
  Value warpM, lane;    ///< offset of the warp in the tile; index of the thread in its warp
};
} // namespace

std::unique_ptr<AccumulatorFragment> tilewright::makeWarpgroupFragment(const FragmentInputs &inputs) {
  return std::make_unique<WarpgroupFragment>(inputs);
}

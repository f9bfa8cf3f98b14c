// Works around wrong instructions that LLVM 22.1 selects for masked loads on AVX and AVX2. There, a mask is a vector of
// which only the sign bits of the lanes matter. LLVM's combineMaskedLoad simplifies such a mask with regard to the sign
// bits alone, so a lane that is off may become the constant 1. combineMaskedLoadConstantMask then takes every lane that
// is not zero for one that is on. If all lanes of a mask, or of one half of a split mask, are known to be off, the load
// loses its mask and its passthru: it reads where it must not, returns what it read, and has a memory operand of
// unknown size, at which another pass of LLVM aborts.
//
// Therefore, no masked load with a computed mask may reach that code. This pass splits an access into accesses of one
// register each and computes each register's mask on its own, with constants folded. A register with no lane on is
// dropped, and one with all lanes on becomes a plain access. Constant masks stay with LLVM, which reads them correctly
// while they are bits. All others become the instruction's intrinsic, into which no optimisation looks, and a select.
#include "passes/codegen/cpu/MaskedAccesses.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/InstSimplifyFolder.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace tilewright;

namespace {
constexpr unsigned kRegisterBits = 256; ///< bits of a ymm register; an xmm register has half as many

unsigned lanesOf(Type *type) { return cast<FixedVectorType>(type)->getNumElements(); }

/// The lanes of a mask that are known to be on: none, all, or a constant set; or the mask is computed at run time.
enum class MaskKind { none, all, constant, computed };

MaskKind kindOf(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  if (!constant)
    return MaskKind::computed;
  return constant->isNullValue() ? MaskKind::none : constant->isAllOnesValue() ? MaskKind::all : MaskKind::constant;
}

/// Computes runs of consecutive lanes of vectors. Elementwise operations are repeated for the run alone, because a mask
/// is often constant in a run although the whole mask is not.
class LaneRuns {
public:
  explicit LaneRuns(Function &function)
      : builder(function.getContext(), InstSimplifyFolder(function.getDataLayout())) {}

  /// Returns a run of lanes as an extract of the vector, without repeating its operations.
  Value *part(Value *vector, unsigned first, unsigned count) { return run(vector, first, count, kMostDepth); }

  /// Returns a run of lanes, repeating the operations behind the vector.
  Value *run(Value *vector, unsigned first, unsigned count, unsigned depth = 0) {
    if (first == 0 && count == lanesOf(vector->getType()))
      return vector;
    auto [known, isNew] = runs.try_emplace({vector, {first, count}}, nullptr);
    if (isNew) {
      Value *value = compute(vector, first, count, depth);
      runs[{vector, {first, count}}] = value;
      return value;
    }
    return known->second;
  }

  /// Converts a mask to the form that the instructions read, in which all bits of a lane equal its mask bit.
  Value *widen(Value *mask, unsigned bits) {
    auto [known, isNew] = widened.try_emplace({mask, bits}, nullptr);
    if (isNew) {
      auto *type = FixedVectorType::get(builder.getIntNTy(bits), lanesOf(mask->getType()));
      known->second = behind(mask).CreateSExt(mask, type);
    }
    return known->second;
  }

private:
  using Builder = IRBuilder<InstSimplifyFolder>;
  static constexpr unsigned kMostDepth = 8; ///< longest chain of repeated operations; masks have two or three

  /// Returns the builder with its insertion point right after a value's definition.
  Builder &behind(Value *value) {
    if (auto *instruction = dyn_cast<Instruction>(value)) {
      builder.SetInsertPoint(*instruction->getInsertionPointAfterDef());
      builder.SetCurrentDebugLocation(instruction->getDebugLoc());
    } else if (auto *argument = dyn_cast<Argument>(value)) {
      BasicBlock &entry = argument->getParent()->getEntryBlock();
      builder.SetInsertPoint(&entry, entry.getFirstInsertionPt());
    }
    return builder;
  }

  Value *compute(Value *vector, unsigned first, unsigned count, unsigned depth) {
    if (auto *constant = dyn_cast<Constant>(vector))
      return constantRun(constant, first, count);
    auto runOf = [&](Value *operand) { return run(operand, first, count, depth + 1); };
    auto *instruction = dyn_cast<Instruction>(vector);
    if (instruction && depth < kMostDepth) {
      if (auto *shuffle = dyn_cast<ShuffleVectorInst>(instruction))
        return behind(vector).CreateShuffleVector(shuffle->getOperand(0), shuffle->getOperand(1),
                                                  shuffle->getShuffleMask().slice(first, count));
      if (isa<BinaryOperator>(instruction) && !instruction->isIntDivRem() && vector->getType()->isIntOrIntVectorTy()) {
        Value *left = runOf(instruction->getOperand(0)), *right = runOf(instruction->getOperand(1));
        return behind(vector).CreateBinOp(cast<BinaryOperator>(instruction)->getOpcode(), left, right);
      }
      if (auto *compare = dyn_cast<ICmpInst>(instruction)) {
        Value *left = runOf(compare->getOperand(0)), *right = runOf(compare->getOperand(1));
        return behind(vector).CreateICmp(compare->getPredicate(), left, right);
      }
      if (auto *select = dyn_cast<SelectInst>(instruction)) {
        Value *condition = select->getCondition();
        if (condition->getType()->isVectorTy())
          condition = runOf(condition);
        Value *yes = runOf(select->getTrueValue()), *no = runOf(select->getFalseValue());
        return behind(vector).CreateSelect(condition, yes, no);
      }
      if (isa<ZExtInst, SExtInst, TruncInst>(instruction)) {
        Value *operand = runOf(instruction->getOperand(0));
        auto *type = FixedVectorType::get(vector->getType()->getScalarType(), count);
        return behind(vector).CreateCast(cast<CastInst>(instruction)->getOpcode(), operand, type);
      }
    }
    SmallVector<int> lanes;
    for (unsigned lane = first; lane < first + count; ++lane)
      lanes.push_back(static_cast<int>(lane));
    return behind(vector).CreateShuffleVector(vector, lanes);
  }

  static Constant *constantRun(Constant *constant, unsigned first, unsigned count) {
    SmallVector<Constant *> lanes;
    for (unsigned lane = first; lane < first + count; ++lane)
      lanes.push_back(constant->getAggregateElement(lane));
    return ConstantVector::get(lanes);
  }

  Builder builder;
  DenseMap<std::pair<Value *, std::pair<unsigned, unsigned>>, Value *> runs;
  DenseMap<std::pair<Value *, unsigned>, Value *> widened;
};

/// Returns the instruction that loads or stores the lanes of a register that are on.
Intrinsic::ID maskedInstruction(Type *element, bool isWhole, bool isStore) {
  bool isDouble = element->getPrimitiveSizeInBits() == 64;
  if (element->isFloatingPointTy()) {
    if (isStore)
      return isDouble ? (isWhole ? Intrinsic::x86_avx_maskstore_pd_256 : Intrinsic::x86_avx_maskstore_pd)
                      : (isWhole ? Intrinsic::x86_avx_maskstore_ps_256 : Intrinsic::x86_avx_maskstore_ps);
    return isDouble ? (isWhole ? Intrinsic::x86_avx_maskload_pd_256 : Intrinsic::x86_avx_maskload_pd)
                    : (isWhole ? Intrinsic::x86_avx_maskload_ps_256 : Intrinsic::x86_avx_maskload_ps);
  }
  if (isStore)
    return isDouble ? (isWhole ? Intrinsic::x86_avx2_maskstore_q_256 : Intrinsic::x86_avx2_maskstore_q)
                    : (isWhole ? Intrinsic::x86_avx2_maskstore_d_256 : Intrinsic::x86_avx2_maskstore_d);
  return isDouble ? (isWhole ? Intrinsic::x86_avx2_maskload_q_256 : Intrinsic::x86_avx2_maskload_q)
                  : (isWhole ? Intrinsic::x86_avx2_maskload_d_256 : Intrinsic::x86_avx2_maskload_d);
}

/// A masked load or store of a vector.
struct MaskedAccess {
  IntrinsicInst *call;
  Value *pointer, *mask;
  Value *value; ///< stored value, or the value of lanes that are not loaded
  Align alignment;
  bool isStore;

  FixedVectorType *type() const { return cast<FixedVectorType>(value->getType()); }
};

/// Matches a masked access for which LLVM would use instructions with vector masks, or returns nothing.
std::optional<MaskedAccess> maskedAccess(Instruction &instruction) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call)
    return std::nullopt;
  MaskedAccess access;
  if (call->getIntrinsicID() == Intrinsic::masked_load)
    access = {call,
              call->getArgOperand(0),
              call->getArgOperand(1),
              call->getArgOperand(2),
              call->getParamAlign(0).valueOrOne(),
              false};
  else if (call->getIntrinsicID() == Intrinsic::masked_store)
    access = {call,
              call->getArgOperand(1),
              call->getArgOperand(2),
              call->getArgOperand(0),
              call->getParamAlign(1).valueOrOne(),
              true};
  else
    return std::nullopt;
  auto *type = dyn_cast<FixedVectorType>(access.value->getType());
  if (!type || type->getNumElements() < 2)
    return std::nullopt;
  Type *element = type->getElementType();
  if (!element->isFloatTy() && !element->isDoubleTy() && !element->isIntegerTy(32) && !element->isIntegerTy(64))
    return std::nullopt;
  return access;
}

/// Replaces one access by accesses of one register each.
class Rewriter {
public:
  Rewriter(const MaskedAccess &access, LaneRuns &runs, bool hasIntegers)
      : access(access), runs(runs), builder(access.call), hasIntegers(hasIntegers) {}

  void rewrite() {
    unsigned lanes = access.type()->getNumElements(), first = 0;
    unsigned whole = kRegisterBits / elementBits();
    while (first < lanes) {
      unsigned left = lanes - first, width = left > whole / 2 ? whole : whole / 2;
      emit(first, std::min(left, width), width);
      first += width;
    }
    if (!access.isStore)
      access.call->replaceAllUsesWith(joined());
  }

private:
  unsigned elementBits() const { return access.type()->getScalarSizeInBits(); }

  /// Emits the access of one register with `width` lanes, of which the access has the first `count`.
  void emit(unsigned first, unsigned count, unsigned width) {
    Value *value = runs.part(access.value, first, count), *mask = maskOf(first, count);
    MaskKind kind = kindOf(mask);
    if (kind == MaskKind::none || kind == MaskKind::all) {
      Value *loaded = kind == MaskKind::all ? plain(first, value) : value;
      parts.push_back(loaded);
      return;
    }
    value = padded(value, width, PoisonValue::get(value->getType()));
    mask = padded(mask, width, Constant::getNullValue(mask->getType()));
    Value *loaded = kind == MaskKind::constant ? withConstantMask(first, value, mask) : withMask(first, value, mask);
    if (!access.isStore)
      parts.push_back(runs.part(loaded, 0, count));
  }

  /// Returns the mask of one register. Poison lanes of a constant mask become off.
  Value *maskOf(unsigned first, unsigned count) {
    Value *mask = runs.run(access.mask, first, count);
    auto *constant = dyn_cast<Constant>(mask);
    return constant ? Constant::replaceUndefsWith(constant, builder.getFalse()) : mask;
  }

  Value *plain(unsigned first, Value *value) {
    if (access.isStore)
      return marked(builder.CreateAlignedStore(value, pointer(first), alignment(first)));
    return marked(builder.CreateAlignedLoad(value->getType(), pointer(first), alignment(first)));
  }

  Value *withConstantMask(unsigned first, Value *value, Value *mask) {
    if (access.isStore)
      return marked(builder.CreateMaskedStore(value, pointer(first), alignment(first), mask));
    return marked(builder.CreateMaskedLoad(value->getType(), pointer(first), alignment(first), mask, value));
  }

  Value *withMask(unsigned first, Value *value, Value *mask) {
    unsigned lanes = lanesOf(value->getType());
    bool isWhole = lanes * elementBits() == kRegisterBits, asFloats = !hasIntegers || valueType()->isFloatingPointTy();
    Type *element = asFloats ? (elementBits() == 64 ? builder.getDoubleTy() : builder.getFloatTy()) : valueType();
    Type *type = FixedVectorType::get(element, lanes);
    Intrinsic::ID instruction = maskedInstruction(element, isWhole, access.isStore);
    Value *signs = runs.widen(mask, elementBits());
    if (access.isStore)
      return marked(
          builder.CreateIntrinsic(instruction, {}, {pointer(first), signs, builder.CreateBitCast(value, type)}));
    Instruction *loaded = marked(builder.CreateIntrinsic(instruction, {}, {pointer(first), signs}));
    Value *cast = builder.CreateBitCast(loaded, value->getType());
    auto *others = dyn_cast<Constant>(value); // the instruction zeroes other lanes
    return others && (others->isNullValue() || isa<UndefValue>(others)) ? cast
                                                                        : builder.CreateSelect(mask, cast, value);
  }

  Type *valueType() const { return access.type()->getElementType(); }

  Value *pointer(unsigned first) {
    return first == 0 ? access.pointer : builder.CreateConstGEP1_64(valueType(), access.pointer, first);
  }

  Align alignment(unsigned first) const { return commonAlignment(access.alignment, first * elementBits() / 8); }

  Instruction *marked(Instruction *instruction) {
    instruction->setAAMetadata(access.call->getAAMetadata());
    return instruction;
  }

  /// Extends a vector to `width` lanes with lanes of `filling`.
  Value *padded(Value *value, unsigned width, Value *filling) {
    unsigned count = lanesOf(value->getType());
    if (count == width)
      return value;
    SmallVector<int> lanes;
    for (unsigned lane = 0; lane < width; ++lane)
      lanes.push_back(static_cast<int>(std::min(lane, count)));
    return builder.CreateShuffleVector(value, filling, lanes);
  }

  Value *joined() {
    Value *whole = parts.front();
    for (Value *part : ArrayRef(parts).drop_front()) {
      unsigned before = lanesOf(whole->getType()), more = lanesOf(part->getType());
      SmallVector<int> lanes;
      for (unsigned lane = 0; lane < before + more; ++lane)
        lanes.push_back(static_cast<int>(lane < before ? lane : std::max(before, more) + lane - before));
      whole =
          builder.CreateShuffleVector(padded(whole, std::max(before, more), PoisonValue::get(whole->getType())),
                                      padded(part, std::max(before, more), PoisonValue::get(part->getType())), lanes);
    }
    return whole;
  }

  const MaskedAccess &access;
  LaneRuns &runs;
  IRBuilder<> builder;
  bool hasIntegers; ///< true if there are instructions for integers (AVX2)
  SmallVector<Value *> parts;
};
} // namespace

int64_t tilewright::useNativeMasks(Function &function, const TargetMachine &machine) {
  const TargetSubtargetInfo *subtarget = machine.getSubtargetImpl(function);
  if (!subtarget || !machine.getTargetTriple().isX86() || !subtarget->checkFeatures("+avx,-avx512f"))
    return 0;
  SmallVector<Instruction *> calls;
  for (Instruction &instruction : instructions(function))
    if (maskedAccess(instruction))
      calls.push_back(&instruction);
  LaneRuns runs(function);
  SmallVector<WeakTrackingVH> masks;
  for (Instruction *call : calls) {
    MaskedAccess access = *maskedAccess(*call); // match again: an earlier replacement may have changed its operands
    Rewriter(access, runs, subtarget->checkFeatures("+avx2")).rewrite();
    masks.push_back(access.mask);
  }
  for (Instruction *call : calls)
    call->eraseFromParent();
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(masks);
  return static_cast<int64_t>(calls.size());
}

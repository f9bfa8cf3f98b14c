// Code that fragments of all kinds share: choosing the kind for a micro kernel, pinning accumulators in registers, and
// ldmatrix.
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"

#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tilewright;

std::unique_ptr<AccumulatorFragment> tilewright::makeFragment(const FragmentInputs &inputs) {
  if (isOfWarpgroup(inputs.kernel))
    return makeWarpgroupFragment(inputs);
  return inputs.kernel.unit == StepUnit::warp ? makeWarpFragment(inputs) : makeThreadFragment(inputs);
}

/// Returns the PTX assembly constraint of a register that holds the value. Accumulators have at least 32 bits.
static char constraintOf(Type type) {
  bool isWide = type.getIntOrFloatBitWidth() > 32;
  return isa<FloatType>(type) ? (isWide ? 'd' : 'f') : (isWide ? 'l' : 'r');
}

SmallVector<Value> tilewright::accumulatorsAsOfHere(OpBuilder &builder, Location loc, ValueRange accumulators) {
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), llvm::to_vector(accumulators.getTypes()));
  std::string constraints;
  for (Value sum : accumulators)
    constraints += std::string("=") + constraintOf(sum.getType()) + ",";
  for (size_t i = 0; i < accumulators.size(); ++i)
    constraints += (i ? "," : "") + std::to_string(i);
  auto passed = LLVM::InlineAsmOp::create(builder, loc, type, accumulators, /*asm_string=*/"", constraints,
                                          /*has_side_effects=*/true, /*is_align_stack=*/false,
                                          LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  SmallVector<Value> values;
  for (size_t i = 0; i < accumulators.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, loc, passed->getResult(0), i));
  return values;
}

SmallVector<Value> tilewright::loadMatrices(OpBuilder &builder, Location loc, Value address, bool transposed) {
  constexpr int64_t kMatrix = 8, kMatrices = 4;
  Type word = builder.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(kMatrices, word));
  auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape = NVVM::LdStMatrixShapeAttr::get(builder.getContext(), kMatrix, kMatrix);
  Value loaded =
      NVVM::LdMatrixOp::create(builder, loc, type, address, kMatrices, layout, shape, NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> words;
  for (int64_t i = 0; i < kMatrices; ++i)
    words.push_back(LLVM::ExtractValueOp::create(builder, loc, loaded, i));
  return words;
}

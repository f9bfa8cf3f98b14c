// Makes products of warpgroups, and uses of their accumulators, report themselves to the runtime.
#include "tools/simulator/KernelRewriter.h"

#include "tools/simulator/Collectives.h"
#include "tools/simulator/MatrixElements.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

namespace {
/// A product of a warpgroup, read from either kind of op.
struct Product {
  MatrixType type;
  int64_t n;
  bool lhsLiesAlongK, rhsLiesAlongK;
  Value left, right;          ///< descriptors of lhs and rhs; `left` is null if lhs is in registers
  SmallVector<Value> lhsWords; ///< registers of lhs, if it is in registers
  SmallVector<Value> accumulators;
};
} // namespace

/// Returns how many of the first operands of a product in inline assembly are accumulators; 0 if its results are not.
static size_t accumulatorsOf(LLVM::InlineAsmOp assembly) {
  auto type = assembly->getNumResults() == 1 ? dyn_cast<LLVM::LLVMStructType>(assembly->getResult(0).getType())
                                             : LLVM::LLVMStructType();
  bool areFloats = type && llvm::all_of(type.getBody(), [](Type element) { return element.isF32(); });
  return areFloats ? type.getBody().size() : 0;
}

static bool takesAsAccumulator(OpOperand &use) {
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(use.getOwner());
  return isWarpgroupProduct(use.getOwner()) && (!assembly || use.getOperandNumber() < accumulatorsOf(assembly));
}

void KernelRewriter::reportSums(Operation *multiply) {
  code.builder.setInsertionPoint(multiply);
  code.site(multiply);
  uint32_t product = productSites[multiply] = program.sites.size() - 1;
  program.sites.back().kind.reads = true;
  program.sites.back().space = Space::shared;
  SmallVector<Value> work(multiply->getResults());
  llvm::DenseSet<Value> seen(work.begin(), work.end());
  llvm::SmallSetVector<Operation *, 8> users;
  auto pass = [&](Value value) {
    if (seen.insert(value).second)
      work.push_back(value);
  };
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<LLVM::ExtractValueOp, LLVM::InsertValueOp>(user))
        pass(user->getResult(0));
      else if (auto branch = dyn_cast<BranchOpInterface>(user)) {
        if (std::optional<BlockArgument> argument = branch.getSuccessorBlockArgument(use.getOperandNumber()))
          pass(*argument);
      } else if (!takesAsAccumulator(use)) {
        users.insert(user);
      }
    }
  for (Operation *user : users) {
    code.builder.setInsertionPoint(user);
    code.call(user->getLoc(), runtime::touchAccumulators, {}, {code.site(user), code.number(user->getLoc(), product)});
  }
}

/// Returns the element types of a product, or nothing if they are not simulated.
static std::optional<MatrixType> elementTypesOf(NVVM::WgmmaMmaAsyncOp multiply) {
  using Types = NVVM::WGMMATypes;
  Types left = multiply.getTypeA(), right = multiply.getTypeB();
  auto isByte = [](Types type) { return type == Types::s8 || type == Types::u8; };
  if (isByte(left) && isByte(right))
    return static_cast<MatrixType>(static_cast<uint32_t>(MatrixType::u8u8) + (left == Types::s8 ? 2 : 0) +
                                   (right == Types::s8 ? 1 : 0));
  if (left != right)
    return std::nullopt;
  return left == Types::f16    ? std::optional(MatrixType::f16)
         : left == Types::bf16 ? std::optional(MatrixType::bf16)
         : left == Types::tf32 ? std::optional(MatrixType::tf32)
                               : std::nullopt;
}

static FailureOr<Product> productOf(NVVM::WgmmaMmaAsyncOp multiply, OpBuilder &builder) {
  std::optional<MatrixType> elementType = elementTypesOf(multiply);
  bool isWhole = elementType && isBytes(*elementType);
  bool fits = elementType && multiply.getTypeD() == (isWhole ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32) &&
              multiply.getScaleD() == NVVM::WGMMAScaleOut::one && multiply.getScaleA() == NVVM::WGMMAScaleIn::one &&
              multiply.getScaleB() == NVVM::WGMMAScaleIn::one &&
              multiply.getSatfinite() != NVVM::MMAIntOverflow::satfinite;
  if (!fits)
    return multiply.emitOpError(
        "of these types is not simulated; f16, bf16 and tf32 with f32 accumulators are, and bytes "
        "with i32 accumulators that wrap");
  Product product{*elementType,
                  multiply.getShape().getN(),
                  multiply.getLayoutA() == NVVM::MMALayout::row,
                  multiply.getLayoutB() == NVVM::MMALayout::col,
                  multiply.getDescriptorA(),
                  multiply.getDescriptorB(),
                  {},
                  {}};
  auto type = cast<LLVM::LLVMStructType>(multiply.getResults().getType());
  for (auto [index, element] : llvm::enumerate(type.getBody()))
    product.accumulators.push_back(LLVM::ExtractValueOp::create(builder, multiply.getLoc(), element,
                                                                multiply.getInouts(), ArrayRef<int64_t>(index)));
  return product;
}

/// Reads a product in inline assembly, with lhs in four registers and f32 accumulators.
static FailureOr<Product> productOf(LLVM::InlineAsmOp multiply) {
  static const llvm::Regex form(
      "wgmma\\.mma_async\\.sync\\.aligned\\.m64n([0-9]+)k16\\.f32\\.(f16|bf16)\\.(f16|bf16) .*, p, 1, 1, ([01]);");
  constexpr size_t words = 4;
  SmallVector<StringRef> parts;
  int64_t n = 0;
  size_t accumulators = accumulatorsOf(multiply);
  SmallVector<Type> types(accumulators, Float32Type::get(multiply.getContext()));
  types.append(words, IntegerType::get(multiply.getContext(), 32));
  types.push_back(IntegerType::get(multiply.getContext(), 64));
  bool fits = form.match(multiply.getAsmString(), &parts) && parts[2] == parts[3] && !parts[1].getAsInteger(10, n) &&
              n > 0 && n == static_cast<int64_t>(2 * accumulators) && llvm::equal(multiply.getOperandTypes(), types);
  if (!fits)
    return multiply.emitOpError(
        "is not simulated; of wgmma in inline assembly, only f16 and bf16 with lhs in registers "
        "and f32 accumulators are");
  ValueRange operands = multiply.getOperands();
  return Product{parts[2] == "f16" ? MatrixType::f16 : MatrixType::bf16,
                 n,
                 /*lhsLiesAlongK=*/true,
                 parts[4] == "0",
                 Value(),
                 operands.back(),
                 llvm::to_vector(operands.drop_back().take_back(words)),
                 llvm::to_vector(operands.take_front(n / 2))};
}

LogicalResult KernelRewriter::reportProduct(Operation *multiply) {
  OpBuilder &builder = code.builder;
  Location loc = multiply->getLoc();
  builder.setInsertionPoint(multiply);
  auto wgmma = dyn_cast<NVVM::WgmmaMmaAsyncOp>(multiply);
  FailureOr<Product> product = wgmma ? productOf(wgmma, builder) : productOf(cast<LLVM::InlineAsmOp>(multiply));
  if (failed(product))
    return failure();
  int64_t words = product->accumulators.size() + product->lhsWords.size();
  Value memory = code.scratch(multiply, words * static_cast<int64_t>(sizeof(float)));
  auto wordAt = [&](int64_t index) -> Value {
    return LLVM::GEPOp::create(builder, loc, memory.getType(), builder.getF32Type(), memory,
                               ArrayRef<LLVM::GEPArg>{index});
  };
  for (auto [index, value] : llvm::enumerate(llvm::concat<Value>(product->accumulators, product->lhsWords)))
    LLVM::StoreOp::create(builder, loc, value, wordAt(index));
  uint32_t along = (product->lhsLiesAlongK ? 1 : 0) | (product->rhsLiesAlongK ? 2 : 0) | (product->left ? 0 : 4);
  Value left =
      product->left
          ? product->left
          : LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), builder.getI64IntegerAttr(0)).getResult();
  code.call(loc, runtime::startProduct, {},
            {code.number(loc, productSites.lookup(multiply)), code.number(loc, static_cast<uint32_t>(product->type)),
             code.number(loc, product->n | along << 16), left, product->right, memory});
  auto type = cast<LLVM::LLVMStructType>(multiply->getResult(0).getType());
  Value result = LLVM::UndefOp::create(builder, loc, type);
  for (auto [index, element] : llvm::enumerate(type.getBody())) {
    Value sum = LLVM::LoadOp::create(builder, loc, element, wordAt(index));
    result = LLVM::InsertValueOp::create(builder, loc, result, sum, index);
  }
  multiply->getResult(0).replaceAllUsesWith(result);
  return success();
}

// How products of warpgroups report themselves to the runtime, and what touches their sums.
#include "tools/simulator/KernelRewriter.h"

#include "tools/simulator/Collectives.h"
#include "tools/simulator/MatrixElements.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

void KernelRewriter::reportSums(NVVM::WgmmaMmaAsyncOp multiply) {
  code.builder.setInsertionPoint(multiply);
  code.site(multiply);
  uint32_t product = productSites[multiply] = program.sites.size() - 1;
  program.sites.back().kind.reads = true;
  program.sites.back().space = Space::shared;
  SmallVector<Value> work = {multiply.getResults()};
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
      } else if (!isa<NVVM::WgmmaMmaAsyncOp>(user)) {
        users.insert(user);
      }
    }
  for (Operation *user : users) {
    code.builder.setInsertionPoint(user);
    code.call(user->getLoc(), runtime::touchSums, {}, {code.site(user), code.number(user->getLoc(), product)});
  }
}

/// What a warpgroup multiplies, if it is simulated.
static std::optional<MatrixType> factorsOf(NVVM::WgmmaMmaAsyncOp multiply) {
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

LogicalResult KernelRewriter::report(NVVM::WgmmaMmaAsyncOp multiply) {
  OpBuilder &builder = code.builder;
  Location loc = multiply.getLoc();
  auto type = cast<LLVM::LLVMStructType>(multiply.getResults().getType());
  NVVM::MMAShapeAttr shape = multiply.getShape();
  std::optional<MatrixType> factors = factorsOf(multiply);
  bool isWhole = factors && isBytes(*factors);
  bool fits = factors && multiply.getTypeD() == (isWhole ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32) &&
              multiply.getScaleD() == NVVM::WGMMAScaleOut::one && multiply.getScaleA() == NVVM::WGMMAScaleIn::one &&
              multiply.getScaleB() == NVVM::WGMMAScaleIn::one &&
              multiply.getSatfinite() != NVVM::MMAIntOverflow::satfinite;
  if (!fits)
    return multiply.emitOpError(
        "of these types is not simulated: of f16, bf16 and tf32 added to sums in f32 is, and of "
        "bytes added to sums in i32 that wrap");
  builder.setInsertionPoint(multiply);
  uint32_t along =
      (multiply.getLayoutA() == NVVM::MMALayout::row ? 1 : 0) | (multiply.getLayoutB() == NVVM::MMALayout::col ? 2 : 0);
  Value sums = code.scratch(multiply, shape.getN() / 2 * static_cast<int64_t>(sizeof(float)));
  auto place = [&](int32_t index) -> Value {
    return LLVM::GEPOp::create(builder, loc, sums.getType(), builder.getF32Type(), sums, ArrayRef<LLVM::GEPArg>{index});
  };
  for (auto [index, element] : llvm::enumerate(type.getBody())) {
    Value sum = LLVM::ExtractValueOp::create(builder, loc, element, multiply.getInouts(), ArrayRef<int64_t>(index));
    LLVM::StoreOp::create(builder, loc, sum, place(index));
  }
  code.call(loc, runtime::startProduct, {},
            {code.number(loc, productSites.lookup(multiply)), code.number(loc, static_cast<uint32_t>(*factors)),
             code.number(loc, shape.getN() | along << 16), multiply.getDescriptorA(), multiply.getDescriptorB(), sums});
  Value result = LLVM::UndefOp::create(builder, loc, type);
  for (auto [index, element] : llvm::enumerate(type.getBody())) {
    Value sum = LLVM::LoadOp::create(builder, loc, element, place(index));
    result = LLVM::InsertValueOp::create(builder, loc, result, sum, index);
  }
  multiply.getResults().replaceAllUsesWith(result);
  return success();
}

#include "passes/codegen/gpu/nest/FirstStep.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright;

static constexpr llvm::StringLiteral kFirstStep = "tile_is_first_step";

Value tilewright::isFirstStep(OpBuilder &builder, Location loc, ModuleOp module) {
  if (!module.lookupSymbol(kFirstStep)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    LLVM::LLVMFuncOp::create(builder, loc, kFirstStep, LLVM::LLVMFunctionType::get(builder.getI1Type(), {}));
  }
  return LLVM::CallOp::create(builder, loc, TypeRange{builder.getI1Type()}, kFirstStep, ValueRange()).getResult();
}

static SmallVector<LLVM::CallOp> questionsOf(LLVM::LLVMFuncOp kernel) {
  SmallVector<LLVM::CallOp> questions;
  kernel.walk([&](LLVM::CallOp call) {
    if (call.getCallee() == kFirstStep)
      questions.push_back(call);
  });
  return questions;
}

void tilewright::answerFirstStep(LLVM::LLVMFuncOp kernel, Value isFirst) {
  for (LLVM::CallOp question : questionsOf(kernel)) {
    question.getResult().replaceAllUsesWith(isFirst);
    question.erase();
  }
}

void tilewright::answerFirstStep(LLVM::LLVMFuncOp kernel) {
  for (LLVM::CallOp question : questionsOf(kernel)) {
    OpBuilder builder(question);
    question.getResult().replaceAllUsesWith(
        LLVM::ConstantOp::create(builder, question.getLoc(), builder.getI1Type(), builder.getBoolAttr(true)));
    question.erase();
  }
}

bool tilewright::eraseFirstStep(Operation *module) {
  Operation *declared = SymbolTable::lookupSymbolIn(module, kFirstStep);
  if (declared)
    declared->erase();
  return declared != nullptr;
}

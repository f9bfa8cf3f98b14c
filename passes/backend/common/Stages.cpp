#include "passes/backend/common/Stages.h"

#include "passes/Passes.h"
#include "passes/program/InjectFailure.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tilewright;

void tilewright::maybeFail(OpPassManager &manager, const KernelOptions &options, StringRef stage) {
  if (options.failAt != stage)
    return;
  manager.addPass(
      createInjectFailure(SmallVector<std::string>(options.failOn.begin(), options.failOn.end()), options.failByCrash));
}

void tilewright::addExpansions(OpPassManager &manager, const KernelOptions &options) {
  manager.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass()); // IREE leaves bitcasts as they are
  manager.addNestedPass<func::FuncOp>(createExpandArgCompare());
  manager.addNestedPass<func::FuncOp>(createExpandQuantization());
  addQuantizedMatmuls(manager.nest<func::FuncOp>(), options);
  LayOutImagesOptions images;
  images.target = options.target;
  images.numerics = options.numerics;
  images.gridSync = options.gridSync;
  manager.addPass(createLayOutImages(images));
}

void tilewright::addQuantizedMatmuls(OpPassManager &functions, const KernelOptions &options) {
  LowerQuantizedMatmulOptions narrow;
  narrow.numerics = options.numerics;
  functions.addPass(createLowerQuantizedMatmul(narrow));
}

void tilewright::addOnePassVariance(OpPassManager &functions, const KernelOptions &options) {
  if (options.numerics == "strict")
    return;
  OnePassVarianceOptions shift;
  shift.target = options.target;
  functions.addPass(createOnePassVariance(shift));
}

void tilewright::addOnlineSoftmax(OpPassManager &functions, const KernelOptions &options) {
  MarkOnlineSoftmaxOptions run;
  run.target = options.target;
  functions.addPass(createMarkOnlineSoftmax(run));
}

void tilewright::lowerToLlvm(OpPassManager &kernels, const KernelOptions &options, bool expandsArith) {
  // The canonicalizer visits a whole loop again after each change in its body, which is quadratic in an unrolled body.
  // Most of what the generators write are repeated constants and addresses, so those are merged first.
  kernels.addNestedPass<func::FuncOp>(createCSEPass());
  kernels.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  kernels.addNestedPass<func::FuncOp>(createCSEPass());
  kernels.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes());
  LowerMathOptions math;
  math.target = options.target;
  kernels.addPass(createLowerMath(math));
  arith::ArithEmulateUnsupportedFloatsOptions widen;
  widen.sourceTypeStrs = {"bf16", "f16"};
  widen.targetTypeStr = "f32";
  kernels.addNestedPass<func::FuncOp>(arith::createArithEmulateUnsupportedFloats(widen));
  if (expandsArith)
    kernels.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass());
  EmulateInstructionsOptions emulate;
  emulate.target = options.target;
  kernels.addNestedPass<func::FuncOp>(createEmulateInstructions(emulate));
  kernels.addNestedPass<func::FuncOp>(createCSEPass());
  // Passes on functions compile kernels in parallel.
  kernels.addNestedPass<func::FuncOp>(createSCFToControlFlowPass());
  kernels.addNestedPass<func::FuncOp>(createConvertVectorToLLVMPass());
  kernels.addPass(createFinalizeMemRefToLLVMConversionPass());
  kernels.addNestedPass<func::FuncOp>(createConvertMathToLLVMPass());
  kernels.addNestedPass<func::FuncOp>(createArithToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions function;
  function.useBarePtrCallConv = true;
  kernels.addPass(createConvertFuncToLLVMPass(function));
  kernels.addPass(createConvertControlFlowToLLVMPass());
  kernels.addNestedPass<LLVM::LLVMFuncOp>(createUBToLLVMConversionPass());
  kernels.addNestedPass<LLVM::LLVMFuncOp>(createReconcileUnrealizedCastsPass());
}

void tilewright::addLaunchPlan(OpPassManager &manager, const KernelOptions &options) {
  manager.addPass(createComputeAtLoad());
  if (options.launches.empty())
    return;
  PrintLaunchesOptions print;
  print.output = options.launches;
  print.forRuntime = true;
  manager.addPass(createPrintLaunches(print));
}

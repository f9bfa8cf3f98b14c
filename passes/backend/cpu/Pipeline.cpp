// Orders the passes of CPUs.
#include "passes/backend/common/Stages.h"
#include "passes/backend/cpu/CpuBackend.h"

#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tilewright;

void CpuBackend::populateNormalize(OpPassManager &manager, const KernelOptions &options) const {
  addExpansions(manager, options);
  populateForms(manager.nest<func::FuncOp>(), options);
}

void CpuBackend::populateForms(OpPassManager &functions, const KernelOptions &options) const {
  addQuantizedMatmuls(functions, options); // former convolutions
  functions.addPass(createNormalizeExprs({options.target}));
  addOnePassVariance(functions, options);
  CollapseDimsOptions collapse; // after passes that cut along the dims of the model
  collapse.target = options.target;
  functions.addPass(createCollapseDims(collapse));
  if (options.numerics != "strict") { // sums and divisions have another order than those of the graph
    functions.addPass(createDeferNormalization());
    addOnlineSoftmax(functions, options);
  }
  MergeContractionsOptions merge;
  merge.target = options.target;
  functions.addPass(createMergeContractions(merge));
  PackWeightsOptions pack;
  pack.target = options.target;
  pack.numerics = options.numerics;
  functions.addPass(createPackWeights(pack));
}

void CpuBackend::populateLaunches(OpPassManager &manager, const KernelOptions &options) const {
  manager.addPass(createTieResults());
}

void CpuBackend::populateKernels(OpPassManager &manager, const KernelOptions &options) const {
  auto &kernels = manager.nest<ModuleOp>();
  StageTransposesOptions stage;
  stage.target = options.target;
  kernels.addNestedPass<tile::ProgramOp>(createStageTransposes(stage));
  WidenBuffersOptions widen;
  widen.target = options.target;
  kernels.addNestedPass<tile::ProgramOp>(createWidenBuffers(widen));
  kernels.addNestedPass<tile::ProgramOp>(createAllocateBuffers());
  kernels.addNestedPass<tile::ProgramOp>(createVerifyPrograms());
  MakeVariantsOptions variants;
  variants.targets.push_back(options.target);
  variants.targets.append(options.variants.begin(), options.variants.end());
  kernels.addPass(createMakeVariants(variants));
  ConvertToVectorOptions convert;
  convert.target = options.target;
  kernels.addPass(createConvertToVector(convert));
  if (options.countBytes)
    kernels.addNestedPass<func::FuncOp>(createInstrumentBytes());
  if (options.traceAccesses)
    kernels.addNestedPass<func::FuncOp>(createTraceAccesses());
  lowerToLlvm(kernels, options, /*expandsArith=*/true);
  WrapCpuAbiOptions wrap;
  wrap.assumeTiles = options.assumeTiles;
  kernels.addPass(createWrapCpuAbi(wrap));
  maybeFail(manager, options, "code");
}

void CpuBackend::populateObject(OpPassManager &manager, const KernelOptions &options) const {
  EmitObjectOptions emit;
  emit.target = options.target;
  emit.path = options.objectPath;
  emit.manifest = options.manifest;
  emit.dumpAssembly = options.dumpAssembly;
  manager.addPass(createEmitObject(emit));
}

void CpuBackend::populateSplice(OpPassManager &manager, const KernelOptions &options) const {
  addLaunchPlan(manager, options);
  SpliceIreeOptions splice;
  splice.object = options.objectPath;
  manager.addPass(createSpliceIree(splice));
}

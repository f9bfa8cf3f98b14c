// Orders the passes of CUDA's GPUs.
#include "passes/backend/common/Stages.h"
#include "passes/backend/cuda/CudaBackend.h"

#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/iree/Variants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tilewright;

void CudaBackend::populateNormalize(OpPassManager &manager, const KernelOptions &options) const {
  addExpansions(manager, options);
  populateForms(manager.nest<func::FuncOp>(), options);
}

/// Weights are packed after planning, because the plan decides their layout.
void CudaBackend::populateForms(OpPassManager &functions, const KernelOptions &options) const {
  addQuantizedMatmuls(functions, options); // former convolutions
  functions.addPass(createNormalizeExprs({options.target}));
  addOnePassVariance(functions, options);
  if (options.numerics == "strict")
    return;
  // Sums and divisions have another order than those of the graph.
  functions.addPass(createDeferNormalization());
  SplitReductionsOptions split;
  split.target = options.target;
  split.gridSync = options.gridSync;
  functions.addPass(createSplitReductions(split));
  addOnlineSoftmax(functions, options);
}

void CudaBackend::populatePlanned(OpPassManager &manager, const KernelOptions &options) const {
  manager.addNestedPass<func::FuncOp>(createSwizzleWeights());
}

void CudaBackend::populateKernels(OpPassManager &manager, const KernelOptions &options) const {
  RewriteMovementOptions movement;
  movement.target = options.target;
  manager.addPass(createRewriteMovement(movement));
  manager.addPass(createReduceAcrossBlocks());
  auto &programs = manager.nest<ModuleOp>();
  KeepResidentTilesOptions keep;
  keep.target = options.target;
  programs.addNestedPass<tile::ProgramOp>(createKeepResidentTiles(keep));
  StageTilesOptions stage;
  stage.target = options.target;
  programs.addNestedPass<tile::ProgramOp>(createStageTiles(stage));
  programs.addNestedPass<tile::ProgramOp>(createAllocateBuffers());
  programs.addNestedPass<tile::ProgramOp>(createInsertSyncs());
  manager.addPass(createTrimBindings());
  AllocatePartialsOptions partials;
  partials.target = options.target;
  manager.addPass(createAllocatePartials(partials));
  auto &kernels = manager.nest<ModuleOp>();
  KeepWeightsOptions weights;
  weights.target = options.target;
  kernels.addNestedPass<tile::ProgramOp>(createKeepWeights(weights));
  kernels.addNestedPass<tile::ProgramOp>(createVerifyPrograms());
  ConvertToGpuOptions convert;
  convert.target = options.target;
  kernels.addPass(createConvertToGpu(convert));
  lowerToLlvm(kernels, options, /*expandsArith=*/false);
  kernels.addPass(createWrapCudaAbi());
  maybeFail(manager, options, "code");
  ShareBindingsOptions share;
  share.target = options.target;
  manager.addPass(createShareBindings(share));
}

void CudaBackend::populateObject(OpPassManager &manager, const KernelOptions &options) const {
  EmitPtxOptions emit;
  emit.target = options.target;
  emit.path = options.objectPath;
  emit.manifest = options.manifest;
  manager.addPass(createEmitPtx(emit));
  for (auto [number, variant] : llvm::enumerate(options.variants)) {
    EmitPtxOptions also;
    also.target = variant;
    also.path = variantPath(options.objectPath, number);
    manager.addPass(createEmitPtx(also));
  }
}

void CudaBackend::populateSplice(OpPassManager &manager, const KernelOptions &options) const {
  addLaunchPlan(manager, options);
  SpliceIreeOptions splice;
  splice.object = options.imagePath.empty() ? options.objectPath : options.imagePath;
  splice.target = options.target;
  splice.variants.append(options.variants.begin(), options.variants.end());
  manager.addPass(createSpliceIree(splice));
}

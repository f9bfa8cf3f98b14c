// The backend of CUDA's GPUs: a block of threads computes a workgroup, and kernels are PTX, which the driver compiles.
#ifndef TILEWRIGHT_BACKEND_CUDA_CUDABACKEND_H
#define TILEWRIGHT_BACKEND_CUDA_CUDABACKEND_H

#include "passes/backend/Backend.h"

namespace tilewright {

class CudaBackend : public Backend {
public:
  llvm::StringRef name() const override { return "cuda"; }

  std::string chooseTiles(const TilingProblem &problem, IterationSpace &space) const override;
  void chooseWorkgroups(const TilingProblem &problem, IterationSpace &space) const override;
  std::vector<IterationSpace> tilings(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                      const IterationSpace &own) const override;
  void finishPlan(Plan &plan, const TensorGraph &graph, const Target &target,
                  llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) const override;
  std::string settlePlan(Plan &plan, const TensorGraph &graph, const Target &target,
                         std::vector<PlanRemark> &remarks) const override;

  void populateNormalize(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateForms(mlir::OpPassManager &functions, const KernelOptions &options) const override;
  void populatePlanned(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateKernels(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateObject(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateSplice(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  bool isSimulated() const override { return true; }
};

} // namespace tilewright

#endif

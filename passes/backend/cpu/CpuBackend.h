// The backend of CPUs: one thread computes a workgroup with the vectors of a core, and kernels are an ELF object that
// IREE's embedded loader takes.
#ifndef TILEWRIGHT_BACKEND_CPU_CPUBACKEND_H
#define TILEWRIGHT_BACKEND_CPU_CPUBACKEND_H

#include "passes/backend/Backend.h"

namespace tilewright {

class CpuBackend : public Backend {
public:
  llvm::StringRef name() const override { return "cpu"; }

  std::string chooseTiles(const TilingProblem &problem, IterationSpace &space) const override;
  void chooseWorkgroups(const TilingProblem &problem, IterationSpace &space) const override;
  std::vector<IterationSpace> tilings(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                      const IterationSpace &own) const override;
  void finishPlan(Plan &plan, const TensorGraph &graph, const Target &target,
                  llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) const override;
  std::string settlePlan(Plan &plan, const TensorGraph &graph, const Target &target,
                         std::vector<PlanRemark> &remarks) const override;
  double startSeconds(const IterationSpace &space, const Target &target) const override;

  void populateNormalize(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateForms(mlir::OpPassManager &functions, const KernelOptions &options) const override;
  void populateLaunches(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateKernels(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateObject(mlir::OpPassManager &manager, const KernelOptions &options) const override;
  void populateSplice(mlir::OpPassManager &manager, const KernelOptions &options) const override;
};

} // namespace tilewright

#endif

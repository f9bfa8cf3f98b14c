// A backend is what the planner and the pipelines ask of a kind of machine (target/MachineKind.h): how tiles are chosen,
// what kernels cost, what a plan has to state, and which passes generate code. Facts that are data are properties of the
// target instead (MachineTraits). Another backend is a folder and a registration (docs/guide/extending.md).
#ifndef TILEWRIGHT_BACKEND_BACKEND_H
#define TILEWRIGHT_BACKEND_BACKEND_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"
#include "passes/plan/space/TileFootprint.h"

namespace mlir {
class OpPassManager;
}

namespace tilewright {

struct KernelOptions;

/// A group whose tiles are chosen. `footprint` has the buffers for the present tiles of its space.
struct TilingProblem {
  const TensorGraph &graph;
  const GroupChoice &group;
  const Target &target;
  const TileFootprint &footprint;
};

/// A remark on an op of a plan, for the user.
struct PlanRemark {
  unsigned op;
  std::string name; ///< name of the remark
  std::string text;
};

/// All functions are pure, and several threads may call them at a time.
class Backend {
public:
  virtual ~Backend();

  /// Returns the name of the kind of machines that the backend is for.
  virtual llvm::StringRef name() const = 0;

  //===--------------------------------------------------------------------===//
  // Planning
  //===--------------------------------------------------------------------===//

  /// Sets the tiles of a space whose grid dims have tiles of one point and whose other dims are whole, and the
  /// workgroups that compute them. Returns why there are none, or an empty string.
  virtual std::string chooseTiles(const TilingProblem &problem, IterationSpace &space) const = 0;

  /// Sets the workgroups that compute the present tiles of the space.
  virtual void chooseWorkgroups(const TilingProblem &problem, IterationSpace &space) const = 0;

  /// Returns the spaces of a group with all tilings that are worth measuring, for tuning. `own` is the planner's, with
  /// everything that follows from its tiles. By default, it is the only one.
  virtual std::vector<IterationSpace> tilings(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                              const IterationSpace &own) const;

  /// Predicts a launch whose groups run side by side. `workingSetBytes` is that of predictKernel (cost/TrafficCost.h),
  /// which is the default.
  virtual Prediction estimate(llvm::ArrayRef<GroupWork> groups, const Target &target, double workingSetBytes) const;

  /// Returns the seconds that starting the tiles takes. Predictions leave them out; they tell tilings of one group
  /// apart. By default, they are 0.
  virtual double startSeconds(const IterationSpace &space, const Target &target) const;

  /// Adds to a plan that was just made what only this kind of machine needs. `groupOf` returns the group that the
  /// planner made of an op.
  virtual void finishPlan(Plan &plan, const TensorGraph &graph, const Target &target,
                          llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) const;

  /// Adds to a legal plan, which may be from a file, what it leaves open, and remarks on what could be quicker. Returns
  /// why the plan cannot be carried out, or an empty string.
  virtual std::string settlePlan(Plan &plan, const TensorGraph &graph, const Target &target,
                                 std::vector<PlanRemark> &remarks) const;

  //===--------------------------------------------------------------------===//
  // Pipelines: passes/Pipelines.cpp says what runs between these stages
  //===--------------------------------------------------------------------===//

  /// Adds the passes that prepare an imported module for planning.
  virtual void populateNormalize(mlir::OpPassManager &manager, const KernelOptions &options) const = 0;

  /// Adds the passes of that stage on functions whose convolutions are contractions, which choose other forms before a
  /// function is planned. By default, there are none.
  virtual void populateForms(mlir::OpPassManager &functions, const KernelOptions &options) const;

  /// Adds passes on the planned module. By default, there are none.
  virtual void populatePlanned(mlir::OpPassManager &manager, const KernelOptions &options) const;

  /// Adds passes on the launches of tile programs in a model's module. By default, there are none.
  virtual void populateLaunches(mlir::OpPassManager &manager, const KernelOptions &options) const;

  /// Adds the passes from tile programs to kernels in the dialect that is translated to the object's language.
  virtual void populateKernels(mlir::OpPassManager &manager, const KernelOptions &options) const = 0;

  /// Adds the passes from such kernels to files with objects.
  virtual void populateObject(mlir::OpPassManager &manager, const KernelOptions &options) const = 0;

  /// Adds the pass that puts the objects into IREE's module.
  virtual void populateSplice(mlir::OpPassManager &manager, const KernelOptions &options) const = 0;

  /// Returns true if a simulated device runs kernels as populateKernels leaves them. Subprograms are then compiled to
  /// these, and there is a pipeline that compiles models to them. By default, it is false.
  virtual bool isSimulated() const;
};

/// Adds a backend to those of this process. Its kind of machines must be registered. Returns an error if it is not, or
/// if it has a backend already, or an empty string.
std::string registerBackend(std::unique_ptr<Backend> backend);

/// Returns all backends in the order of their registration. They are never removed.
std::vector<const Backend *> backends();

/// Returns the backend of a target. It is a fatal error if there is none: whoever plans registers backends first
/// (registerBackends in passes/Pipelines.h).
const Backend &backendOf(const Target &target);

/// Predicts a launch with the target's backend. The parameters are those of Backend::estimate.
Prediction estimate(llvm::ArrayRef<GroupWork> groups, const Target &target, double workingSetBytes = 0);

} // namespace tilewright

#endif

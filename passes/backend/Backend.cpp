#include "passes/backend/Backend.h"

#include "passes/target/MachineKind.h"
#include "llvm/Support/ErrorHandling.h"
#include <deque>
#include <mutex>

using namespace mlir;
using namespace tilewright;

Backend::~Backend() = default;

std::vector<IterationSpace> Backend::tilings(const TensorGraph &, const GroupChoice &, const Target &,
                                             const IterationSpace &own) const {
  return {own};
}

Prediction Backend::estimate(ArrayRef<GroupWork> groups, const Target &target, double workingSetBytes) const {
  return predictKernel(groups, target, workingSetBytes);
}

double Backend::startSeconds(const IterationSpace &, const Target &) const { return 0; }

void Backend::finishPlan(Plan &, const TensorGraph &, const Target &,
                         llvm::function_ref<const PlannedGroup &(unsigned)>) const {}

std::string Backend::settlePlan(Plan &, const TensorGraph &, const Target &, std::vector<PlanRemark> &) const {
  return "";
}

void Backend::populateForms(OpPassManager &, const KernelOptions &) const {}

void Backend::populatePlanned(OpPassManager &, const KernelOptions &) const {}

void Backend::populateLaunches(OpPassManager &, const KernelOptions &) const {}

bool Backend::isSimulated() const { return false; }

namespace {
struct Registry {
  std::mutex mutex;
  std::deque<std::unique_ptr<Backend>> backends;
};

Registry &registry() {
  static Registry registry;
  return registry;
}

const Backend *find(llvm::StringRef name) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  for (const std::unique_ptr<Backend> &backend : registry().backends)
    if (backend->name() == name)
      return backend.get();
  return nullptr;
}
} // namespace

std::string tilewright::registerBackend(std::unique_ptr<Backend> backend) {
  if (!findMachineKind(backend->name()))
    return "no machines of kind '" + backend->name().str() + "' are registered";
  if (find(backend->name()))
    return "machines of kind '" + backend->name().str() + "' have a backend already";
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().backends.push_back(std::move(backend));
  return "";
}

std::vector<const Backend *> tilewright::backends() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<const Backend *> all;
  for (const std::unique_ptr<Backend> &backend : registry().backends)
    all.push_back(backend.get());
  return all;
}

const Backend &tilewright::backendOf(const Target &target) {
  if (const Backend *found = find(target.backend))
    return *found;
  llvm::report_fatal_error(llvm::Twine("no backend is registered for machines of kind '") + target.backend + "'");
}

Prediction tilewright::estimate(ArrayRef<GroupWork> groups, const Target &target, double workingSetBytes) {
  return backendOf(target).estimate(groups, target, workingSetBytes);
}

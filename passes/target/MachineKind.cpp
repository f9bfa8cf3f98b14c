#include "passes/target/MachineKind.h"

#include "passes/target/KnownTargets.h"
#include "passes/target/TargetChecks.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>
#include <mutex>

using namespace tilewright;

namespace {
/// One thread computes a workgroup, with the vectors of a core. Inputs that it reads again and again stay in its cache
/// or in a buffer of its own.
MachineTraits cpuTraits() {
  MachineTraits traits;
  traits.stagesForWorkgroup = true;
  traits.streamsStores = true;
  return traits;
}

/// A block of threads computes a workgroup, with shared memory that it alone reads. PTX has all of these instructions
/// from sm_80 on.
MachineTraits cudaTraits() {
  MachineTraits traits;
  traits.threadBlocks = true;
  traits.sharesBufferMemory = true;
  traits.buffersRepeatedReads = true;
  traits.readsTransposed = true;
  traits.sharesBindings = true;
  traits.packsContractions = true;
  traits.narrowOnePass = true;
  traits.instructions = {"fma", "f16c", "ex2", "minmax", "tf32"};
  return traits;
}

MachineKind kindOf(std::string name, MachineTraits traits, std::string (*whyNoCode)(const Target &),
                   std::vector<Target> targets) {
  MachineKind kind{std::move(name), std::move(traits), whyNoCode, {}};
  for (Target &target : targets)
    kind.targets.push_back(of(kind, std::move(target)));
  return kind;
}

struct Registry {
  std::mutex mutex;
  std::deque<MachineKind> kinds; ///< a deque, whose elements stay where they are

  Registry() {
    kinds.push_back(kindOf("cpu", cpuTraits(), whyNoCpuCode, cpuTable()));
    kinds.push_back(kindOf("cuda", cudaTraits(), whyNoCudaCode, cudaTable()));
  }
};

Registry &registry() {
  static Registry registry;
  return registry;
}
} // namespace

Target tilewright::of(const MachineKind &kind, Target target) {
  target.backend = kind.name;
  target.traits = kind.traits;
  return target;
}

std::string tilewright::registerMachineKind(MachineKind kind) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  if (llvm::any_of(registry().kinds, [&](const MachineKind &other) { return other.name == kind.name; }))
    return "machines of kind '" + kind.name + "' are registered already";
  for (Target &target : kind.targets)
    target = of(kind, std::move(target));
  registry().kinds.push_back(std::move(kind));
  return "";
}

std::vector<const MachineKind *> tilewright::machineKinds() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<const MachineKind *> kinds;
  for (const MachineKind &kind : registry().kinds)
    kinds.push_back(&kind);
  return kinds;
}

const MachineKind *tilewright::findMachineKind(llvm::StringRef name) {
  for (const MachineKind *kind : machineKinds())
    if (kind->name == name)
      return kind;
  return nullptr;
}

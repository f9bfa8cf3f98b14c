// Kinds of machines: the name that target files give as "backend", with what is true of every machine of the kind. The
// planner and the pipelines of a kind are its Backend (passes/backend/Backend.h).
#ifndef TILEWRIGHT_TARGET_MACHINEKIND_H
#define TILEWRIGHT_TARGET_MACHINEKIND_H

#include "passes/target/Target.h"
#include <functional>

namespace tilewright {

struct MachineKind {
  std::string name; ///< "cpu", "cuda"
  MachineTraits traits;
  /// Returns why no code can be generated for a machine that a file describes, naming the field; or an empty string.
  std::function<std::string(const Target &target)> whyNoCode;
  std::vector<Target> targets; ///< machines that are known by name
};

/// Returns the target as a machine of the kind.
Target of(const MachineKind &kind, Target target);

/// Adds a kind of machines to those of this process, before any target of it is looked up. Returns an error if its name
/// is taken, or an empty string.
std::string registerMachineKind(MachineKind kind);

/// Returns all kinds, in the order of their registration: CPUs, CUDA's GPUs, then others. They are never removed.
std::vector<const MachineKind *> machineKinds();

/// Returns the kind of that name, or null.
const MachineKind *findMachineKind(llvm::StringRef name);

} // namespace tilewright

#endif

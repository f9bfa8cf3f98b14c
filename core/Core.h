// The interface that the Python module and `tilewright-opt` share: modules, passes, targets and plans in plain types of
// the standard library. It includes no header of MLIR, so in a wheel a single shared object can hold all of MLIR behind
// it. Functions that fail return diagnostics or a message; targets and plans are passed as JSON.
#ifndef TILEWRIGHT_CORE_CORE_H
#define TILEWRIGHT_CORE_CORE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/// Marks the symbols that a shared core exports.
#define TILEWRIGHT_CORE __attribute__((visibility("default")))

struct MlirOperation;

namespace tilewright {

class NativeContext;

struct PlainDiagnostic {
  std::string severity; ///< "error", "warning", "remark" or "note"
  std::string message;
  std::string location;  ///< location as describe() formats it
  std::string operation; ///< name of the op at fault; empty if the message names none
  std::vector<PlainDiagnostic> notes;
  std::map<std::string, int64_t> numbers; ///< what a caller may act on, by name (passes/support/DiagnosticNumbers.h)
};

using Diagnostics = std::vector<PlainDiagnostic>;

/// A module and its context. Calls on one module are serialised; modules are independent of each other.
class TILEWRIGHT_CORE NativeModule {
public:
  ~NativeModule();

  /// Parses a module. Returns null and diagnostics if the text is not a module.
  static std::tuple<std::shared_ptr<NativeModule>, Diagnostics> parse(const std::string &text, const std::string &name);

  std::string text(bool generic, bool localScope, bool debugInfo);
  /// Runs a pipeline such as "builtin.module(a,b{c=1})". A pipeline anchored on another op runs on every such op of the
  /// module. With `verifyEach`, MLIR's verifier runs after every pass that changes the module; without, a pipeline of
  /// ours verifies the module at the end of each phase.
  std::tuple<bool, Diagnostics> run(const std::string &pipeline, const std::string &dumpDirectory, bool verifyEach);
  std::tuple<bool, Diagnostics> verify();
  std::shared_ptr<NativeModule> clone();
  /// The module as an op of MLIR's C API, for the owner of a lock on the module (core/Ir.h).
  MlirOperation operation();
  std::shared_ptr<NativeContext> context();
  /// Verifies a plan against the only function of the module. Returns the plan in the library's format, or an error.
  std::tuple<std::string, std::string> checkPlan(const std::string &json);

private:
  struct State;
  NativeModule();

  std::unique_ptr<State> state;
};

TILEWRIGHT_CORE std::string llvmVersion();
/// Starts to note the running passes in `bytes` bytes at an offset of an open file; see PassNotes.h.
TILEWRIGHT_CORE void notePassesIn(int file, int64_t offset, size_t bytes);
/// Makes a crashing process print to stderr which pass was running and, while LLVM generates code, which function was
/// compiled. Installs signal handlers for the whole process.
TILEWRIGHT_CORE void describeCrashes();
/// Registers passes and pipelines, which must happen once per process, before a pipeline is parsed.
TILEWRIGHT_CORE void registerPipelines();

// Functions that take a name or JSON, and return JSON or an error.
TILEWRIGHT_CORE std::vector<std::string> targetNames();
TILEWRIGHT_CORE std::tuple<std::string, std::string> lookupTargetJson(const std::string &nameOrPath);
/// Returns the target in the library's format. `cores` is the number of hardware threads to scale it to; 0 keeps it.
TILEWRIGHT_CORE std::tuple<std::string, std::string> normalizeTargetJson(const std::string &json, int64_t cores);
TILEWRIGHT_CORE std::tuple<std::string, std::string> normalizePlanJson(const std::string &json);

/// The main function of `tilewright-opt`.
TILEWRIGHT_CORE int optMain(int argc, char **argv);

} // namespace tilewright

#endif

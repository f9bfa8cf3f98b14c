// What the Python module and `tilewright-opt` share: modules, passes, targets and plans in plain types of the standard
// library. No header of MLIR is needed here, so in a wheel one shared object can hold all of MLIR behind this
// interface. What fails returns diagnostics or a message; targets and plans cross as JSON.
#ifndef TILEWRIGHT_CORE_CORE_H
#define TILEWRIGHT_CORE_CORE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

/// All that a shared core exports.
#define TILEWRIGHT_CORE __attribute__((visibility("default")))

namespace tilewright {

struct PlainDiagnostic {
  std::string severity; ///< "error", "warning", "remark" or "note"
  std::string message;
  std::string location;  ///< as describe() words it
  std::string operation; ///< name of the op at fault; empty when the message names none
  std::vector<PlainDiagnostic> notes;
};

using Diagnostics = std::vector<PlainDiagnostic>;

struct OperationInfo {
  std::string name, location, text;
  std::vector<std::string> resultTypes;
  int64_t depth;
};

/// A module and the context it lives in. Calls on one module are serialised; modules are independent of each other.
class TILEWRIGHT_CORE NativeModule {
public:
  ~NativeModule();

  /// Null with diagnostics if the text is not a module.
  static std::tuple<std::shared_ptr<NativeModule>, Diagnostics> parse(const std::string &text, const std::string &name);

  std::string text(bool generic, bool localScope, bool debugInfo);
  /// Runs a pipeline such as "builtin.module(a,b{c=1})"; one anchored on another op runs on every such op of the
  /// module.
  std::tuple<bool, Diagnostics> run(const std::string &pipeline, const std::string &dumpDirectory);
  std::tuple<bool, Diagnostics> verify();
  std::vector<OperationInfo> operations();
  std::shared_ptr<NativeModule> clone();
  /// The plan as the library writes it, or an error; with exactly one function in the module it is verified against it.
  std::tuple<std::string, std::string> checkPlan(const std::string &json);

private:
  struct State;
  NativeModule();

  std::unique_ptr<State> state;
};

TILEWRIGHT_CORE std::string llvmVersion();
/// From now on, what passes run is noted in `bytes` at an offset of an open file; see PassNotes.h.
TILEWRIGHT_CORE void notePassesIn(int file, int64_t offset, size_t bytes);
/// Has a process that dies say on stderr what ran: the pass, and where LLVM generates code the function. It takes the
/// signals of the whole process.
TILEWRIGHT_CORE void describeCrashes();
/// Registers passes and pipelines, which parsing a pipeline needs; once per process.
TILEWRIGHT_CORE void registerPipelines();

// JSON in, and JSON or an error out.
TILEWRIGHT_CORE std::vector<std::string> targetNames();
TILEWRIGHT_CORE std::tuple<std::string, std::string> lookupTargetJson(const std::string &nameOrPath);
/// `cores`: hardware threads to scale the target to; 0: as it is.
TILEWRIGHT_CORE std::tuple<std::string, std::string> normalizeTargetJson(const std::string &json, int64_t cores);
TILEWRIGHT_CORE std::tuple<std::string, std::string> normalizePlanJson(const std::string &json);

/// The whole of `tilewright-opt`.
TILEWRIGHT_CORE int optMain(int argc, char **argv);

} // namespace tilewright

#endif

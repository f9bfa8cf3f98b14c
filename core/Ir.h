// The core's part of Python's objects of IR, in addition to MLIR's C API: contexts that know every dialect, diagnostics
// as plain data, passes that are functions of another language, and the fields of the dialect's attributes and types.
#ifndef TILEWRIGHT_CORE_IR_H
#define TILEWRIGHT_CORE_IR_H

#include "core/Core.h"
#include "mlir-c/IR.h"

#include <optional>
#include <utility>
#include <variant>

namespace tilewright {

class DiagnosticCollector;

/// A context with every dialect of the pipelines. It reports optimisation remarks as diagnostics.
class TILEWRIGHT_CORE NativeContext {
public:
  NativeContext();
  ~NativeContext();
  MlirContext get() const { return context; }

private:
  MlirContext context;
};

/// Collects the diagnostics of a context, instead of printing them, as long as it exists.
class TILEWRIGHT_CORE CollectedDiagnostics {
public:
  explicit CollectedDiagnostics(MlirContext context);
  ~CollectedDiagnostics();
  Diagnostics take();

private:
  std::unique_ptr<DiagnosticCollector> collector;
};

/// Verifies an op that may be in a module which is under construction. Unlike mlirOperationVerify, it may be called for
/// an op inside an invalid one.
TILEWRIGHT_CORE bool verifyInside(MlirOperation op);

/// Removes an attribute. One that has a default value gets it, because MLIR's folders and printers expect one.
TILEWRIGHT_CORE void removeAttribute(MlirOperation op, const std::string &name);

/// Returns a location as diagnostics print it.
TILEWRIGHT_CORE std::string describeLocation(MlirLocation location);

/// Runs a pass of another language on an op. A failed pass has emitted a diagnostic and returns false.
using CallbackPass = bool (*)(const std::string &argument, MlirOperation op);

/// Makes a pass known to textual pipelines under `argument`, or changes the op that it is anchored on. Returns an error
/// if another pass has the name.
TILEWRIGHT_CORE std::string registerCallbackPass(const std::string &argument, const std::string &anchor,
                                                 CallbackPass run);

struct CallbackUse {
  bool any = false;
  bool nested = false; ///< true if one is not anchored on modules, so that MLIR may run it on several ops at a time
};
/// Returns which callback passes the text of a pipeline may contain.
CallbackUse callbacksIn(const std::string &pipeline);

/// One parameter of an attribute or type of the dialect, as its verifier and printer see it.
using TileField =
    std::variant<int64_t, std::string, std::vector<int64_t>, std::vector<std::string>, MlirAttribute, MlirType>;
using TileFields = std::vector<std::pair<std::string, TileField>>;

/// Returns the mnemonic and the fields of an attribute or type of the dialect, or nothing for any other.
TILEWRIGHT_CORE std::optional<std::pair<std::string, TileFields>> tileFields(MlirAttribute attribute);
TILEWRIGHT_CORE std::optional<std::pair<std::string, TileFields>> tileFields(MlirType type);

} // namespace tilewright

#endif

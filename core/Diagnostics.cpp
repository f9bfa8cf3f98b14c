// Extracts the op at fault from the wording of MLIR's diagnostics.
#include "core/Diagnostics.h"

#include "passes/support/DiagnosticNumbers.h"

#include "mlir/IR/Operation.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;

static std::string severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Remark:
    return "remark";
  case DiagnosticSeverity::Note:
    return "note";
  }
  llvm_unreachable("unknown severity");
}

static PlainDiagnostic toPlain(Diagnostic &diagnostic) {
  PlainDiagnostic plain{
      severityName(diagnostic.getSeverity()), diagnostic.str(), describe(diagnostic.getLocation()), "", {}, {}};
  forEachNumber(diagnostic, [&](StringRef name, int64_t value) { plain.numbers[name.str()] = value; });
  // The op's name is taken from the wording of emitOpError, because a diagnostic has no pointer to the op.
  static const llvm::Regex named("^'([A-Za-z_][A-Za-z0-9_$]*\\.[A-Za-z0-9_.$]+)' op ");
  SmallVector<StringRef> groups;
  if (named.match(plain.message, &groups))
    plain.operation = groups[1].str();
  for (Diagnostic &note : diagnostic.getNotes()) {
    PlainDiagnostic plainNote = toPlain(note);
    static const llvm::Regex current(
        "^see current operation: (%[^=]*= )?\"?([A-Za-z_][A-Za-z0-9_$]*\\.[A-Za-z0-9_.$]+)");
    if (current.match(plainNote.message, &groups)) {
      // MLIR adds a note with a dump of the op, of which only the name is used.
      if (plain.operation.empty())
        plain.operation = groups[2].str();
      continue;
    }
    plain.notes.push_back(std::move(plainNote));
  }
  return plain;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) { collected.push_back(toPlain(diagnostic)); }) {}

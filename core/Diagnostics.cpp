#include "core/Diagnostics.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;

std::string tilewright::describe(Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    StringRef text = name.getName().getValue();
    return text.empty() ? describe(name.getChildLoc()) : text.str();
  }
  if (auto line = dyn_cast<FileLineColLoc>(location))
    return (line.getFilename().getValue() + ":" + Twine(line.getLine()) + ":" + Twine(line.getColumn())).str();
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return describe(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    // Passes of IREE and ours fuse locations; the first that says something stands for all.
    for (Location part : fused.getLocations())
      if (std::string text = describe(part); !text.empty())
        return text;
    return "";
  }
  if (auto opaque = dyn_cast<OpaqueLoc>(location))
    return describe(opaque.getFallbackLocation());
  return "";
}

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
      severityName(diagnostic.getSeverity()), diagnostic.str(), describe(diagnostic.getLocation()), "", {}};
  // emitOpError words it so; MLIR keeps no pointer to the op.
  static const llvm::Regex named("^'([A-Za-z_][A-Za-z0-9_$]*\\.[A-Za-z0-9_.$]+)' op ");
  SmallVector<StringRef> groups;
  if (named.match(plain.message, &groups))
    plain.operation = groups[1].str();
  for (Diagnostic &note : diagnostic.getNotes()) {
    PlainDiagnostic plainNote = toPlain(note);
    static const llvm::Regex current(
        "^see current operation: (%[^=]*= )?\"?([A-Za-z_][A-Za-z0-9_$]*\\.[A-Za-z0-9_.$]+)");
    if (current.match(plainNote.message, &groups)) {
      // MLIR adds a dump of the op; its name is what is wanted.
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

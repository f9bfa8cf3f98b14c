// The file is removed again if writing fails.
#include "passes/support/JsonFile.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

LogicalResult tilewright::writeJson(Operation *op, StringRef path, const llvm::json::Value &value) {
  if (path.empty())
    return op->emitError("no file is named to write to: give the pass the option for it; '-' is stdout");
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &message);
  if (!file)
    return op->emitError(message);
  file->os() << llvm::formatv("{0:2}\n", value);
  file->os().flush();
  if (file->os().has_error())
    return op->emitError("cannot write '") << path << "': " << file->os().error().message();
  file->keep();
  return success();
}

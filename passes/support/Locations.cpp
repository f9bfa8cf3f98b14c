// Unwraps nested locations until one of them has a text.
#include "passes/support/Locations.h"

#include "mlir/IR/BuiltinAttributes.h"

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
    // Passes of IREE and of Tilewright fuse locations; the first one that has a description stands for all.
    for (Location part : fused.getLocations())
      if (std::string text = describe(part); !text.empty())
        return text;
    return "";
  }
  if (auto opaque = dyn_cast<OpaqueLoc>(location))
    return describe(opaque.getFallbackLocation());
  return "";
}

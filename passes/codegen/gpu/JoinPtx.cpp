// In LLVM's text, each kernel follows a comment with its name, and the module's variables stand between the first such
// comment and the first kernel, one in a line and declarations first.
#include "passes/codegen/gpu/JoinPtx.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace tilewright;
using llvm::StringRef;

static constexpr StringRef kName = "\t// .globl", kLabel = "$L__BB";

namespace {
/// The text of a module with one kernel.
struct PtxText {
  StringRef header; ///< directives of the module
  StringRef name;   ///< the comment with the kernel's name
  StringRef variables;
  StringRef kernel;

  explicit PtxText(StringRef text) {
    std::tie(header, text) = splitAt(text, kName);
    std::tie(name, text) = splitAt(text, "\n");
    std::tie(variables, kernel) = splitAt(text, "\n.visible .entry ");
  }

private:
  static std::pair<StringRef, StringRef> splitAt(StringRef text, StringRef border) {
    size_t at = text.find(border);
    size_t end = at == StringRef::npos ? text.size() : at + border.starts_with('\n'); // a line keeps its end
    return {text.take_front(end), text.drop_front(end)};
  }
};
} // namespace

/// Appends the text of a kernel, whose labels name it as the module's first, as that of kernel `number`.
static void appendKernel(StringRef text, size_t number, std::string &joined) {
  for (size_t at = text.find(kLabel); at != StringRef::npos; at = text.find(kLabel)) {
    joined += text.take_front(at + kLabel.size());
    joined += std::to_string(number);
    text = text.drop_front(at + kLabel.size()).drop_while(llvm::isDigit);
  }
  joined += text;
}

std::string tilewright::joinPtx(llvm::ArrayRef<std::string> texts) {
  std::string joined, kernels;
  llvm::SetVector<StringRef> declarations, definitions;
  for (auto [number, text] : llvm::enumerate(texts)) {
    PtxText parts(text);
    if (number == 0)
      joined = (parts.header + parts.name).str();
    else
      kernels += parts.name;
    for (StringRef line : llvm::split(parts.variables, '\n'))
      if (line.starts_with("."))
        (line.starts_with(".extern") ? declarations : definitions).insert(line);
    appendKernel(parts.kernel, number, kernels);
  }
  for (StringRef variable : llvm::concat<const StringRef>(declarations, definitions))
    joined += (variable + "\n").str();
  return joined + "\n" + kernels;
}

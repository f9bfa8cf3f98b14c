// LLVM numbers the functions of a module, and local labels have the number of their function: .LBB0_1, .LCPI0_2,
// .Lfunc_end0.
#include "passes/codegen/cpu/JoinAssembly.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tilewright;
using llvm::StringRef;

static constexpr StringRef kEnd = ".Lfunc_end", kTrailer = "\t.section\t\".note.GNU-stack\"";

/// Appends text whose functions are numbered from zero as that of functions from `first` on.
static void appendNumbered(StringRef text, unsigned first, std::string &joined) {
  while (true) {
    size_t next = StringRef::npos, length = 0;
    for (StringRef label : {StringRef(".LBB"), StringRef(".LCPI"), StringRef(".LJTI"), kEnd})
      if (size_t at = text.find(label); at < next)
        next = at, length = label.size();
    if (next == StringRef::npos)
      break;
    joined += text.take_front(next + length);
    text = text.drop_front(next + length);
    unsigned number = 0;
    if (!text.consumeInteger(10, number))
      joined += std::to_string(first + number);
  }
  joined += text;
}

std::string tilewright::joinAssembly(llvm::ArrayRef<std::string> parts) {
  std::string joined;
  unsigned functions = 0;
  for (auto [number, part] : llvm::enumerate(parts)) {
    StringRef text = part;
    if (number > 0) // its first lines name the file and the section, in which the part before has ended
      while (text.starts_with("\t.file") || text.starts_with("\t.text"))
        text = text.split('\n').second;
    if (number + 1 < parts.size())
      text = text.take_front(text.rfind(kTrailer));
    appendNumbered(text, functions, joined);
    functions += text.count(("\n" + kEnd).str());
  }
  return joined;
}

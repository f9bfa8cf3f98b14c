// LLVM's parser recurses at every bracket, so a file of some ten thousand brackets would overflow the stack.
#include "passes/support/ParseJson.h"

#include <algorithm>

using namespace llvm;
using namespace tilewright;

/// Deepest nesting that is accepted: several times what targets and plans need.
static constexpr int maximumDepth = 64;

/// Returns the largest number of brackets that are open at once, outside of strings.
static int nestingDepth(StringRef text) {
  int depth = 0, deepest = 0;
  bool inString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char character = text[at];
    if (inString && character == '\\')
      ++at;
    else if (character == '"')
      inString = !inString;
    else if (!inString && (character == '[' || character == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!inString && (character == ']' || character == '}'))
      --depth;
  }
  return deepest;
}

Expected<json::Value> tilewright::parseJson(StringRef text) {
  if (nestingDepth(text) > maximumDepth)
    return createStringError(inconvertibleErrorCode(), "values nest more than " + Twine(maximumDepth) + " deep");
  return json::parse(text);
}

#include "passes/plan/forms/DecideWinograd.h"

#include "passes/cost/Confidence.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Most lines that are tried, besides all of them: a choice, since sums of few lines stay in a core's cache.
static constexpr int64_t kMostLines = 2;

FormChoice tilewright::decideWinograd(ArrayRef<int64_t> all, SecondsOfLines secondsOf,
                                      const OrDeclined<double> &otherwise, double error) {
  FormChoice choice;
  choice.form = tile::Form::winograd;
  choice.numerics.reassociates = true;
  choice.parameters["lines"] = {all.back()};
  if (!otherwise) {
    choice.reason = otherwise.why().reason;
    choice.wouldChange = otherwise.why().wouldChange;
    return choice;
  }
  for (int64_t lines : llvm::reverse(all)) {
    if (lines != all.back() && lines > kMostLines)
      continue;
    OrDeclined<double> seconds = secondsOf(lines);
    if (!seconds && choice.seconds == 0) {
      choice.reason = seconds.why().reason;
      choice.wouldChange = seconds.why().wouldChange;
    }
    if (seconds && (choice.seconds == 0 || *seconds < choice.seconds)) {
      choice.seconds = *seconds;
      choice.parameters["lines"] = {lines};
    }
  }
  if (choice.seconds == 0)
    return choice;
  choice.otherwiseSeconds = *otherwise;
  choice.taken = isFaster(choice.seconds, *otherwise, error);
  choice.reason = llvm::formatv("16 products of sums in place of 36 products, predicted {0:F1} us instead of {1:F1}",
                                choice.seconds * 1e6, *otherwise * 1e6);
  choice.wouldChange = choice.taken ? "fewer filters and channels, for which sums of points cost more than they save"
                                    : "more filters and channels, which use the sums of points and weights more often";
  return choice;
}

std::string tilewright::whyNotWinograd(ArrayRef<int64_t> all, const FormChoice &choice) {
  ArrayRef<int64_t> lines = choice.values("lines");
  if (choice.parameters.size() == 1 && lines.size() == 1 && llvm::is_contained(all, lines[0]))
    return "";
  auto texts = llvm::map_range(all, [](int64_t each) { return std::to_string(each); });
  return "its parameter is 'lines', one of " + llvm::join(texts, ", ");
}

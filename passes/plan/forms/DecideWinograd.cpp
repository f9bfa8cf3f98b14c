#include "passes/plan/forms/DecideWinograd.h"

#include "passes/cost/Confidence.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tilewright;

FormChoice tilewright::decideWinograd(const OrDeclined<double> &seconds, const OrDeclined<double> &otherwise,
                                      double error) {
  FormChoice choice;
  choice.form = tile::Form::winograd;
  choice.numerics.reassociates = true;
  for (const OrDeclined<double> *each : {&seconds, &otherwise})
    if (!*each) {
      choice.reason = each->why().reason;
      choice.wouldChange = each->why().wouldChange;
      return choice;
    }
  choice.seconds = *seconds;
  choice.otherwiseSeconds = *otherwise;
  choice.taken = isFaster(*seconds, *otherwise, error);
  choice.reason = llvm::formatv("16 products of sums in place of 36 products, predicted {0:F1} us instead of {1:F1}",
                                *seconds * 1e6, *otherwise * 1e6);
  choice.wouldChange = choice.taken ? "fewer filters and channels, for which sums of points cost more than they save"
                                    : "more filters and channels, which use the sums of points and weights more often";
  return choice;
}

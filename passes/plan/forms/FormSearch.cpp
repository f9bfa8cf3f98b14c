#include "passes/plan/forms/FormSearch.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/fusion/PlannerStep.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tilewright;
using llvm::ArrayRef;

namespace {
/// Requests, and the trial with them.
struct Choices {
  std::vector<FormChoice> requests;
  FormTrial trial;

  double seconds() const { return trial.score.seconds; }
};
} // namespace

static bool isSameOffer(const FormChoice &a, const FormChoice &b) { return a.form == b.form && a.number == b.number; }

static bool isAmong(ArrayRef<FormChoice> choices, const FormChoice &choice) {
  return llvm::any_of(choices, [&](const FormChoice &other) { return isSameOffer(other, choice); });
}

/// Returns true if the score is better, or the same with fewer changes.
static bool isBetter(const Choices &choices, const Choices &other) {
  const PlanScore &score = choices.trial.score, &before = other.trial.score;
  return score.isBetterThan(before) ||
         (!before.isBetterThan(score) && choices.requests.size() < other.requests.size());
}

/// Returns nothing if the choices cannot be made.
static std::optional<Choices> choose(TryForms tryForms, std::vector<FormChoice> requests) {
  OrDeclined<FormTrial> trial = tryForms(requests);
  if (!trial || !whyNotRecorded(requests, trial->choices).empty())
    return std::nullopt;
  return Choices{std::move(requests), std::move(*trial)};
}

/// Returns the choices with those at `places` changed. Forms that are taken now have the parameters that their rules
/// found best.
static std::optional<Choices> changed(TryForms tryForms, const Choices &from, ArrayRef<size_t> places) {
  std::vector<FormChoice> requests = from.requests;
  for (size_t place : places) {
    FormChoice &request = requests.emplace_back(from.trial.choices[place]);
    request.taken = !request.taken;
  }
  return choose(tryForms, std::move(requests));
}

/// Returns the requests of a search, with its result in place of what the rules predicted.
static std::vector<FormChoice> explained(Choices found, double byRules) {
  for (FormChoice &request : found.requests) {
    request.seconds = request.taken ? found.seconds() : byRules;
    request.otherwiseSeconds = request.taken ? byRules : found.seconds();
    request.reason = llvm::formatv("a search over forms predicts {0} for the whole plan, and {1} with the choices of "
                                   "the rules",
                                   microseconds(found.seconds()), microseconds(byRules));
    request.wouldChange = "another policy";
  }
  return std::move(found.requests);
}

//===----------------------------------------------------------------------===//
// All choices
//===----------------------------------------------------------------------===//

namespace {
class AllForms {
public:
  explicit AllForms(TryForms tryForms) : tryForms(tryForms) {}

  /// Tries all changes of choices from `first` on. Those before it stay, so each set of changes is tried once. Returns
  /// false if there are too many.
  bool tryFrom(const Choices &choices, size_t first) {
    if (!best || isBetter(choices, *best))
      best = choices;
    for (size_t place = first; place < choices.trial.choices.size(); ++place) {
      std::optional<Choices> next = changed(tryForms, choices, {place});
      if (next && (++changes >= kMostFormTrials || !tryFrom(*next, place + 1)))
        return false;
    }
    return true;
  }

  std::optional<Choices> best;

private:
  TryForms tryForms;
  size_t changes = 0; ///< choices that can be carried out, besides that of the rules
};
} // namespace

OrDeclined<std::vector<FormChoice>> tilewright::searchAllForms(TryForms tryForms) {
  std::optional<Choices> byRule = choose(tryForms, {});
  if (!byRule)
    return std::vector<FormChoice>();
  AllForms search(tryForms);
  if (!search.tryFrom(*byRule, 0))
    return Declined{llvm::formatv("the policy tries all choices of forms, at most {0}; there are more for {1} offers",
                                  kMostFormTrials, byRule->trial.choices.size()),
                    "another policy"};
  return explained(std::move(*search.best), byRule->seconds());
}

//===----------------------------------------------------------------------===//
// Changes of one choice
//===----------------------------------------------------------------------===//

static bool areAlike(const FormChoice &a, const FormChoice &b) {
  return a.form == b.form && a.ops == b.ops && a.taken == b.taken && a.parameters == b.parameters &&
         a.seconds == b.seconds && a.otherwiseSeconds == b.otherwiseSeconds;
}

std::vector<FormChoice> tilewright::improveForms(TryForms tryForms, size_t mostTrials, double error) {
  std::optional<Choices> best = mostTrials > 0 ? choose(tryForms, {}) : std::nullopt;
  if (!best)
    return {};
  double byRules = best->seconds();
  std::vector<FormChoice> seen;
  for (size_t place = 0, trials = 0; place < best->trial.choices.size() && trials < mostTrials; ++place) {
    ArrayRef<FormChoice> choices = best->trial.choices;
    const FormChoice &own = choices[place];
    if (isAmong(best->requests, own) ||
        llvm::any_of(seen, [&](const FormChoice &other) { return areAlike(own, other); }))
      continue;
    seen.push_back(own);
    llvm::SmallVector<size_t> places;
    for (size_t other = place; other < choices.size(); ++other)
      if (areAlike(choices[other], own) && !isAmong(best->requests, choices[other]))
        places.push_back(other);
    ++trials;
    std::optional<Choices> next = changed(tryForms, *best, places);
    if (next && isFaster(next->seconds(), best->seconds(), error))
      best = std::move(next);
  }
  return explained(std::move(*best), byRules);
}

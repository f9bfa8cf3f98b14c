// Searches over the forms of a graph. Each choice of forms is another graph, and so another problem, whose plan has a
// score; this file decides which choices are tried and which is the best.
#ifndef TILEWRIGHT_PLAN_FORMS_FORMSEARCH_H
#define TILEWRIGHT_PLAN_FORMS_FORMSEARCH_H

#include "passes/graph/FormChoice.h"
#include "passes/plan/fusion/PlanScore.h"
#include "passes/support/Declined.h"

namespace tilewright {

/// The outcome of requests: all choices that passes made, in their order, and the score of the plan.
struct FormTrial {
  std::vector<FormChoice> choices;
  PlanScore score;
};

/// Normalises and plans a graph with requests for some of its forms; rules choose the others. Declines if a request
/// cannot be carried out, or if there is no plan.
using TryForms = llvm::function_ref<OrDeclined<FormTrial>(llvm::ArrayRef<FormChoice> requests)>;

/// Tries all choices that can be carried out, at most kMostFormTrials, and returns the requests with which the score is
/// best; none if that is what the rules choose. Declines if there are more.
OrDeclined<std::vector<FormChoice>> searchAllForms(TryForms tryForms);
inline constexpr size_t kMostFormTrials = 64;

/// Changes one choice after another, and keeps a change if the plan is predicted to be faster although predictions may
/// be wrong by `error`. Equal choices, such as those of equal layers, are changed together. Returns the requests of the
/// changes, after at most `mostTrials` of them; none is tried with 0.
std::vector<FormChoice> improveForms(TryForms tryForms, size_t mostTrials, double error);

} // namespace tilewright

#endif

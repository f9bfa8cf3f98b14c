#include "passes/plan/fusion/PatternReduction.h"

#include "llvm/Support/MathExtras.h"

using namespace tilewright;
using llvm::ArrayRef;

static void keepBest(std::vector<FusionPattern> &patterns) {
  llvm::stable_sort(patterns, [](const FusionPattern &a, const FusionPattern &b) { return a.saved > b.saved; });
  if (patterns.size() > kPatternsKept)
    patterns.erase(patterns.begin() + kPatternsKept, patterns.end());
}

std::vector<FusionPattern> tilewright::reducePatterns(const ExprSet &own, ArrayRef<ArrayRef<FusionPattern>> consumers,
                                                const MakePattern &make) {
  std::vector<FusionPattern> found;
  auto add = [&](const ExprSet &set) {
    bool isKnown = llvm::any_of(found, [&](const FusionPattern &pattern) { return pattern.set == set; });
    if (std::optional<FusionPattern> pattern = isKnown ? std::nullopt : make(set))
      found.push_back(std::move(*pattern));
  };
  std::vector<FusionPattern> halves[2];
  if (consumers.size() > 2) {
    size_t half = llvm::divideCeil(consumers.size(), 2);
    halves[0] = reducePatterns(own, consumers.take_front(half), make);
    halves[1] = reducePatterns(own, consumers.drop_front(half), make);
    return reducePatterns(own, {halves[0], halves[1]}, make);
  }
  for (ArrayRef<FusionPattern> patterns : consumers)
    for (const FusionPattern &pattern : patterns)
      add(own | pattern.set);
  if (consumers.size() == 2)
    for (const FusionPattern &a : consumers[0])
      for (const FusionPattern &b : consumers[1])
        add(own | a.set | b.set);
  keepBest(found);
  return found;
}

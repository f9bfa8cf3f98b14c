// The form `winograd` is taken with the lines that are predicted fastest, where it beats a contraction with windows.
#include "passes/plan/forms/DecideWinograd.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
constexpr double kError = 0.1;

/// Predicts `seconds` with one line, and twice as many with others.
FormChoice decide(double seconds, double otherwise) {
  auto secondsOf = [&](int64_t lines) { return OrDeclined<double>(lines == 1 ? seconds : 2 * seconds); };
  return decideWinograd({1, 7, 14}, secondsOf, otherwise, kError);
}
} // namespace

TEST(DecideWinograd, TakesTheFastestLines) {
  FormChoice choice = decide(1, 3);
  EXPECT_TRUE(choice.taken);
  EXPECT_EQ(choice.values("lines"), llvm::ArrayRef<int64_t>({1}));
}

TEST(DecideWinograd, DeclinesWhatIsHardlyFaster) { EXPECT_FALSE(decide(0.95, 1).taken); }

TEST(DecideWinograd, DeclinesWithoutAPrediction) {
  Declined why{"no kernel computes it", "another target"};
  FormChoice choice = decideWinograd({1, 7}, [&](int64_t) { return OrDeclined<double>(why); }, 1.0, kError);
  EXPECT_FALSE(choice.taken);
  EXPECT_EQ(choice.reason, why.reason);
}

TEST(DecideWinograd, RefusesLinesThatAreNotOffered) {
  FormChoice choice = decide(1, 3);
  EXPECT_EQ(whyNotWinograd({1, 7, 14}, choice), "");
  choice.parameters["lines"] = {2};
  EXPECT_EQ(whyNotWinograd({1, 7, 14}, choice), "its parameter is 'lines', one of 1, 7, 14");
}

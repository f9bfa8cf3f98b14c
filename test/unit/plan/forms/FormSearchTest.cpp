// Tests of the search over forms on made-up graphs, which are functions from the choices to predicted seconds.
#include "passes/plan/forms/FormSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace tilewright;
using llvm::ArrayRef;

namespace {
/// Offers by number, each with the op that tells kinds of them apart, and the rule's choice.
struct Offer {
  std::string op;
  bool byRule;
};

/// A graph with these offers, whose plan takes the seconds that a function of the choices returns; no seconds: the
/// choices cannot be made.
class MadeUp {
public:
  using Seconds = std::function<std::optional<double>(ArrayRef<bool> taken)>;

  MadeUp(std::vector<Offer> offers, Seconds seconds) : offers(std::move(offers)), seconds(std::move(seconds)) {}

  OrDeclined<FormTrial> operator()(ArrayRef<FormChoice> requests) {
    ++trials;
    FormTrial trial;
    llvm::SmallVector<bool> taken;
    for (auto [number, offer] : llvm::enumerate(offers)) {
      FormChoice choice;
      choice.form = tile::Form::twoPhaseReduction;
      choice.number = number;
      choice.ops = {offer.op};
      choice.taken = offer.byRule;
      for (const FormChoice &request : requests)
        if (request.number == number)
          choice.taken = request.taken;
      taken.push_back(choice.taken);
      trial.choices.push_back(choice);
    }
    std::optional<double> predicted = seconds(taken);
    if (!predicted)
      return Declined{"not possible", ""};
    trial.score.seconds = *predicted;
    return trial;
  }

  size_t trials = 0;

private:
  std::vector<Offer> offers;
  Seconds seconds;
};

std::vector<unsigned> numbersOf(ArrayRef<FormChoice> requests) {
  std::vector<unsigned> numbers;
  for (const FormChoice &request : requests)
    numbers.push_back(request.number);
  llvm::sort(numbers);
  return numbers;
}

// Two changes that only pay together are found by trying all choices.
TEST(FormSearchTest, all_choices_include_those_that_pay_together) {
  MadeUp graph({{"a", true}, {"b", true}, {"c", false}}, [](ArrayRef<bool> taken) -> std::optional<double> {
    return !taken[0] && taken[2] ? 1.0 : taken[0] && !taken[2] ? 2.0 : 3.0;
  });
  OrDeclined<std::vector<FormChoice>> requests = searchAllForms(graph);
  ASSERT_TRUE(requests);
  EXPECT_EQ(numbersOf(*requests), (std::vector<unsigned>{0, 2}));
  EXPECT_EQ(graph.trials, 8u) << "each choice of three offers once";
  for (const FormChoice &request : *requests)
    EXPECT_EQ(request.seconds + request.otherwiseSeconds, 3.0) << "those of the plans with and without the changes";
}

// Nothing is requested where the rules choose what is best.
TEST(FormSearchTest, rules_that_choose_best_stay) {
  MadeUp graph({{"a", true}, {"b", false}}, [](ArrayRef<bool> taken) -> std::optional<double> {
    return 1.0 + (taken[0] ? 0 : 1) + (taken[1] ? 1 : 0);
  });
  EXPECT_TRUE(searchAllForms(graph)->empty());
  EXPECT_TRUE(improveForms(graph, 10, 0.1).empty());
}

TEST(FormSearchTest, choices_that_cannot_be_made_are_left_out) {
  MadeUp graph({{"a", true}, {"b", false}}, [](ArrayRef<bool> taken) -> std::optional<double> {
    if (taken[1])
      return std::nullopt;
    return taken[0] ? 2.0 : 1.0;
  });
  EXPECT_EQ(numbersOf(*searchAllForms(graph)), std::vector<unsigned>{0});
  EXPECT_EQ(numbersOf(improveForms(graph, 10, 0.1)), std::vector<unsigned>{0});
}

TEST(FormSearchTest, too_many_choices_are_declined_with_their_number) {
  MadeUp graph(std::vector<Offer>(7, {"a", true}), [](ArrayRef<bool>) -> std::optional<double> { return 1.0; });
  OrDeclined<std::vector<FormChoice>> requests = searchAllForms(graph);
  ASSERT_FALSE(requests);
  EXPECT_NE(requests.why().reason.find("at most 64; there are more for 7 offers"), std::string::npos)
      << requests.why().reason;
}

// Equal layers have equal offers. They are changed at once, so their number does not matter.
TEST(FormSearchTest, equal_choices_are_changed_together) {
  std::vector<Offer> offers(12, {"layer", true});
  offers.push_back({"head", true});
  MadeUp graph(offers, [](ArrayRef<bool> taken) -> std::optional<double> {
    return 1.0 + static_cast<double>(llvm::count(taken.take_front(12), true));
  });
  EXPECT_EQ(improveForms(graph, 10, 0.1).size(), 12u);
  EXPECT_EQ(graph.trials, 3u) << "the rules' choices, the layers and the head";
}

// A change that predictions cannot tell from none is not worth other numbers.
TEST(FormSearchTest, small_gains_are_left) {
  MadeUp graph({{"a", true}}, [](ArrayRef<bool> taken) -> std::optional<double> { return taken[0] ? 1.0 : 0.95; });
  EXPECT_TRUE(improveForms(graph, 10, 0.1).empty());
  EXPECT_EQ(searchAllForms(graph)->size(), 1u);
}

TEST(FormSearchTest, the_number_of_trials_is_bounded) {
  MadeUp graph({{"a", true}, {"b", true}, {"c", true}}, [](ArrayRef<bool>) -> std::optional<double> { return 1.0; });
  improveForms(graph, 2, 0.1);
  EXPECT_EQ(graph.trials, 3u) << "the rules' choices and two changes";
}
} // namespace

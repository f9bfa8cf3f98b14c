// Tests the record of forms on a function, and requests of choices.
#include "passes/graph/FormChoice.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {
class FormChoiceTest : public PlanFixture {
protected:
  FormChoiceTest() {
    parse("func.func @copy(%x: tensor<3xf32>) -> tensor<3xf32> {\n  return %x : tensor<3xf32>\n}");
    function = *module->getOps<func::FuncOp>().begin();
    op = function.getBody().front().getTerminator();
  }

  static FormChoice split(bool taken, std::vector<int64_t> parts) {
    FormChoice choice;
    choice.form = tile::Form::twoPhaseReduction;
    choice.taken = taken;
    choice.parameters = {{"parts", std::move(parts)}};
    choice.reason = "the rule says so";
    return choice;
  }

  FailureOr<FormChoice> settle(FormChoice choice) {
    return settleForm(function, std::move(choice), op,
                      [](const FormChoice &choice) { return choice.values("parts").front() == 7 ? "7 is odd" : ""; });
  }

  func::FuncOp function;
  Operation *op;
};

TEST_F(FormChoiceTest, offers_are_numbered_by_form_and_recorded_in_their_order) {
  FormChoice first = split(true, {4});
  first.numerics = {"f32", true, 2};
  first.seconds = 1e-6;
  first.otherwiseSeconds = 2e-6;
  first.wouldChange = "less K";
  FormChoice other;
  other.form = tile::Form::mergedContractions;
  ASSERT_TRUE(succeeded(settle(first)) && succeeded(settle(other)) && succeeded(settle(split(false, {}))));
  std::vector<FormChoice> recorded = recordedForms(function);
  ASSERT_EQ(recorded.size(), 3u);
  EXPECT_EQ(recorded[0].label(), "form 'two-phase reduction' 0 of func.return");
  EXPECT_EQ(recorded[1].label(), "form 'merged contractions' 0 of func.return");
  EXPECT_EQ(recorded[2].label(), "form 'two-phase reduction' 1 of func.return");
  EXPECT_EQ(recorded[0].parameters, first.parameters);
  EXPECT_EQ(recorded[0].numerics.accumulation, "f32");
  EXPECT_TRUE(recorded[0].numerics.reassociates);
  EXPECT_EQ(recorded[0].numerics.roundingsRemoved, 2);
  EXPECT_EQ(recorded[0].seconds, 1e-6);
  EXPECT_EQ(recorded[0].otherwiseSeconds, 2e-6);
  EXPECT_EQ(recorded[0].wouldChange, "less K");
  EXPECT_TRUE(recorded[0].taken && !recorded[2].taken);
}

TEST_F(FormChoiceTest, a_request_overrides_the_rule_or_leaves_it_the_parameters) {
  FormChoice declined = split(false, {}), taken = split(true, {8}), open = split(true, {});
  taken.number = 1;
  open.number = 2;
  open.parameters.clear();
  declined.reason = "the request says so";
  requestForms(function, {declined, taken, open});
  FailureOr<FormChoice> first = settle(split(true, {4})), second = settle(split(true, {4}));
  FailureOr<FormChoice> third = settle(split(true, {4})), fourth = settle(split(true, {4}));
  ASSERT_TRUE(succeeded(first) && succeeded(second) && succeeded(third) && succeeded(fourth));
  EXPECT_FALSE(first->taken);
  EXPECT_EQ(first->reason, "the request says so");
  EXPECT_EQ(second->values("parts"), ArrayRef<int64_t>({8}));
  EXPECT_EQ(third->values("parts"), ArrayRef<int64_t>({4}));
  EXPECT_EQ(third->reason, "the rule says so");
  EXPECT_EQ(fourth->reason, "the rule says so"); // nothing is requested for it
  EXPECT_EQ(whyNotRecorded({declined, taken, open}, recordedForms(function)), "");
}

TEST_F(FormChoiceTest, a_request_that_cannot_be_carried_out_is_an_error_at_the_op) {
  requestForms(function, {split(true, {7})});
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  EXPECT_TRUE(failed(settle(split(false, {}))));
  EXPECT_EQ(said, "illegal plan: takes form 'two-phase reduction' 0 of func.return, but 7 is odd");
  EXPECT_TRUE(recordedForms(function).empty());
}

TEST_F(FormChoiceTest, what_is_not_on_record_is_named) {
  ASSERT_TRUE(succeeded(settle(split(true, {4}))));
  std::vector<FormChoice> recorded = recordedForms(function);
  FormChoice missing = split(true, {4});
  missing.number = 1;
  EXPECT_EQ(whyNotRecorded({missing}, recorded), "names form 'two-phase reduction' 1; the graph offers 1 of this form");
  EXPECT_NE(whyNotRecorded({split(true, {8})}, recorded), "");
  EXPECT_NE(whyNotRecorded({split(false, {})}, recorded), "");
  EXPECT_EQ(whyNotRecorded({split(true, {4})}, recorded), "");
}
} // namespace

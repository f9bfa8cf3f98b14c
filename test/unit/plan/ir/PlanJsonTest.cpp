// Plans as text: JSON conversion in both directions, with errors that name the field, and a listing for people.
#include "test/unit/plan/ir/PlanTest.h"

using namespace mlir;
using namespace tilewright;

namespace {
TEST_F(PlanTest, json_round_trip) {
  llvm::Expected<Plan> again = planFromJson(toJson(plan));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(json(plan), json(*again));
  EXPECT_EQ(again->verify(*graph), "");
}

TEST_F(PlanTest, json_keeps_what_only_later_policies_fill) {
  part().tensors.push_back({"in0",
                            tile::Space::cluster,
                            tile::Lifetime::kernel,
                            {{tile::LayoutKind::swizzle, {3, 4}}, {tile::LayoutKind::permute, {1, 0}}}});
  op(max).microKernel = "fma";
  op(max).tilings.push_back({tile::Scope::warp, {4, 8}, {1, 0}});
  llvm::Expected<Plan> again = planFromJson(toJson(plan));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(json(plan), json(*again));
}

TEST_F(PlanTest, json_may_list_edges_in_any_order) {
  llvm::json::Value listed = toJson(plan);
  llvm::json::Array &edges = *listed.getAsObject()->getArray("edges");
  std::reverse(edges.begin(), edges.end());
  llvm::Expected<Plan> again = planFromJson(listed);
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  for (const TensorEdge &edge : graph->edges())
    EXPECT_NE(again->edge(edge.consumer, edge.input), nullptr);
  EXPECT_EQ(again->edge(div, 7), nullptr);
}

TEST_F(PlanTest, json_keeps_choices_of_forms) {
  FormChoice split;
  split.form = tile::Form::twoPhaseReduction;
  split.number = 2;
  split.ops = {"linalg.matmul"};
  split.taken = true;
  split.parameters = {{"dims", {1}}, {"parts", {4}}};
  split.numerics = {"f32", true, 0};
  split.reason = "it is faster";
  plan.forms = {split};
  llvm::Expected<Plan> again = planFromJson(toJson(plan));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  ASSERT_EQ(again->forms.size(), 1u);
  EXPECT_TRUE(split.isMetBy(again->forms[0]));
  EXPECT_EQ(json(plan), json(*again));
}

TEST_F(PlanTest, json_errors_name_the_field) {
  EXPECT_EQ(readError("[]"), "expected object when parsing plan");
  EXPECT_EQ(readError(R"({"edges": []})"), "missing value at plan.kernels");
  EXPECT_EQ(readError(R"({"kernels": [], "edges": [], "kernel": 1})"), "unknown field at plan.kernel");
  EXPECT_EQ(readError(R"({"kernels": [{"name": "k", "groups": [{"ops": [], "extents": [1, "a"]}]}], "edges": []})"),
            "expected integer at plan.kernels[0].groups[0].extents[1]");
  EXPECT_EQ(readError(R"({"kernels": [], "edges": [{"producer": 0, "result": 0, "consumer": 1, "input": 0,
                          "scope": "planet"}]})"),
            "expected one of thread, warp, block, cluster, grid, launch, host at plan.edges[0].scope");
}

TEST_F(PlanTest, old_spellings_are_refused_with_the_new_name) {
  EXPECT_EQ(readError(R"({"kernels": [{"name": "k", "parts": []}], "edges": []})"),
            "this field is called 'groups' at plan.kernels[0].parts");
  EXPECT_EQ(readError(R"({"kernels": [{"name": "k", "groups": [], "kept": []}], "edges": []})"),
            "this field is called 'residentTiles' at plan.kernels[0].kept");
}

TEST_F(PlanTest, print_shows_every_decision) {
  std::string text;
  llvm::raw_string_ostream os(text);
  plan.print(os);
  for (const char *expected : {"kernel reduce_", "part extents [37, 53]", "grid [0]", "op4 linalg.reduce as-is root",
                               "edge op3.0 -> op4.0 block: "})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " is not in\n" << text;
}

TEST_F(PlanTest, json_refuses_unknown_numerics) {
  EXPECT_EQ(readError(R"({"kernels": [], "edges": [], "numerics": "exact"})"),
            "expected one of default, strict, tf32 at plan.numerics");
}
} // namespace

// Tests the list of cost parameters: it is complete, and files override single values with their source.
#include "passes/target/Target.h"

#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <set>

using namespace tilewright;

namespace {

llvm::Expected<Target> read(llvm::StringRef costs, llvm::StringRef base = "cuda:h200") {
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse(llvm::formatv(R"({{"base": "{0}", "costs": {1}})", base, costs).str());
  EXPECT_TRUE(static_cast<bool>(value));
  return targetFromJson(*value);
}

std::string errorOf(llvm::StringRef costs) {
  llvm::Expected<Target> target = read(costs);
  return target ? "no error" : llvm::toString(target.takeError());
}

TEST(CostParameters, each_has_a_name_unit_meaning_source_and_date) {
  std::set<std::string> names;
  for (const CostField &field : costFields()) {
    EXPECT_TRUE(names.insert(field.name.str()).second) << field.name.str();
    EXPECT_TRUE(llvm::is_contained(
        {"s", "B", "cycles", "B/cycle", "instructions", "elements", "1", "factor", "share", "error"}, field.unit))
        << field.name.str();
    EXPECT_FALSE(field.meaning.empty() || field.source.empty()) << field.name.str();
    EXPECT_EQ(field.date.size(), 10u) << field.name.str();
    EXPECT_EQ(field.whyNot(field.get(CostParameters())), "") << field.name.str();
  }
}

TEST(CostParameters, a_file_overrides_single_values) {
  llvm::Expected<Target> target =
      read(R"([{"name": "gpu.stepCycles", "value": 71.5, "unit": "cycles", "source": "me", "date": "2026-01-02"}])");
  ASSERT_TRUE(static_cast<bool>(target)) << llvm::toString(target.takeError());
  EXPECT_EQ(target->costs.gpu.stepCycles, 71.5);
  EXPECT_EQ(target->costs.gpu.productCycles, GpuCosts().productCycles);
  EXPECT_EQ(target->costs.origins.at("gpu.stepCycles").source, "me");
  EXPECT_EQ(target->costs.origins.size(), 1u);
}

TEST(CostParameters, values_and_sources_survive_json) {
  llvm::Expected<Target> target = read(R"([{"name": "confidence.kernels", "value": 0.3, "source": "me"}])");
  ASSERT_TRUE(static_cast<bool>(target)) << llvm::toString(target.takeError());
  llvm::Expected<Target> again = targetFromJson(toJson(*target));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(again->costs.confidence.kernels, 0.3);
  EXPECT_EQ(again->costs.origins.at("confidence.kernels").source, "me");
}

TEST(CostParameters, targets_list_those_of_their_back_end) {
  for (auto [name, other] : {std::pair("x86-64-avx2", "gpu."), std::pair("cuda:h200", "cpu.")}) {
    std::string text = llvm::formatv("{0}", toJson(*lookupTarget(name)));
    EXPECT_EQ(text.find("\"" + std::string(other)), std::string::npos) << name;
    EXPECT_NE(text.find("\"confidence.kernels\""), std::string::npos) << name;
  }
}

TEST(CostParameters, bad_values_are_errors_that_name_them) {
  EXPECT_EQ(errorOf("7"), "costs: expected a list of cost parameters");
  EXPECT_EQ(errorOf("[7]"), "costs[0]: expected an object");
  EXPECT_EQ(errorOf(R"([{"value": 1}])"), "costs[0].name: expected a string");
  EXPECT_EQ(errorOf(R"([{"name": "gpu.stepCycles"}])"), "costs[0].value: expected a number");
  EXPECT_EQ(errorOf(R"([{"name": "gpu.stepCycles", "value": 0}])"),
            "costs[0].value: expected a positive number for gpu.stepCycles");
  EXPECT_EQ(errorOf(R"([{"name": "gpu.panelStages", "value": 2.5}])"),
            "costs[0].value: expected an integer of at least 1 for gpu.panelStages");
  EXPECT_EQ(errorOf(R"([{"name": "gpu.readOnce", "value": 1.5}])"),
            "costs[0].value: expected a positive number of at most 1 for gpu.readOnce");
  EXPECT_EQ(errorOf(R"([{"name": "confidence.forms", "value": 1}])"),
            "costs[0].value: expected a number of at least 0 and below 1 for confidence.forms");
  EXPECT_EQ(errorOf(R"([{"name": "gpu.stepCycles", "value": 1, "unit": "s"}])"),
            "costs[0].unit: gpu.stepCycles has the unit 'cycles'");
  EXPECT_EQ(errorOf(R"([{"name": "gpu.stepCycles", "value": 1, "from": "me"}])"),
            "costs[0].from: unknown field; known fields: name, value, unit, source, date");
  std::string unknown = errorOf(R"([{"name": "gpu.stepCycle", "value": 1}])");
  EXPECT_EQ(unknown.find("costs[0].name: 'gpu.stepCycle' is no cost parameter; known ones: gpu."), 0u) << unknown;
  EXPECT_EQ(unknown.find("cpu."), std::string::npos) << unknown;
}
} // namespace

// Tests that cost parameters are used: another value of one changes a plan of some small graph, or what is predicted of
// it.
#include "test/unit/PlanFixture.h"

using namespace tilewright;

namespace {

class CostParametersUseTest : public PlanFixture {
protected:
  static std::string matmul(int64_t m, int64_t k, int64_t n, const char *type) {
    auto tensor = [&](int64_t a, int64_t b, const char *of) {
      return "tensor<" + std::to_string(a) + "x" + std::to_string(b) + "x" + of + ">";
    };
    std::string a = tensor(m, k, type), b = tensor(k, n, type), y = tensor(m, n, "f32");
    return "func.func @f(%a: " + a + ", %b: " + b + ") -> " + y + " {\n  %zero = arith.constant dense<0.0> : " + y +
           "\n  %e = tensor.empty() : " + y + "\n  %p = linalg.matmul ins(%a, %b : " + a + ", " + b +
           ") outs(%zero : " + y + ") -> " + y + "\n  %y = linalg.exp ins(%p : " + y + ") outs(%e : " + y + ") -> " +
           y + "\n  return %y : " + y + "\n}";
  }

  /// An elementwise op that reads its input through `map`, in f32.
  static std::string reading(const std::string &in, const std::string &map, const std::string &out) {
    return "#in = affine_map<" + map + ">\n#out = affine_map<(d0, d1) -> (d0, d1)>\n" + "func.func @f(%x: tensor<" +
           in + "xf32>) -> tensor<" + out + "xf32> {\n  %e = tensor.empty() : tensor<" + out +
           "xf32>\n  %y = linalg.generic {indexing_maps = [#in, #out], iterator_types = [\"parallel\", \"parallel\"]}" +
           " ins(%x : tensor<" + in + "xf32>) outs(%e : tensor<" + out + "xf32>) {\n  ^bb0(%v: f32, %o: f32):\n" +
           "    %s = math.tanh %v : f32\n    %t = arith.addf %s, %v : f32\n    linalg.yield %t : f32\n  } -> tensor<" +
           out + "xf32>\n  return %y : tensor<" + out + "xf32>\n}";
  }

  std::vector<std::string> sources() const {
    return {softmaxSource,
            matmul(128, 768, 192, "f32"),
            matmul(1, 4096, 512, "f32"),
            matmul(16, 4096, 512, "f16"),
            matmul(512, 1024, 512, "f16"),
            reading("300x200", "(d0, d1) -> (d1, d0)", "200x300"),
            reading("64x900", "(d0, d1) -> (d0, d1 * 3)", "64x300"),
            reading("4000x4096", "(d0, d1) -> (d0, d1)", "4000x4096"),
            reading("2000x16", "(d0, d1) -> (d0, d1)", "2000x16")};
  }

  std::string planned(const std::string &source) {
    TensorGraph graph = parse(source);
    std::string text;
    llvm::raw_string_ostream(text) << toJson(*makePlan(graph, target));
    return text;
  }

  /// Returns true if a plan changes once the parameter has another value.
  bool isUsed(const CostField &field) {
    Target before = target;
    for (const std::string &source : sources()) {
      target = before;
      std::string usual = planned(source);
      for (double factor : {8.0, 0.125}) {
        target = before;
        double value = field.get(target.costs) * factor;
        if (field.unit == "share" || field.unit == "error")
          value = std::min(value, 0.99);
        field.set(target.costs, field.isInteger ? std::max(1.0, value) : value);
        bool changed = planned(source) != usual;
        target = before;
        if (changed)
          return true;
      }
    }
    return false;
  }

  std::vector<std::string> unused(llvm::StringRef group) {
    std::vector<std::string> names;
    for (const CostField &field : costFields())
      if (field.name.starts_with(group) && !isUsed(field))
        names.push_back(field.name.str());
    return names;
  }
};

// The others decide about chains of contractions, long rows, results that exceed the caches, and gathers.
TEST_F(CostParametersUseTest, those_of_cpus_change_plans) {
  EXPECT_EQ(unused("cpu."),
            std::vector<std::string>({"cpu.tileSeconds", "cpu.tensorsInOuterCache", "cpu.stagedInputBytes",
                                      "cpu.rowsTile", "cpu.onlineSoftmaxTile", "cpu.shortestBlock", "cpu.longestBlock",
                                      "cpu.shortestKBlock", "cpu.gatherOperations"}));
}

// The others decide about clusters, rows that several warps combine, phases, stages and lines that begin inside words.
TEST_F(CostParametersUseTest, those_of_gpus_change_plans) {
  target = *lookupTarget("cuda:h200");
  EXPECT_EQ(unused("gpu."), std::vector<std::string>(
                                {"gpu.polynomialInstructions", "gpu.typicalElementBytes", "gpu.clusterCycles",
                                 "gpu.blocksPerIdle", "gpu.besideAccumulators", "gpu.combineCycles", "gpu.unevenIdle",
                                 "gpu.otherWarpIssue", "gpu.shiftedCopyInstructions", "gpu.panelStages"}));
}
} // namespace

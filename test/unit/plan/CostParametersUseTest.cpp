// Tests that cost parameters are used: another value of one changes a plan of some small graph, or what is predicted of
// it.
#include "test/unit/CostsFixture.h"

#include <set>

using namespace tilewright;

namespace {

class CostParametersUseTest : public CostsFixture {
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

  /// y = act(x * w) for a row of weights w, summed along the rows.
  static std::string weighted(int64_t rows, int64_t length) {
    std::string x = "tensor<" + std::to_string(rows) + "x" + std::to_string(length) + "xf32>",
                w = "tensor<" + std::to_string(length) + "xf32>", y = "tensor<" + std::to_string(rows) + "xf32>";
    return "func.func @f(%x: " + x + ", %w: " + w + ") -> " + y + " {\n  %e = tensor.empty() : " + x +
           "\n  %zero = arith.constant dense<0.0> : " + y + "\n  %b = linalg.broadcast ins(%w : " + w + ") outs(%e : " +
           x + ") dimensions = [0]\n  %p = linalg.mul ins(%x, %b : " + x + ", " + x + ") outs(%e : " + x + ") -> " + x +
           "\n  %y = linalg.reduce { arith.addf } ins(%p : " + x + ") outs(%zero : " + y +
           ") dimensions = [1]\n  return %y : " + y + "\n}";
  }

  /// Two matmuls in a chain, for each of several heads, with a softmax of the intermediate's rows if `normalizes`.
  static std::string chain(int64_t heads, int64_t m, int64_t k, int64_t l, int64_t n, bool normalizes) {
    auto tensor = [&](int64_t a, int64_t b) {
      return "tensor<" + std::to_string(heads) + "x" + std::to_string(a) + "x" + std::to_string(b) + "xf32>";
    };
    std::string a = tensor(m, k), b = tensor(k, l), s = tensor(m, l), c = tensor(l, n), y = tensor(m, n),
                r = "tensor<" + std::to_string(heads) + "x" + std::to_string(m) + "xf32>";
    // An op on each element and the value of its row.
    auto withRows = [&](const std::string &result, const std::string &elements, const std::string &rows,
                        const std::string &op) {
      return "  %" + result + " = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = [\"parallel\", " +
             "\"parallel\", \"parallel\"]} ins(%" + elements + ", %" + rows + " : " + s + ", " + r + ") outs(%e : " +
             s + ") {\n  ^bb0(%u: f32, %v: f32, %o: f32):\n    %w = arith." + op +
             " %u, %v : f32\n    linalg.yield %w : f32\n  } -> " + s + "\n";
    };
    std::string text = "#id = affine_map<(h, i, j) -> (h, i, j)>\n#rows = affine_map<(h, i, j) -> (h, i)>\n"
                       "func.func @f(%a: " +
                       a + ", %b: " + b + ", %c: " + c + ") -> " + y + " {\n  %zs = arith.constant dense<0.0> : " + s +
                       "\n  %zy = arith.constant dense<0.0> : " + y + "\n  %e = tensor.empty() : " + s +
                       "\n  %s = linalg.batch_matmul ins(%a, %b : " + a + ", " + b + ") outs(%zs : " + s + ") -> " + s +
                       "\n";
    if (normalizes)
      text += "  %low = arith.constant dense<0xFF800000> : " + r + "\n  %zr = arith.constant dense<0.0> : " + r +
              "\n  %m = linalg.reduce { arith.maximumf } ins(%s : " + s + ") outs(%low : " + r +
              ") dimensions = [2]\n" + withRows("d", "s", "m", "subf") + "  %x = linalg.exp ins(%d : " + s +
              ") outs(%e : " + s + ") -> " + s + "\n  %t = linalg.reduce { arith.addf } ins(%x : " + s +
              ") outs(%zr : " + r + ") dimensions = [2]\n" + withRows("p", "x", "t", "divf");
    else
      text += "  %p = linalg.erf ins(%s : " + s + ") outs(%e : " + s + ") -> " + s + "\n";
    return text + "  %y = linalg.batch_matmul ins(%p, %c : " + s + ", " + c + ") outs(%zy : " + y + ") -> " + y +
           "\n  return %y : " + y + "\n}";
  }

  /// A depthwise convolution with channels innermost.
  static std::string depthwise(int64_t points, int64_t channels, int64_t window = 3) {
    auto image = [&](int64_t side) {
      return "tensor<1x" + std::to_string(side) + "x" + std::to_string(side) + "x" + std::to_string(channels) + "xf32>";
    };
    std::string x = image(points + window - 1), y = image(points), of = std::to_string(window) + "x",
                k = "tensor<" + of + of + std::to_string(channels) + "xf32>";
    return "func.func @f(%x: " + x + ", %k: " + k + ") -> " + y + " {\n  %zero = arith.constant dense<0.0> : " + y +
           "\n  %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : "
           "tensor<2xi64>} ins(%x, %k : " +
           x + ", " + k + ") outs(%zero : " + y + ") -> " + y + "\n  return %y : " + y + "\n}";
  }

  static std::string columnSums(int64_t rows, int64_t length, const std::string &type) {
    std::string x = "tensor<" + std::to_string(rows) + "x" + std::to_string(length) + "x" + type + ">",
                y = "tensor<" + std::to_string(length) + "x" + type + ">";
    return "func.func @f(%x: " + x + ") -> " + y + " {\n  %zero = arith.constant dense<0.0> : " + y +
           "\n  %y = linalg.reduce { arith.addf } ins(%x : " + x + ") outs(%zero : " + y +
           ") dimensions = [0]\n  return %y : " + y + "\n}";
  }

  static std::string softmax(int64_t rows, int64_t length) {
    auto replaced = [](std::string text, const std::string &from, const std::string &to) {
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
      return text;
    };
    std::string of = std::to_string(rows) + "x" + std::to_string(length) + "xf32";
    return replaced(replaced(softmaxSource, "37x53xf32", of), "<37xf32", "<" + std::to_string(rows) + "xf32");
  }

  /// A softmax whose elementwise ops read the values of a row by their index, so that one pass finds maximum and sum.
  static std::string softmaxOfRows(int64_t rows, int64_t length) {
    std::string x = "tensor<" + std::to_string(rows) + "x" + std::to_string(length) + "xf32>",
                r = "tensor<" + std::to_string(rows) + "xf32>";
    auto withRows = [&](const std::string &result, const std::string &operands, const std::string &op) {
      return "  %" + result + " = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = [\"parallel\", " +
             "\"parallel\"]} ins(" + operands + " : " + x + ", " + r + ") outs(%e : " + x +
             ") {\n  ^bb0(%u: f32, %v: f32, %o: f32):\n    %w = arith." + op +
             " %u, %v : f32\n    linalg.yield %w : f32\n  } -> " + x + "\n";
    };
    return "#id = affine_map<(i, j) -> (i, j)>\n#rows = affine_map<(i, j) -> (i)>\nfunc.func @f(%x: " + x + ") -> " + x +
           " {\n  %e = tensor.empty() : " + x + "\n  %low = arith.constant dense<0xFF800000> : " + r +
           "\n  %zero = arith.constant dense<0.0> : " + r + "\n  %m = linalg.reduce { arith.maximumf } ins(%x : " + x +
           ") outs(%low : " + r + ") dimensions = [1]\n" + withRows("d", "%x, %m", "subf") +
           "  %p = linalg.exp ins(%d : " + x + ") outs(%e : " + x + ") -> " + x +
           "\n  %s = linalg.reduce { arith.addf } ins(%p : " + x + ") outs(%zero : " + r + ") dimensions = [1]\n" +
           withRows("y", "%p, %s", "divf") + "  return %y : " + x + "\n}";
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
            reading("2000x16", "(d0, d1) -> (d0, d1)", "2000x16"),
            reading("64x2700", "(d0, d1) -> (d0, d1 * 9)", "64x300"),
            reading("40x40", "(d0, d1) -> (d1, d0)", "40x40"),
            reading("2100x4096", "(d0, d1) -> (d0, d1)", "2100x4096"),
            softmax(4096, 5),
            softmax(4096, 20),
            softmax(64, 16384),
            weighted(300, 20000),
            matmul(1, 4096, 5000, "f32"),
            matmul(64, 1027, 65, "f16"),
            matmul(2048, 2048, 2048, "f16"),
            chain(8, 512, 64, 2048, 64, true),
            chain(1, 512, 64, 2048, 64, false),
            chain(1, 1024, 2048, 256, 1024, false),
            chain(8, 512, 1024, 2048, 64, true),
            chain(8, 128, 64, 8192, 64, true),
            softmax(2000, 1003),
            softmax(3000, 100),
            columnSums(5000, 4096, "f32"),
            columnSums(65536, 8, "f16"),
            matmul(4096, 16, 4096, "f32"),
            matmul(4096, 2048, 1024, "f32"),
            matmul(100, 64, 64, "f32"),
            softmaxOfRows(256, 2500),
            depthwise(28, 64),
            depthwise(30, 64),
            chain(8, 12, 64, 65536, 64, false),
            chain(8, 512, 16, 65536, 16, false),
            convolution(56, 3),
            convolution(28, 7),
            convolution(7, 1),
            matmul(512, 300, 2, "f32"),
            // Products of a batch, whose dim is the innermost of the result.
            contraction("40x70x5", "70x48x5", "40x48x5",
                        "affine_map<(m, n, b, k) -> (m, k, b)>, affine_map<(m, n, b, k) -> (k, n, b)>, "
                        "affine_map<(m, n, b, k) -> (m, n, b)>")};
  }

  /// Returns the plan with the usual values.
  const std::string &usual(const std::string &source) {
    std::string &known = usualPlans[source];
    return known.empty() ? known = planned(source) : known;
  }

  std::string planned(const std::string &source) {
    parse(source);
    mlir::PassManager forms(&context);
    forms.addNestedPass<mlir::func::FuncOp>(createConvolutionToMatmul({fileOfTarget()}));
    forms.addNestedPass<mlir::func::FuncOp>(createNormalizeExprs({fileOfTarget()}));
    forms.addNestedPass<mlir::func::FuncOp>(createDeferNormalization());
    forms.addNestedPass<mlir::func::FuncOp>(createMarkOnlineSoftmax({fileOfTarget()}));
    EXPECT_TRUE(mlir::succeeded(forms.run(*module)));
    TensorGraph graph = TensorGraph::build((*module->getOps<mlir::func::FuncOp>().begin()).getBody().front());
    std::string text;
    llvm::raw_string_ostream(text) << toJson(*makePlan(graph, target));
    return text;
  }

  /// Returns true if a plan changes once the parameter has another value.
  bool isUsed(const CostField &field) {
    Target before = target;
    for (const std::string &source : sources()) {
      const std::string &usually = usual(source);
      for (double factor : {8.0, 0.125}) {
        target = before;
        double value = field.get(target.costs) * factor;
        if (field.unit == "share" || field.unit == "error")
          value = std::min(value, 0.99);
        field.set(target.costs, field.isInteger ? std::max(1.0, value) : value);
        bool changed = planned(source) != usually;
        target = before;
        if (changed)
          return true;
      }
    }
    return false;
  }

  /// Returns the parameters that change no plan, of those whose names begin with one of `beginnings`. Those that need a
  /// target or a program of their own are not tried.
  std::vector<std::string> unused(llvm::ArrayRef<llvm::StringRef> beginnings) {
    std::vector<std::string> names;
    for (const CostField &field : costFields())
      if (llvm::any_of(beginnings, [&](llvm::StringRef start) { return field.name.starts_with(start); }) &&
          !apart().count(field.name) && !isUsed(field))
        names.push_back(field.name.str());
    return names;
  }

  /// Returns the parameters that need another target or program than the tests of all others have.
  static const std::set<llvm::StringRef> &apart() {
    static const std::set<llvm::StringRef> names = {
        // Blocks of K are only that short if a workgroup has a small cache, and register blocks of AVX-512 read whole
        // lines of rhs in place, one K in each step. No rhs is packed. The tests are in this file.
        "cpu.shortestKBlock", "cpu.panelCopyOperations", "cpu.blocksToPack", "cpu.blocksToCopy",
        "cpu.blocksToCopyLines", "cpu.copiedPanelBytes", "cpu.prefetchedStride", "cpu.panelsAtOnce", "cpu.guardedRun",
        "common.smallValue", "gpu.loopRegisters", "gpu.otherRegisters",
        // normalize/layers/DecideWavefrontTest.cpp
        "gpu.waveBlocks", "gpu.waveBytes",
        // normalize/FormCostsTest.cpp
        "gpu.besideRowBytes",
        "cpu.packedRows", "cpu.partsOfCache", "common.channelsInLine", "common.filtersOfGroup", "cpu.shortRow",
        "cpu.repeatedInput", "common.scanBlock", "common.fewUpdates", "common.comparedPairs", "common.varianceTile",
        "common.variancePart", "common.varianceMemory", "common.varianceSpareParts",
        // codegen/CodeCostsTest.cpp
        "cpu.nestRegisters", "cpu.stackBytes", "common.globalWeight", "gpu.worthCopying", "gpu.vectorsInFlight",
        "gpu.combinedElements", "gpu.firstLoads", "gpu.copiesTogether", "gpu.loadsTogether", "gpu.unrolledK",
        "gpu.sharingContractions",
        // layout/BlockingTest.cpp, layout/GemmTilingTest.cpp and plan/space/BindingsTest.cpp
        "cpu.windowSteps", "cpu.windowRun",
        "gpu.overlappingStages", "gpu.residentBytes", "gpu.repeatedWeightBytes"};
    return names;
  }

  /// Makes the L2 so small that blocks of K are taken.
  void shrinkL2() {
    for (MemoryLevel &level : target.levels)
      if (level.space == tile::Space::block)
        level.capacityBytes = 64 * 1024;
  }

  std::map<std::string, std::string> usualPlans;
  llvm::SmallString<64> path;
};

TEST_F(CostParametersUseTest, those_that_are_tested_apart_exist) {
  size_t found = llvm::count_if(costFields(), [](const CostField &field) { return apart().count(field.name) > 0; });
  EXPECT_EQ(found, apart().size());
}

TEST_F(CostParametersUseTest, those_of_cpus_change_plans) {
  EXPECT_EQ(unused({"cpu.", "common."}), std::vector<std::string>());
}

TEST_F(CostParametersUseTest, those_of_copies_change_plans_if_a_register_block_reads_one_line) {
  target = llvm::cantFail(lookupTarget("x86-64-avx2"));
  for (llvm::StringRef name :
       {"cpu.panelCopyOperations", "cpu.blocksToCopyLines", "cpu.copiedPanelBytes", "cpu.prefetchedStride"})
    EXPECT_TRUE(isUsed(*llvm::find_if(costFields(), [&](const CostField &field) { return field.name == name; })))
        << name.str();
}

TEST_F(CostParametersUseTest, terms_of_bf16_are_packed_for_many_row_blocks) {
  target = llvm::cantFail(lookupTarget("x86-64-avx512bf16"));
  std::string source = matmul(512, 1024, 512, "bf16"), usually = planned(source);
  target.costs.cpu.blocksToPack = 1000;
  EXPECT_NE(planned(source), usually);
}

TEST_F(CostParametersUseTest, one_row_reads_several_packed_panels_at_once) {
  target = llvm::cantFail(lookupTarget("x86-64-avx2"));
  std::string source = contraction("1x700", "32x700x16", "1x512",
                                   "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 16, k, n mod "
                                   "16)>, affine_map<(m, n, k) -> (m, n)>");
  std::string usually = planned(source);
  target.costs.cpu.panelsAtOnce = 1;
  EXPECT_NE(planned(source), usually);
}

TEST_F(CostParametersUseTest, panels_of_blocks_of_k_are_copied_for_many_row_blocks) {
  shrinkL2();
  std::string source = matmul(4096, 4096, 4096, "f32"), usually = planned(source);
  target.costs.cpu.blocksToCopy = 1000;
  EXPECT_NE(planned(source), usually);
}

TEST_F(CostParametersUseTest, short_blocks_of_k_are_not_worth_their_accumulators) {
  shrinkL2();
  std::string source = matmul(4096, 4096, 4096, "f32"), cut = planned(source);
  EXPECT_NE(cut.find("\"microKernel\":\"fma-6x4x"), std::string::npos) << "K is not cut into blocks";
  target.costs.cpu.shortestKBlock = 512;
  EXPECT_EQ(planned(source).find("\"microKernel\":\"fma-6x4x"), std::string::npos);
}

// Code generation reduces several windows at once only if it unrolls their loops.
TEST_F(CostParametersUseTest, long_windows_are_not_joined) {
  std::string shorter = depthwise(56, 64, 7), longer = depthwise(56, 64, 9);
  std::string usualShorter = planned(shorter), usualLonger = planned(longer);
  target.costs.cpu.joinedWindows = 4;
  EXPECT_NE(planned(shorter), usualShorter);
  EXPECT_EQ(planned(longer), usualLonger);
}

// A value that two nests read is computed in each, unless it is as large as they are.
TEST_F(CostParametersUseTest, small_values_are_computed_where_they_are_read) {
  TensorGraph graph = parse(R"(
func.func @f(%x: tensor<30x500xf32>, %w: tensor<500xf32>) -> tensor<30x500xf32> {
  %zero = arith.constant dense<0.0> : tensor<30xf32>
  %r = tensor.empty() : tensor<500xf32>
  %e = tensor.empty() : tensor<30x500xf32>
  %v = linalg.exp ins(%w : tensor<500xf32>) outs(%r : tensor<500xf32>) -> tensor<500xf32>
  %b = linalg.broadcast ins(%v : tensor<500xf32>) outs(%e : tensor<30x500xf32>) dimensions = [0]
  %p = linalg.mul ins(%x, %b : tensor<30x500xf32>, tensor<30x500xf32>) outs(%e : tensor<30x500xf32>)
      -> tensor<30x500xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<30x500xf32>) outs(%zero : tensor<30xf32>) dimensions = [1]
  %c = linalg.broadcast ins(%s : tensor<30xf32>) outs(%e : tensor<30x500xf32>) dimensions = [1]
  %q = linalg.div ins(%b, %c : tensor<30x500xf32>, tensor<30x500xf32>) outs(%e : tensor<30x500xf32>)
      -> tensor<30x500xf32>
  return %q : tensor<30x500xf32>
})");
  int64_t value = llvm::find_if(graph.exprs(), [](const TensorExpr &expr) { return expr.domainSize() == 500; }) -
                  graph.exprs().begin();
  auto scope = [&] {
    return chooseScopes(graph, allOf(graph), /*threadOnly=*/false, target).lookup(graph.outEdges(value).front()).scope;
  };
  EXPECT_EQ(scope(), tile::Scope::thread);
  target.costs.common.smallValue = 64;
  EXPECT_EQ(scope(), tile::Scope::block);
}

// Register blocks read an image under a guard only if whole runs of channels are inside of it.
TEST_F(CostParametersUseTest, short_runs_of_channels_are_read_from_a_stored_pad) {
  std::string source = llvm::formatv(R"(
func.func @f(%x: tensor<1x16x60x60xf32>) -> tensor<1x32x58x58xf32> {{
  %a = arith.constant dense<0.5> : tensor<24x16x3x3xf32>
  %b = arith.constant dense<0.5> : tensor<32x24x3x3xf32>
  %u = arith.constant dense<0.0> : tensor<1x24x58x58xf32>
  %v = arith.constant dense<0.0> : tensor<1x32x58x58xf32>
  %n = arith.constant 0.0 : f32
  %y = linalg.conv_2d_nchw_fchw {0} ins(%x, %a : tensor<1x16x60x60xf32>, tensor<24x16x3x3xf32>)
      outs(%u : tensor<1x24x58x58xf32>) -> tensor<1x24x58x58xf32>
  %p = tensor.pad %y low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %n : f32
  } : tensor<1x24x58x58xf32> to tensor<1x24x60x60xf32>
  %z = linalg.conv_2d_nchw_fchw {0} ins(%p, %b : tensor<1x24x60x60xf32>, tensor<32x24x3x3xf32>)
      outs(%v : tensor<1x32x58x58xf32>) -> tensor<1x32x58x58xf32>
  return %z : tensor<1x32x58x58xf32>
})",
                                     "{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}");
  EXPECT_TRUE(changes("cpu.guardedRun", 64, [&] {
    return rewritten(source, [&](mlir::PassManager &passes) {
      passes.addNestedPass<mlir::func::FuncOp>(createConvolutionToMatmul({fileOfTarget()}));
      passes.addNestedPass<mlir::func::FuncOp>(createNormalizeExprs({fileOfTarget()}));
      passes.addNestedPass<mlir::func::FuncOp>(createPackWeights({fileOfTarget()}));
      FormSubprogramsOptions form;
      form.target = fileOfTarget();
      passes.addPass(createFormSubprograms(form));
    });
  }));
}

// The second product grows in registers while tiles walk the columns of the first one.
TEST_F(CostParametersUseTest, threads_need_registers_besides_accumulators) {
  target = *lookupTarget("cuda:h200");
  TensorGraph graph = parse(R"(
func.func @f(%a: tensor<4096x64xf16>, %b: tensor<64x2048xf16>, %c: tensor<2048x64xf16>) -> tensor<4096x64xf32> {
  %zs = arith.constant dense<0.0> : tensor<4096x2048xf32>
  %zy = arith.constant dense<0.0> : tensor<4096x64xf32>
  %e = tensor.empty() : tensor<4096x2048xf16>
  %s = linalg.matmul ins(%a, %b : tensor<4096x64xf16>, tensor<64x2048xf16>)
      outs(%zs : tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4096x2048xf32>) outs(%e : tensor<4096x2048xf16>) {
  ^bb0(%v: f32, %o: f16):
    %t = math.exp %v : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %u : f16
  } -> tensor<4096x2048xf16>
  %y = linalg.matmul ins(%p, %c : tensor<4096x2048xf16>, tensor<2048x64xf16>)
      outs(%zy : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  return %y : tensor<4096x64xf32>
})");
  auto registers = [&] {
    std::optional<IterationSpace> space = spaceOfAll(graph);
    EXPECT_TRUE(space);
    return std::to_string(space ? space->blockWork.registers : 0);
  };
  EXPECT_TRUE(changes("gpu.loopRegisters", 17, registers));
  EXPECT_TRUE(changes("gpu.otherRegisters", 65, registers));
}

TEST_F(CostParametersUseTest, those_of_gpus_change_plans) {
  target = *lookupTarget("cuda:h200");
  EXPECT_EQ(unused({"gpu."}), std::vector<std::string>());
}
} // namespace

// Tests that the cost parameters of code generation are used: another value of one changes the code of a small kernel.
#include "test/unit/CostsFixture.h"

#include "passes/backend/Backend.h"
#include "passes/backend/KernelOptions.h"

using namespace mlir;
using namespace tilewright;

namespace {
class CodeCostsTest : public CostsFixture {
protected:
  CodeCostsTest() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
  }

  /// Adds the passes from a function to tile programs.
  void addPrograms(PassManager &passes, const KernelOptions &options) {
    passes.addNestedPass<func::FuncOp>(createConvolutionToMatmul({options.target}));
    passes.addNestedPass<func::FuncOp>(createNormalizeExprs({options.target}));
    FormSubprogramsOptions form;
    form.target = options.target;
    passes.addPass(createFormSubprograms(form));
    passes.addNestedPass<func::FuncOp>(createApplyNumerics());
    passes.addNestedPass<func::FuncOp>(createComposeExprs());
    passes.addNestedPass<func::FuncOp>(createCseSubprograms());
    backendOf(target).populatePlanned(passes, options);
    LowerToProgramOptions lower;
    lower.target = options.target;
    passes.addPass(createLowerToProgram(lower));
  }

  /// Returns true if the tile programs of a function, or the kernels that they become, are others once the parameter has
  /// this value.
  bool changesProgram(StringRef name, double value, const std::string &source) {
    return changesIn(name, value, source, /*compiles=*/false);
  }
  bool changesCode(StringRef name, double value, const std::string &source) {
    return changesIn(name, value, source, /*compiles=*/true);
  }

  static std::string matmul(int64_t m, int64_t k, int64_t n, StringRef type) {
    return llvm::formatv(R"(
func.func @f(%a: tensor<{0}x{1}x{3}>, %b: tensor<{1}x{2}x{3}>) -> tensor<{0}x{2}xf32> {{
  %zero = arith.constant dense<0.0> : tensor<{0}x{2}xf32>
  %y = linalg.matmul ins(%a, %b : tensor<{0}x{1}x{3}>, tensor<{1}x{2}x{3}>)
      outs(%zero : tensor<{0}x{2}xf32>) -> tensor<{0}x{2}xf32>
  return %y : tensor<{0}x{2}xf32>
})",
                         m, k, n, type);
  }

private:
  bool changesIn(StringRef name, double value, const std::string &source, bool compiles) {
    return changes(name, value, [&] {
      KernelOptions options;
      options.target = fileOfTarget();
      return rewritten(source, [&](PassManager &passes) {
        addPrograms(passes, options);
        if (compiles)
          backendOf(target).populateKernels(passes, options);
      });
    });
  }
};

TEST_F(CodeCostsTest, vectors_of_polynomials_have_several_registers) {
  EXPECT_TRUE(changesCode("cpu.nestRegisters", 1, reading("200x500", "(d0, d1) -> (d0, d1)", "200x500")));
}

TEST_F(CodeCostsTest, small_buffers_are_on_the_stack) {
  EXPECT_TRUE(changesCode("cpu.stackBytes", 1, softmaxSource));
}

class GpuCodeCostsTest : public CodeCostsTest {
protected:
  GpuCodeCostsTest() { target = *lookupTarget("cuda:h200"); }
};

// The result is stored across the order of the accumulators' buffer: with equal weights, neither order is better.
TEST_F(GpuCodeCostsTest, lanes_lie_as_accesses_to_memory_do) {
  std::string source = R"(
func.func @f(%a: tensor<64x256xf16>, %b: tensor<256x96xf16>) -> tensor<96x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x96xf32>
  %e = tensor.empty() : tensor<96x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x256xf16>, tensor<256x96xf16>)
      outs(%zero : tensor<64x96xf32>) -> tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x96xf32>) outs(%e : tensor<96x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = math.exp %v : f32
    linalg.yield %t : f32
  } -> tensor<96x64xf32>
  return %y : tensor<96x64xf32>
})";
  EXPECT_TRUE(changesProgram("common.globalWeight", 1, source));
}

TEST_F(GpuCodeCostsTest, tiles_that_lie_across_lanes_are_staged_with_vectors_in_flight) {
  std::string source = reading("3000x2000", "(d0, d1) -> (d1, d0)", "2000x3000");
  EXPECT_TRUE(changesCode("gpu.worthCopying", 1000, source));
  EXPECT_TRUE(changesCode("gpu.vectorsInFlight", 1, source));
}

TEST_F(GpuCodeCostsTest, threads_combine_the_values_of_several_warps_at_once) {
  std::string source = R"(
func.func @f(%x: tensor<64x16384xf32>) -> tensor<64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %y = linalg.reduce { arith.addf } ins(%x : tensor<64x16384xf32>) outs(%zero : tensor<64xf32>) dimensions = [1]
  return %y : tensor<64xf32>
})";
  EXPECT_TRUE(changesCode("gpu.combinedElements", 4, source));
}

TEST_F(GpuCodeCostsTest, several_copies_have_no_loop) {
  EXPECT_TRUE(changesCode("gpu.copiesTogether", 1, matmul(512, 1024, 512, "f16")));
}

// Windows of 16-bit elements begin inside words, so they pass through registers.
TEST_F(GpuCodeCostsTest, several_loads_have_no_loop_and_their_steps_one) {
  std::string source = convolution(56, 3, "f16");
  EXPECT_TRUE(changesCode("gpu.loadsTogether", 1, source));
  EXPECT_TRUE(changesCode("gpu.firstLoads", 1, source));
}

TEST_F(GpuCodeCostsTest, threads_multiply_several_k_at_a_time) {
  EXPECT_TRUE(changesCode("gpu.unrolledK", 16, matmul(512, 1024, 512, "f32")));
}

TEST_F(GpuCodeCostsTest, two_contractions_share_what_follows_from_the_thread_index) {
  std::string source = R"(
func.func @f(%a: tensor<512x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf16>) -> tensor<512x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<512x64xf32>
  %e = tensor.empty() : tensor<512x64xf16>
  %s = linalg.matmul ins(%a, %b : tensor<512x64xf16>, tensor<64x64xf16>)
      outs(%zero : tensor<512x64xf32>) -> tensor<512x64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<512x64xf32>) outs(%e : tensor<512x64xf16>) {
  ^bb0(%v: f32, %o: f16):
    %t = math.exp %v : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %u : f16
  } -> tensor<512x64xf16>
  %y = linalg.matmul ins(%p, %c : tensor<512x64xf16>, tensor<64x64xf16>)
      outs(%zero : tensor<512x64xf32>) -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
})";
  EXPECT_TRUE(changesCode("gpu.sharingContractions", 1, source));
}
} // namespace

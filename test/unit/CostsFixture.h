// Fixture for tests that another value of a cost parameter changes something.
#ifndef TILEWRIGHT_TEST_UNIT_COSTSFIXTURE_H
#define TILEWRIGHT_TEST_UNIT_COSTSFIXTURE_H

#include "passes/Passes.h"
#include "test/unit/PlanFixture.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

namespace tilewright {

class CostsFixture : public PlanFixture {
protected:
  ~CostsFixture() override {
    if (!path.empty())
      llvm::sys::fs::remove(path);
  }

  /// Returns the path of a file with the target, for passes that look one up.
  std::string fileOfTarget() {
    if (path.empty())
      EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("target", "json", path));
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << toJson(target);
    EXPECT_FALSE(error);
    return path.str().str();
  }

  /// Returns the module of `source` as the passes leave it.
  std::string rewritten(const std::string &source, llvm::function_ref<void(mlir::PassManager &)> add) {
    module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    EXPECT_TRUE(module) << source;
    mlir::PassManager passes(&context);
    add(passes);
    EXPECT_TRUE(mlir::succeeded(passes.run(*module))) << source;
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    return text;
  }

  /// Returns true if `text` is another one once the parameter has this value.
  bool changes(llvm::StringRef name, double value, llvm::function_ref<std::string()> text) {
    const CostField *field = llvm::find_if(costFields(), [&](const CostField &each) { return each.name == name; });
    EXPECT_NE(field, costFields().end()) << name.str();
    EXPECT_EQ(field->whyNot(value), "") << name.str();
    std::string usually = text();
    Target before = target;
    field->set(target.costs, value);
    std::string now = text();
    target = before;
    return now != usually;
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

  /// A convolution in the layout of the model, with 16 channels before and 24 behind it.
  static std::string convolution(int64_t points, int64_t window, const std::string &type = "f32") {
    std::string x = llvm::formatv("tensor<1x16x{0}x{0}x{1}>", points + window - 1, type),
                k = llvm::formatv("tensor<24x16x{0}x{0}x{1}>", window, type),
                y = llvm::formatv("tensor<1x24x{0}x{0}xf32>", points);
    return "func.func @f(%x: " + x + ", %k: " + k + ") -> " + y + " {\n  %zero = arith.constant dense<0.0> : " + y +
           "\n  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : "
           "tensor<2xi64>} ins(%x, %k : " +
           x + ", " + k + ") outs(%zero : " + y + ") -> " + y + "\n  return %y : " + y + "\n}";
  }

  /// A contraction of f32 whose operands are read through the maps.
  static std::string contraction(const std::string &a, const std::string &b, const std::string &y,
                                 const std::string &maps) {
    std::string kinds = "\"parallel\", \"parallel\", ";
    if (y.find('x') != y.rfind('x'))
      kinds += "\"parallel\", ";
    return llvm::formatv(R"(
func.func @f(%a: tensor<{0}xf32>, %b: tensor<{1}xf32>) -> tensor<{2}xf32> {{
  %none = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{2}xf32>
  %zero = linalg.fill ins(%none : f32) outs(%e : tensor<{2}xf32>) -> tensor<{2}xf32>
  %y = linalg.generic {{indexing_maps = [{3}], iterator_types = [{4}"reduction"]}
      ins(%a, %b : tensor<{0}xf32>, tensor<{1}xf32>) outs(%zero : tensor<{2}xf32>) {{
  ^bb0(%u: f32, %v: f32, %o: f32):
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<{2}xf32>
  return %y : tensor<{2}xf32>
})",
                         a, b, y, maps, kinds);
  }

private:
  llvm::SmallString<64> path;
};

} // namespace tilewright

#endif

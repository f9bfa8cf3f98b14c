// A normalised product, the source of tests about rows that blocks share.
#ifndef TILEWRIGHT_TEST_UNIT_PLAN_SPACE_NORMALISEDPRODUCT_H
#define TILEWRIGHT_TEST_UNIT_PLAN_SPACE_NORMALISEDPRODUCT_H

#include "llvm/Support/FormatVariadic.h"

namespace tilewright {

/// The sizes of a product.
struct ProductSizes {
  int64_t rows = 37, inner = 64, width = 160;
};

/// A product, and its rows divided by a sum behind their mean: ops 0 (product), 1 (sum), 2 (mean), 3
/// (difference), 4 (square), 5 (sum of `summed`), 6 (quotient). `type` is that of the
/// factors.
inline std::string normSource(const std::string &summed, ProductSizes sizes = {}, llvm::StringRef type = "f16") {
  std::string types = llvm::formatv("!lhs = tensor<{0}x{1}x{3}>\n!rhs = tensor<{1}x{2}x{3}>\n!row = tensor<{0}xf32>\n"
                                    "!full = tensor<{0}x{2}xf32>\n",
                                    sizes.rows, sizes.inner, sizes.width, type);
  return types + R"(
#at = affine_map<(i, j) -> (i, j)>
#of_row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
func.func @norm(%x: !lhs, %w: !rhs) -> !full {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !full
  %f = linalg.fill ins(%zero : f32) outs(%e : !full) -> !full
  %rows = tensor.empty() : !row
  %z = linalg.fill ins(%zero : f32) outs(%rows : !row) -> !row
  %p = linalg.matmul ins(%x, %w : !lhs, !rhs) outs(%f : !full) -> !full
  %s = linalg.generic {indexing_maps = [#at, #of_row], iterator_types = ["parallel", "reduction"]}
      ins(%p : !full) outs(%z : !row) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %in, %acc : f32
    linalg.yield %v : f32
  } -> !row
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : !row) outs(%rows : !row) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.constant 0.00625 : f32
    %v = arith.mulf %in, %c : f32
    linalg.yield %v : f32
  } -> !row
  %d = linalg.generic {indexing_maps = [#at, #of_row, #at], iterator_types = ["parallel", "parallel"]}
      ins(%p, %m : !full, !row) outs(%e : !full) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> !full
  %q = linalg.generic {indexing_maps = [#at, #at], iterator_types = ["parallel", "parallel"]}
      ins(%d : !full) outs(%e : !full) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> !full
  %t = linalg.generic {indexing_maps = [#at, #of_row], iterator_types = ["parallel", "reduction"]}
      ins()" + summed + R"( : !full) outs(%z : !row) {
  ^bb0(%in: f32, %acc: f32):
    %v = arith.addf %in, %acc : f32
    linalg.yield %v : f32
  } -> !row
  %y = linalg.generic {indexing_maps = [#at, #of_row, #at], iterator_types = ["parallel", "parallel"]}
      ins(%d, %t : !full, !row) outs(%e : !full) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> !full
  return %y : !full
})";
}

/// The source with the first sum as a second result.
inline std::string returningSum(std::string source) {
  auto change = [&](llvm::StringRef from, llvm::StringRef to) {
    source.replace(source.find(from), from.size(), to);
  };
  change("-> !full {", "-> (!full, !row) {");
  change("return %y : !full", "return %y, %s : !full, !row");
  return source;
}

} // namespace tilewright

#endif

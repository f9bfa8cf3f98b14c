// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx2 cores=1})' | FileCheck %s

// A vector has four lanes of f64, so eight of them are as wide as a panel, and the tiling of threads says so, too.
// CHECK: tile.expr {{.*}} tile.blocking = #tile.blocking<vectors = 8>
func.func @packed(%x: tensor<1x512xf64>, %w: tensor<16x512x32xf64>) -> tensor<1x512xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<1x512xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<1x512xf64>) -> tensor<1x512xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x512xf64>, tensor<16x512x32xf64>) outs(%f : tensor<1x512xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<1x512xf64>
  return %y : tensor<1x512xf64>
}

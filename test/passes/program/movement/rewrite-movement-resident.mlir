// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-rewrite-movement{target=cuda:h200})' --mlir-print-local-scope | FileCheck %s

// The first hand-over becomes a value of one part, and its binding goes; the numbers of bindings in what the plan says
// of resident tiles and of accesses follow. A tile of the dropped binding is forgotten.
// CHECK-LABEL: tile.program @numbers_follow outputs 2
// CHECK: tile.parallel {{.*}}tile.resident = array<i64: 1, 1>
// CHECK-NOT: tile.parallel {{.*}}tile.resident = array<i64: {{.*}}, 2>
// CHECK: tile.sync <grid>
// CHECK: tile.parallel {{.*}}tile.accesses = [#tile.access<direct>, #tile.access<whole>, #tile.access<derived>]{{.*}}tile.resident = array<i64: 1, 1>
tile.program @numbers_follow outputs 3 {
^bb0(%x: !tile.slice<96xf32, global>, %t: !tile.slice<96xf32, global>, %u: !tile.slice<96xf32, global>,
     %y: !tile.slice<96xf32, global>):
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 0, 1, 1, 2>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %x at affine_map<(d0)[s0] -> (d0)> : !tile.slice<96xf32, global> -> f32
        %e = math.exp %a : f32
        tile.store %e, %t at affine_map<(d0)[s0] -> (d0)> : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 0, 1, 1, 2>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %t at affine_map<(d0)[s0] -> (d0)> : !tile.slice<96xf32, global> -> f32
        %e = math.tanh %a : f32
        tile.store %e, %u at affine_map<(d0)[s0] -> (d0)> : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 1, 2>, tile.accesses = [#tile.access<direct>, #tile.access<derived>, #tile.access<whole>, #tile.access<derived>], tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %u at affine_map<(d0)[s0] -> (d0)> : !tile.slice<96xf32, global> -> f32
        %b = tile.load %u at affine_map<(d0)[s0] -> (95 - d0)> : !tile.slice<96xf32, global> -> f32
        %c = arith.addf %a, %b : f32
        tile.store %c, %y at affine_map<(d0)[s0] -> (d0)> : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
}
func.func @caller(%x: tensor<96xf32>) -> tensor<96xf32> {
  %r:3 = tile.launch @numbers_follow(%x) : (tensor<96xf32>) -> (tensor<96xf32>, tensor<96xf32>, tensor<96xf32>)
  return %r#2 : tensor<96xf32>
}

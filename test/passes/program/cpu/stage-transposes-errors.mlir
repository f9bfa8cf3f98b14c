// RUN: not tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-transposes{target=pdp11}))' 2>&1 | FileCheck %s

// CHECK: error: {{.*}}pdp11
tile.program @k outputs 1 {
^bb0(%x: !tile.slice<4xf32, global>, %y: !tile.slice<4xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [4] sizes [4] offsets []() vector 0 reduce [] {
        %v = tile.load %x at affine_map<(i)[s0] -> (i)> : !tile.slice<4xf32, global> -> f32
        tile.store %v, %y at affine_map<(i)[s0] -> (i)> : f32, !tile.slice<4xf32, global>
        tile.yield
      }
    }
  }
}

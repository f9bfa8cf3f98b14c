// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-import-iree | FileCheck %s
// RUN: sed 's/@tilewright_kernels/@inner/' %s \
// RUN:   | not tilewright-opt --allow-unregistered-dialect --tile-import-iree 2>&1 | FileCheck %s --check-prefix=OTHER

// A lowered program keeps its kernels; any other module in the module is refused.
// CHECK: module @tilewright_kernels
// CHECK: tile.program @exponential
// OTHER: error: a module in a module is not supported
module {
  module @tilewright_kernels {
    tile.program @exponential outputs 1 {
    ^bb0(%x: !tile.slice<64xf32, global>, %y: !tile.slice<64xf32, global>):
      tile.parallel [64] tiles [16] workgroups 4 {
      tile.walk {
      ^bb0(%i: index):
        tile.compute [64] sizes [16] offsets [0] (%i) vector 0 reduce [] {
          %v = tile.load %x at affine_map<(d0) -> (d0)> : !tile.slice<64xf32, global> -> f32
          %e = math.exp %v : f32
          tile.store %e, %y at affine_map<(d0) -> (d0)> : f32, !tile.slice<64xf32, global>
          tile.yield
        }
      }
      }
    }
  }
}

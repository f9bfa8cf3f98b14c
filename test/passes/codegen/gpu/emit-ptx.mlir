// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilewright-cuda-codegen{target=sm_80 object-path=%t.ptx manifest=%t.json})' -o /dev/null
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: FileCheck %s --input-file=%t.json --check-prefix=MANIFEST

// CHECK: .target sm_80
// CHECK: .visible .entry negate(
// CHECK: .maxntid 128, 1, 1
// CHECK: ld.global.nc.v4.b32
// CHECK: neg.f32
// CHECK: st.global.v4.b32
// MANIFEST: "name": "negate"
// MANIFEST: "workgroups": 3
// MANIFEST: "threads": 128
#id = affine_map<(d0)[s0] -> (d0)>
module {
  module @tilewright_kernels {
    tile.program @negate outputs 1 {
    ^bb0(%x: !tile.slice<1532xf32, global>, %y: !tile.slice<1532xf32, global>):
      tile.parallel [1532] tiles [512] workgroups 3 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
      tile.walk {
      ^bb0(%i: index):
        tile.compute [1532] sizes [512] offsets [0] (%i) vector 0 reduce [] {
          %v = tile.load %x at #id : !tile.slice<1532xf32, global> -> f32
          %n = arith.negf %v : f32
          tile.store %n, %y at #id : f32, !tile.slice<1532xf32, global>
          tile.yield
        }
      }
      }
    }
  }
}

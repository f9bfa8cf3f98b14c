// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @y1_scope outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{Y1: a kernel cannot wait at scope launch}}
      tile.sync <launch>
    }
  }
}

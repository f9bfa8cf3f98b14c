// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=cuda:h201}))' --verify-diagnostics

// expected-error @below {{cuda:h201}}
tile.program @unknown_target outputs 1 {
^bb0(%y: !tile.slice<8xf32, global>):
  tile.parallel [8] tiles [1] workgroups 8 {
  tile.walk {
  ^bb0(%i: index):
  }
  }
}

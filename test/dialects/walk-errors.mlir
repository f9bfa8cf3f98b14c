// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @n1_arguments outputs 0 {
^bb0:
  tile.parallel [4] tiles [1] workgroups 1 {
    // expected-error @+1 {{N1: expected one index argument per dim of the grid}}
    tile.walk {
    ^bb0(%i: index, %j: index):
    }
  }
}

// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{P1: arguments must be dense global slices, not}}
tile.program @p1_space outputs 0 {
^bb0(%x: !tile.slice<4xf32, block>):
}

// -----

// expected-error @+1 {{P1: arguments must be dense global slices, not}}
tile.program @p1_strides outputs 0 {
^bb0(%x: !tile.slice<4xf32, global, strides [2]>):
}

// -----

// expected-error @+1 {{P2: more outputs than arguments}}
tile.program @p2_outputs outputs 2 {
^bb0(%x: !tile.slice<4xf32, global>):
}

// -----

tile.program @p3_body outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  // expected-error @+1 {{P3: a tile program holds only tile.parallel}}
  tile.sync <block>
}

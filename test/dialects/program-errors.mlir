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
  // expected-error @+1 {{P3: a tile program holds only tile.parallel, and tile.sync <grid> between them}}
  tile.sync <block>
}

// -----

tile.program @p3_nothing_to_wait_for outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  // expected-error @+1 {{P3: a grid barrier must be between two parts}}
  tile.sync <grid>
  tile.parallel [4] tiles [4] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

// -----

// expected-error @+1 {{P4: outputs cannot take the memory of inputs as array<i64: 0> says}}
tile.program @p4_other_type outputs 1 attributes {in_place = [array<i64: 0>]} {
^bb0(%x: !tile.slice<4xf32, global>, %y: !tile.slice<5xf32, global>):
}

// -----

tile.program @p5_other_bytes outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  tile.parallel [4] tiles [2] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
      %a = tile.alloc {tile.resident_tile = 0 : i64} : !tile.slice<2xf32, block>
    }
  }
  tile.sync <grid>
  tile.parallel [4] tiles [2] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{P5: buffers of one resident tile must have the same size}}
      %a = tile.alloc {tile.resident_tile = 0 : i64} : !tile.slice<3xf32, block>
    }
  }
}

// -----

tile.program @p5_several_tiles outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  tile.parallel [4] tiles [1] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{P5: buffers of one resident tile must have the same size}}
      %a = tile.alloc {tile.resident_tile = 0 : i64} : !tile.slice<2xf32, block>
    }
  }
}

// -----

tile.program @p5_beside_another_part outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
    }
  }
  tile.parallel [4] tiles [2] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{P5: buffers of one resident tile must have the same size}}
      %a = tile.alloc {tile.resident_tile = 0 : i64} : !tile.slice<2xf32, block>
    }
  }
}

// -----

tile.program @p6_several_tiles outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  // expected-error @+1 {{P6: a part with a grid barrier in its walk is alone in its phase and has one tile}}
  tile.parallel [4] tiles [1] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
      tile.sync <grid>
    }
  }
}

// -----

tile.program @p6_beside_another_part outputs 0 {
^bb0(%x: !tile.slice<4xf32, global>):
  // expected-error @+1 {{P6: a part with a grid barrier in its walk is alone in its phase and has one tile}}
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.sync <grid>
    }
  }
  tile.parallel [4] tiles [2] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

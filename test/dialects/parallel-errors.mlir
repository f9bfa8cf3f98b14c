// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @l1_lengths outputs 0 {
^bb0:
  // expected-error @+1 {{L1: expected one tile per extent}}
  tile.parallel [4, 5] tiles [4] workgroups 1 {
    tile.walk {
    ^bb0(%i: index, %j: index):
    }
  }
}

// -----

tile.program @l1_tile outputs 0 {
^bb0:
  // expected-error @+1 {{L1: tile 5 does not fit extent 4}}
  tile.parallel [4] tiles [5] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

// -----

tile.program @l2_workgroups outputs 0 {
^bb0:
  // expected-error @+1 {{L2: 5 workgroups for 4 tiles}}
  tile.parallel [4] tiles [1] workgroups 5 {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

// -----

tile.program @l3_walk outputs 0 {
^bb0:
  // expected-error @+1 {{L3: the body must end in its only tile.walk}}
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.sync <block>
  }
}

// -----

tile.program @l2_steps outputs 0 {
^bb0:
  // expected-error @+1 {{L2: 9 workgroups for 4 tiles of 2 steps}}
  tile.parallel [4] tiles [1] workgroups 9 steps 2 {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

// -----

tile.program @l4_rows outputs 1 {
^bb0(%sums: !tile.slice<4x32xf32, global>):
  // expected-error @+1 {{L4: partials need steps, global space, and a row for each workgroup}}
  tile.parallel [4] tiles [1] workgroups 5 steps 2 partials %sums : !tile.slice<4x32xf32, global> {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

// -----

tile.program @l4_no_steps outputs 1 {
^bb0(%sums: !tile.slice<4x32xf32, global>):
  // expected-error @+1 {{L4: partials need steps}}
  tile.parallel [4] tiles [1] workgroups 4 partials %sums : !tile.slice<4x32xf32, global> {
    tile.walk {
    ^bb0(%i: index):
    }
  }
}

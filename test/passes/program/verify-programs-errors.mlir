// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-verify-programs))' --split-input-file --verify-diagnostics

#id = affine_map<(d0)[s0] -> (d0)>

tile.program @r1_writes_input outputs 1 {
^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{R1: writes an input of the program}}
      tile.move %y, %x : !tile.slice<8xf32, global>, !tile.slice<8xf32, global>
    }
  }
}

// -----

tile.program @r2_reads_before_sync outputs 1 {
^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %a = tile.alloc at 0 : !tile.slice<8xf32, block>
      tile.move %x, %a : !tile.slice<8xf32, global>, !tile.slice<8xf32, block>
      // expected-error @+1 {{R2: reads a buffer that nothing wrote before; a tile.sync is missing between}}
      tile.move %a, %y : !tile.slice<8xf32, block>, !tile.slice<8xf32, global>
    }
  }
}

// -----

tile.program @r3_leaves_binding outputs 1 {
^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [8] sizes [8] offsets [] () vector 0 reduce [] {
        // expected-error @+1 {{R3: reaches [1, 8] along dim 0 of size 8}}
        %v = tile.load %x at affine_map<(d0)[s0] -> (d0 + 1)> : !tile.slice<8xf32, global> -> f32
        tile.store %v, %y at affine_map<(d0)[s0] -> (d0)> : f32, !tile.slice<8xf32, global>
        tile.yield
      }
    }
  }
}

// -----

tile.program @r4_overlapping_buffers outputs 1 {
^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-note @+1 {{the other buffer}}
      %a = tile.alloc at 0 : !tile.slice<8xf32, block>
      // expected-error @+1 {{R4: overlaps a buffer that is live at the same time}}
      %b = tile.alloc at 16 : !tile.slice<8xf32, block>
      tile.move %x, %a : !tile.slice<8xf32, global>, !tile.slice<8xf32, block>
      tile.move %x, %b : !tile.slice<8xf32, global>, !tile.slice<8xf32, block>
      tile.sync <block>
      tile.move %a, %y : !tile.slice<8xf32, block>, !tile.slice<8xf32, global>
      tile.move %b, %y : !tile.slice<8xf32, block>, !tile.slice<8xf32, global>
    }
  }
}

// -----

// An accumulator that is continued reads its previous value, also in a loop.
tile.program @r2_goes_on_from_nothing outputs 1 {
^bb0(%x: !tile.slice<4x8xf32, global>, %y: !tile.slice<8x16xf32, global>, %z: !tile.slice<4x16xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %eight = arith.constant 8 : index
      %a = tile.alloc at 0 : !tile.slice<4x16xf32, block>
      scf.for %k = %zero to %eight step %two {
        // expected-error @+1 {{R2: reads a buffer that nothing wrote before}}
        tile.compute [4, 16, 8] sizes [4, 16, 2] offsets [2] (%k) vector 1 reduce [2]
            into (%a : !tile.slice<4x16xf32, block>) at [affine_map<(i, j, k)[s] -> (i, j)>] inits [unit] kinds ["add"] attributes {micro_kernel = "fma"} {
        ^bb0(%acc: f32):
          %u = tile.load %x at affine_map<(i, j, k)[s] -> (i, k)> : !tile.slice<4x8xf32, global> -> f32
          %v = tile.load %y at affine_map<(i, j, k)[s] -> (k, j)> : !tile.slice<8x16xf32, global> -> f32
          %p = arith.mulf %u, %v : f32
          %n = arith.addf %acc, %p : f32
          tile.yield %n : f32
        }
      }
    }
  }
}

// -----

tile.program @r5_waits_for_no_one outputs 2 {
^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>, %z: !tile.slice<8xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.move %x, %y : !tile.slice<8xf32, global>, !tile.slice<8xf32, global>
    }
  }
  tile.parallel [1] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{R5: reads a binding that another part writes; a tile.sync <grid> is missing between}}
      tile.move %y, %z : !tile.slice<8xf32, global>, !tile.slice<8xf32, global>
    }
  }
}

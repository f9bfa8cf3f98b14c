// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-allocate-buffers))' | FileCheck %s

#id = affine_map<(d0)[s0] -> (d0)>

// The first and the third buffer are never live together, so they share an offset; the second lies behind them.
// CHECK-LABEL: tile.program @shares_disjoint_lives
// CHECK: %[[A:.*]] = tile.alloc at 0 : <100xf32, block>
// CHECK: %[[B:.*]] = tile.alloc at 448 : <50xf32, block>
// CHECK: %[[C:.*]] = tile.alloc at 0 : <100xf32, block>
tile.program @shares_disjoint_lives outputs 1 {
^bb0(%x: !tile.slice<100xf32, global>, %y: !tile.slice<100xf32, global>, %p: !tile.slice<50xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %a = tile.alloc : !tile.slice<100xf32, block>
    %b = tile.alloc : !tile.slice<50xf32, block>
    %c = tile.alloc : !tile.slice<100xf32, block>
    tile.move %x, %a : !tile.slice<100xf32, global>, !tile.slice<100xf32, block>
    tile.move %p, %b : !tile.slice<50xf32, global>, !tile.slice<50xf32, block>
    tile.move %a, %y : !tile.slice<100xf32, block>, !tile.slice<100xf32, global>
    tile.sync <block>
    tile.move %x, %c : !tile.slice<100xf32, global>, !tile.slice<100xf32, block>
    tile.move %b, %p : !tile.slice<50xf32, block>, !tile.slice<50xf32, global>
    tile.move %c, %y : !tile.slice<100xf32, block>, !tile.slice<100xf32, global>
  }
  }
}

// Without a sync of the block since then, one of its threads or warps may still be reading the first buffer.
// CHECK-LABEL: tile.program @lives_until_all_meet
// CHECK: %[[A:.*]] = tile.alloc at 0 : <100xf32, block>
// CHECK: %[[B:.*]] = tile.alloc at 448 : <100xf32, block>
tile.program @lives_until_all_meet outputs 1 {
^bb0(%x: !tile.slice<100xf32, global>, %y: !tile.slice<100xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %a = tile.alloc : !tile.slice<100xf32, block>
    %b = tile.alloc : !tile.slice<100xf32, block>
    tile.move %x, %a : !tile.slice<100xf32, global>, !tile.slice<100xf32, block>
    tile.sync <block>
    tile.move %a, %y : !tile.slice<100xf32, block>, !tile.slice<100xf32, global>
    tile.move %x, %b : !tile.slice<100xf32, global>, !tile.slice<100xf32, block>
    tile.sync <block>
    tile.move %b, %y : !tile.slice<100xf32, block>, !tile.slice<100xf32, global>
  }
  }
}

// A buffer of the preamble serves every tile, so no other buffer shares its offset.
// CHECK-LABEL: tile.program @keeps_preamble
// CHECK: tile.alloc at [[PLACE:[0-9]+]] : <100xf32, block>
// CHECK: tile.walk
// CHECK-NOT: tile.alloc at [[PLACE]] :
// CHECK: tile.alloc at
tile.program @keeps_preamble outputs 1 {
^bb0(%x: !tile.slice<100xf32, global>, %y: !tile.slice<100xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
  %a = tile.alloc : !tile.slice<100xf32, block>
  tile.move %x, %a : !tile.slice<100xf32, global>, !tile.slice<100xf32, block>
  tile.walk {
  ^bb0(%i: index):
    %b = tile.alloc : !tile.slice<100xf32, block>
    tile.move %x, %b : !tile.slice<100xf32, global>, !tile.slice<100xf32, block>
    tile.move %b, %y : !tile.slice<100xf32, block>, !tile.slice<100xf32, global>
  }
  }
}
